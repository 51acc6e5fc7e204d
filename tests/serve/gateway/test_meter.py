"""What is counted: loads weighted by the time that they lasted, quantiles of the last seconds, shares of traffic."""

import math
from collections import Counter
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.core.histogram import LATENCY_BOUNDS_S, BucketCounts, Histogram
from pliant.core.job import JobId
from pliant.core.serving import VersionLoad
from pliant.core.time_counts import NUM_TIME_BUCKETS, add_counts, are_counts, quantiles_of, time_bucket
from pliant.serve.gateway.latency import RecentTimes
from pliant.serve.gateway.meter import LoadMeter, QueueLevel, TimeSum, VersionTotals, add_totals
from pliant.serve.gateway.tensors_said import clean_metadata
from pliant.serve.gateway.traffic import WeightedTurns

SHARES = (0.5, 0.95, 0.99)
_IDLE = QueueLevel(in_flight=0, queued=0, num_ready=1, oldest_wait_s=0.0)


def test_a_load_counts_for_as_long_as_it_lasted() -> None:
    meter = LoadMeter(10.0)
    meter.level(11.0, 4)
    meter.level(12.5, 2)

    first = meter.report(14.0, JobId("job-1"), _IDLE)
    second = meter.report(15.0, JobId("job-1"), _IDLE)

    assert (first.seconds, first.mean_load) == (4.0, (1.0 * 0 + 1.5 * 4 + 1.5 * 2) / 4)
    assert (second.seconds, second.mean_load) == (1.0, 2.0)


def test_a_report_says_what_happened_since_the_one_before() -> None:
    meter = LoadMeter(0.0)
    meter.answer(1.0, 200, 0.5, 0.1)
    meter.answer(1.0, 500, 0.5, 0.1)
    meter.fail(9.0)
    meter.refuse()
    meter.batch(2, 0.1)

    load = meter.report(2.0, JobId("job-1"), _IDLE)
    empty = meter.report(3.0, JobId("job-1"), _IDLE)

    assert (load.completed, load.failed, load.refused, load.num_batches, load.busy_s) == (2, 2, 1, 1, 0.1)
    assert load.latency_s["p99"] == pytest.approx(0.5, rel=0.03)
    assert load.service_p95_s == pytest.approx(0.1, rel=0.03)
    assert (empty.completed, empty.failed, empty.refused, empty.num_batches) == (0, 0, 0, 0)
    assert empty.latency_s.keys() == {"p50", "p95", "p99"}
    last = meter.report(40.0, JobId("job-1"), _IDLE)
    assert last == VersionLoad(job_id=JobId("job-1"), seconds=37.0, num_ready=1, totals=load.totals)


def test_what_was_counted_since_the_gateway_began_is_in_every_report() -> None:
    meter = LoadMeter(0.0)
    for status in (200, 422, 500):
        meter.answer(1.0, status, 0.02, 0.01)
    meter.fail(90.0)
    meter.refuse()
    meter.batch(3, 0.5)

    first = meter.report(2.0, JobId("job-1"), _IDLE).totals
    meter.answer(2.5, 200, 0.02, 0.01)
    second = meter.report(3.0, JobId("job-1"), _IDLE).totals

    assert (first.succeeded, first.rejected, first.failed, first.refused, first.busy_s) == (1, 1, 2, 1, 0.5)
    assert dict(zip((*LATENCY_BOUNDS_S, math.inf), first.latency_s.counts, strict=True)) == {
        **dict.fromkeys(LATENCY_BOUNDS_S, 0),
        0.025: 3,
        math.inf: 1,
    }
    assert first.latency_s.total == pytest.approx(90.06)
    assert first.batch_size == Histogram((0, 0, 1, 0, 0, 0, 0, 0, 0), 3.0)
    assert (second.succeeded, second.latency_s.count, second.batch_size) == (2, 5, first.batch_size)


@given(st.lists(st.floats(0, 200), max_size=50))
def test_a_value_is_counted_at_the_first_bound_that_it_is_not_above(values: list[float]) -> None:
    buckets = BucketCounts(LATENCY_BOUNDS_S)
    for value in values:
        buckets.add(value)

    counted = buckets.histogram()

    for number, bound in enumerate(LATENCY_BOUNDS_S, 1):
        assert sum(counted.counts[:number]) == sum(value <= bound for value in values)
    assert counted.count == len(values)
    assert counted.total == pytest.approx(math.fsum(values))


@given(st.lists(st.floats(1e-4, 1000), min_size=1, max_size=200), st.sampled_from([0.01, 0.5, 0.95, 1.0]))
def test_a_quantile_is_that_of_all_times_to_within_a_bucket(times: list[float], share: float) -> None:
    recent = RecentTimes()
    for seconds in times:
        recent.add(5.0, seconds)

    (found,) = recent.quantiles(5.0, (share,))

    exact = sorted(times)[max(1, math.ceil(share * len(times))) - 1]
    assert found == pytest.approx(exact, rel=0.051)


