"""Charts of slots: what is shown adds up to what was recorded, whatever the window, and whoever looks."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.core.job import JobId
from pliant.core.slot_history import HOUR_S, CapacitySpan, ChartBy, HourSum, JobLayer, SlotChart, SlotRecords, Step
from pliant.policy.slot_chart import LADDER, BucketRow, ChartRequest, buckets_for, colours_of, draw, exact_times

NUM_JOBS = 6


def layer(number: int) -> JobLayer:
    """Job 2 and 3 are trials, job 4 serves; owners and queues take turns."""
    return JobLayer(
        job_id=JobId(f"job-{number}"),
        name=f"name-{number}",
        owner=("ann", "bob", "cem")[number % 3],
        queue=("day", "night")[number % 2],
        search="tune" if number in (2, 3) else None,
        endpoint="digits" if number == 4 else None,
        colour=number,
        submitted_at=float(number),
        started_at=None,
    )


LAYERS = {one.job_id: one for one in map(layer, range(NUM_JOBS))}
STEPS = st.lists(st.tuples(st.integers(0, 4000), st.integers(0, NUM_JOBS - 1), st.integers(0, 8)), max_size=60).map(
    lambda found: [(at / 2, JobId(f"job-{job}"), num) for at, job, num in sorted(found, key=lambda one: one[0])]
)
BYS = st.sampled_from(["job", "endpoint", "search", "queue", "group", "user"])


def history_of(steps: list[Step], begin: float, end: float, spans: tuple[CapacitySpan, ...] = ()) -> SlotRecords:
    """Return what a store would read of a window."""
    held = {job_id: num for at, job_id, num in steps if at < begin}
    return SlotRecords(
        held={job_id: num for job_id, num in held.items() if num},
        steps=[step for step in steps if begin <= step[0] < end],
        spans=spans,
        layers=LAYERS,
    )


def by_hour(steps: list[Step], begin: float, end: float) -> SlotRecords:
    """Return the same in sums of hours."""
    sums: defaultdict[tuple[int, JobId], list[float]] = defaultdict(lambda: [0, 0.0])
    held: dict[JobId, int] = {}
    for at, job_id, num in steps:
        delta, held[job_id], hour = num - held.get(job_id, 0), num, int(at // HOUR_S)
        sums[hour, job_id][0] += delta
        sums[hour, job_id][1] += delta * ((hour + 1) * HOUR_S - at)
    hours: list[HourSum] = [
        (hour, job_id, int(delta), area)
        for (hour, job_id), (delta, area) in sorted(sums.items())
        if begin <= hour * HOUR_S < end
    ]
    last = {job_id: num for at, job_id, num in steps if at < begin}
    return SlotRecords(held={job_id: num for job_id, num in last.items() if num}, hours=hours, layers=LAYERS)


def integral(steps: list[Step], begin: float, end: float, counts: Callable[[JobId], bool]) -> float:
    """Return the slot-seconds between two instants, from the steps alone."""
    total = 0.0
    for job_id in LAYERS:
        own = [(0.0, 0), *((at, num) for at, one, num in steps if one == job_id), (1e9, 0)]
        if counts(job_id):
            total += sum(num * max(0.0, min(to, end) - max(at, begin)) for (at, num), (to, _) in pairwise(own))
    return total


def amounts(chart: SlotChart) -> Iterator[float]:
    """Yield the slot-seconds of each list of values: the layers, the rest, the others."""
    lengths = [to - at for at, to in pairwise([*chart.times, chart.until_at])]
    for values in (*chart.values, chart.rest.values, chart.others):
        assert len(values) == len(chart.times)
        yield sum(value * length for value, length in zip(values, lengths, strict=True))


def see_all(_layer: JobLayer) -> bool:
    return True


def drawn(steps: list[Step], request: ChartRequest, now: float = 2500.0) -> SlotChart:
    row = buckets_for(request)
    return draw(request, history_of(steps, row.begins_at, min(row.ends_at, now)), row, now, see_all)


@given(STEPS, st.floats(0, 1990), st.floats(1, 500), BYS, st.integers(2, 60), st.integers(1, 4), st.integers(0, 7))
def test_what_is_shown_is_the_integral_of_what_was_recorded(
    steps: list[Step], begin: float, length: float, by: ChartBy, max_buckets: int, top: int, hidden: int
) -> None:
    now = max(2000.5, begin + length)
    request = ChartRequest(from_at=begin, until_at=begin + length, by=by, max_buckets=max_buckets, top=top)
    row = buckets_for(request)
    chart = draw(
        request, history_of(steps, row.begins_at, min(row.ends_at, now)), row, now, lambda one: one.colour != hidden
    )
    assert len(chart.times) <= max_buckets
    assert list(chart.times) == sorted(set(chart.times))
    assert len(chart.keys) <= top
    *shown, rest, others = amounts(chart)
    total = integral(steps, chart.from_at, chart.until_at, lambda _: True)
    assert sum(shown) + rest + others == pytest.approx(total, abs=0.01)
    assert others == pytest.approx(
        integral(steps, chart.from_at, chart.until_at, lambda one: LAYERS[one].colour == hidden), abs=0.01
    )
    assert shown == pytest.approx([key.slot_seconds for key in chart.keys], abs=0.01)
    for key, amount in zip(chart.keys, shown, strict=True):
        own = {one.job_id for one in LAYERS.values() if one.colour != hidden and id_of(one, key.kind) == key.id}
        assert amount == pytest.approx(integral(steps, chart.from_at, chart.until_at, own.__contains__), abs=0.01)


def id_of(one: JobLayer, kind: ChartBy) -> str | None:
    """Return what a job's layer is called, if it is of this kind."""
    names = {
        "job": one.job_id,
        "queue": one.queue,
        "group": one.queue,
        "user": one.owner,
        "search": one.search,
        "endpoint": one.endpoint,
    }
    return names[kind]