@given(st.lists(st.tuples(st.floats(0, 20), st.floats(0, 1e9)), max_size=60))
def test_times_leave_when_they_are_too_old(steps: list[tuple[float, float]]) -> None:
    recent, now = RecentTimes(window_s=5), 0.0
    for gap, seconds in steps:
        now += gap
        recent.add(now, seconds)
        assert recent.quantiles(now, (0.5,)) != ()

    assert recent.quantiles(now + 6, (0.5,)) == ()
    assert len(recent._seconds) == 0


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(0, 2), st.floats(0, 1e6)), max_size=60))
def test_counts_of_several_added_give_the_quantiles_of_one_that_has_seen_all(
    steps: list[tuple[int, float, float]],
) -> None:
    several, one, now = [RecentTimes(5) for _ in range(3)], RecentTimes(5), 0.0
    for number, gap, seconds in steps:
        now += gap
        several[number].add(now, seconds)
        one.add(now, seconds)

    counts = add_counts(recent.counts(now) for recent in several)

    assert are_counts(counts)
    assert counts == one.counts(now)
    assert quantiles_of(counts.items(), sum(counts.values()), SHARES) == one.quantiles(now, SHARES)


def test_a_report_of_one_of_several_is_the_same_with_counts_of_the_last_seconds() -> None:
    meter = LoadMeter(0.0)
    meter.answer(1.0, 200, 0.5, 0.1)
    meter.answer(1.0, 200, 0.5, 0.2)
    load = meter.report(2.0, JobId("job-1"), _IDLE)

    counted = meter.count(2.0, load)

    assert counted.latency_counts == {time_bucket(0.5): 2}
    assert counted.service_counts == {time_bucket(0.1): 1, time_bucket(0.2): 1}
    assert all(getattr(counted, one.name) == getattr(load, one.name) for one in fields(load))
    assert meter.count(40.0, meter.report(40.0, JobId("job-1"), _IDLE)).latency_counts == {}


@pytest.mark.parametrize("counts", [{-1: 1}, {NUM_TIME_BUCKETS: 1}, {0: -1}, {0: 10**400}])
def test_counts_that_cannot_be_are_told(counts: dict[int, int]) -> None:
    assert not are_counts(counts)
    assert are_counts({0: 0, NUM_TIME_BUCKETS - 1: 5})


def test_totals_of_several_are_added_and_the_latest_answer_counts() -> None:
    first, second = LoadMeter(0.0), LoadMeter(0.0)
    for meter, at in ((first, 3.0), (second, 2.0)):
        meter.answer(at, 200, 0.5, 0.25)
        meter.answer(at, 422, 0.5, 0.25)
        meter.batch(2, 0.25)
    second.batch(1, 0.125)

    assert add_totals((first.totals, VersionTotals(), second.totals)) == VersionTotals(
        success=TimeSum(2, 1.0),
        fail=TimeSum(2, 1.0),
        queue=TimeSum(4, 1.0),
        service=TimeSum(4, 1.0),
        batches={2: TimeSum(2, 0.5), 1: TimeSum(1, 0.125)},
        last_at=3.0,
    )
    assert first.totals.batches == {2: TimeSum(1, 0.25)}, "what is added up stays as it is"
    assert add_totals(()) == VersionTotals()


@given(st.dictionaries(st.integers(1, 9), st.integers(0, 20), max_size=5))
def test_each_version_gets_its_share_exactly(weights: dict[int, int]) -> None:
    turns, total = WeightedTurns(), sum(weights.values())
    turns.set(weights)

    counts = Counter(turns.next() for _ in range(2 * total or 3))

    assert counts == ({number: 2 * weight for number, weight in weights.items() if weight} if total else {None: 3})


def test_shares_are_spread_evenly() -> None:
    turns = WeightedTurns()
    turns.set({1: 3, 2: 1})

    assert [turns.next() for _ in range(8)] == [1, 1, 2, 1, 1, 1, 2, 1]


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["inputs", "outputs", "platform", "name", "shape", "datatype"]), inner)
    ),
    max_leaves=20,
)


@given(_json)
def test_what_models_say_of_themselves_is_cleaned_and_what_is_clean_stays(said: object) -> None:
    cleaned = clean_metadata(said)

    assert clean_metadata(cleaned) == cleaned
    assert cleaned.keys() <= {"platform", "inputs", "outputs", "max_batch_size"}


def test_what_makes_sense_is_kept() -> None:
    tensor = {"name": "x", "datatype": "FP32", "shape": [-1, 4]}
    said = {"platform": "p", "inputs": [tensor, {"name": "y"}, 7], "outputs": "none", "max_batch_size": 8, "more": 1}

    assert clean_metadata(said) == {"platform": "p", "inputs": [tensor], "max_batch_size": 8}