@given(STEPS, st.integers(0, 40), st.integers(1, 40), st.integers(1, 5))
def test_panning_by_a_bucket_shifts_what_is_shown(steps: list[Step], first: int, num: int, by: int) -> None:
    width, now = 30, 1e6
    charts = []
    for start in (first, first + by):
        row = BucketRow(width=width, first=start, num=num)
        request = ChartRequest(from_at=row.begins_at, until_at=row.ends_at, max_buckets=1, top=NUM_JOBS)
        charts.append(draw(request, history_of(steps, row.begins_at, row.ends_at), row, now, see_all))
    before, after = ({at: column for at, *column in _columns(chart)} for chart in charts)
    if not any(chart.exact for chart in charts):
        assert all(before[at] == after[at] for at in before.keys() & after.keys())


def _columns(chart: SlotChart) -> Iterator[tuple[float, dict[str, float]]]:
    for number, at in enumerate(chart.times):
        found = {key.id: values[number] for key, values in zip(chart.keys, chart.values, strict=True)}
        yield at, {name: value for name, value in found.items() if value}


@given(st.floats(0, 2e9), st.floats(0.001, 1e9), st.integers(10, 5000))
def test_buckets_are_the_narrowest_of_the_ladder_that_cover_a_window(
    begin: float, length: float, max_buckets: int
) -> None:
    request = ChartRequest(from_at=begin, until_at=begin + length, max_buckets=max_buckets)
    row = buckets_for(request)
    assert row.begins_at <= request.from_at
    assert row.ends_at >= request.until_at
    assert row.num <= max_buckets
    assert row.width in LADDER or row.width % LADDER[-1] == 0
    if row.width > 1:
        narrower = max((width for width in LADDER if width < row.width), default=1)
        narrower = row.width // 2 if row.width > LADDER[-1] else narrower
        assert request.until_at // narrower - request.from_at // narrower + 1 >= max_buckets
    assert buckets_for(request, HOUR_S).width >= HOUR_S


@given(STEPS.map(lambda found: [(at * 20, job_id, num) for at, job_id, num in found]), st.integers(0, 5), BYS)
def test_sums_of_hours_show_the_same_as_the_steps(steps: list[Step], first: int, by: ChartBy) -> None:
    row, now = BucketRow(width=2 * HOUR_S, first=first, num=4), 36000.0 - 7
    request = ChartRequest(from_at=row.begins_at, until_at=min(row.ends_at, now), by=by, max_buckets=1)
    end = min(row.ends_at, now)
    one = draw(request, history_of(steps, row.begins_at, end), row, now, see_all)
    other = draw(request, by_hour(steps, row.begins_at, end), row, now, see_all)
    if not one.exact:
        assert [key.id for key in other.keys] == [key.id for key in one.keys]
        assert list(amounts(other)) == pytest.approx(list(amounts(one)), abs=0.1)


def test_few_changes_are_shown_as_they_were() -> None:
    steps: list[Step] = [(10.0, JobId("job-0"), 8), (20.5, JobId("job-1"), 4), (20.5, JobId("job-0"), 4)]
    chart = drawn([*steps, (31.0, JobId("job-0"), 0)], ChartRequest(from_at=5.0, until_at=40.0), now=40.0)
    assert (chart.exact, chart.width_s, chart.from_at, chart.until_at) == (True, 0, 5.0, 40.0)
    assert chart.times == (5.0, 10.0, 20.5, 31.0)
    assert [(key.id, key.name, key.colour) for key in chart.keys] == [("job-0", "name-0", 0), ("job-1", "name-1", 1)]
    assert chart.values == ((0.0, 8.0, 4.0, 0.0), (0.0, 0.0, 4.0, 4.0))


def test_a_search_is_one_layer_and_endpoints_are_on_top() -> None:
    steps: list[Step] = [(float(n), JobId(f"job-{n}"), 1) for n in (2, 3, 4, 5)]
    chart = drawn(steps, ChartRequest(from_at=1.0, until_at=10.0), now=10.0)
    assert [(key.kind, key.id) for key in chart.keys] == [("search", "tune"), ("job", "job-5"), ("endpoint", "digits")]
    of_searches = drawn(steps, ChartRequest(from_at=1.0, until_at=10.0, by="search"), now=10.0)
    assert [key.id for key in of_searches.keys] == ["tune"]
    assert (of_searches.rest.num_keys, of_searches.rest.values[-1]) == (2, 2.0)


def test_capacity_is_carried_over_time_without_a_server_which_is_said() -> None:
    spans = (
        CapacitySpan(number=1, from_at=10.0, until_at=20.0, num_slots=8),
        CapacitySpan(number=2, from_at=20.0, until_at=25.0, num_slots=6),
        CapacitySpan(number=3, from_at=30.0, until_at=90.0, num_slots=4),
    )
    request = ChartRequest(from_at=5.0, until_at=50.0)
    chart = draw(request, history_of([], 5.0, 50.0, spans), buckets_for(request), 90.0, see_all)
    assert dict(zip(chart.times, chart.capacity, strict=True)) == {5.0: 8, 10.0: 8, 20.0: 6, 30.0: 4}
    assert [(gap.from_at, gap.until_at) for gap in chart.gaps] == [(5.0, 10.0), (25.0, 30.0)]
    later = ChartRequest(from_at=80.0, until_at=100.0)
    chart = draw(later, history_of([], 80.0, 100.0, spans[2:]), buckets_for(later), 100.0, see_all)
    assert [(gap.from_at, gap.until_at) for gap in chart.gaps] == [(90.0, 100.0)]


def test_many_changes_are_means_over_time() -> None:
    steps: list[Step] = [(10.0 + n, JobId("job-0"), 1 + n % 2) for n in range(200)]
    request = ChartRequest(from_at=13.0, until_at=209.0, max_buckets=20)
    assert exact_times(request, history_of(steps, 0.0, 300.0)) is None
    chart = drawn(steps, request, now=300.0)
    assert (chart.exact, chart.width_s, chart.from_at, chart.until_at) == (False, 10, 10.0, 210.0)
    assert chart.values[0][1] == 1.5


def test_queues_and_users_have_colours_that_differ() -> None:
    names = [f"user-{n}" for n in range(24)]
    colours = colours_of(names)
    assert sorted(colours.values()) == list(range(24))
    assert colours_of(names[:1]) == {names[0]: colours_of([names[0], "zzz"])[names[0]]}


def test_the_trials_of_one_search_are_layers_of_their_own() -> None:
    steps: list[Step] = [(1.0, JobId(f"job-{number}"), 1 + number) for number in range(NUM_JOBS)]
    asked = ChartRequest(from_at=0.0, until_at=10.0, by="trial", search="tune")

    chart = draw(asked, history_of(steps, 0.0, 10.0), buckets_for(asked), 10.0, lambda _: True)

    assert [(key.kind, key.id, key.slot_seconds) for key in chart.keys] == [
        ("job", "job-2", 27.0),
        ("job", "job-3", 36.0),
    ]
    assert set(chart.rest.values) == {0.0} == set(chart.others)
