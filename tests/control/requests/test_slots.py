"""Slots over time as control records them: the chart, the events that go on from it, its marks, capacity, colours."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest
from tests.control.conftest import World

from pliant.api.jobs import JobPatch
from pliant.control.jobs.capacity import ALIVE_EVERY_S
from pliant.control.requests.slots import TimeWindow
from pliant.core.access import VisibleJobs
from pliant.core.errors import InvalidInput
from pliant.core.event import Event, EventKind
from pliant.core.ports import EventFilter
from pliant.core.slot_history import ChartBy, SlotChart
from pliant.core.trial_part import TrialPart
from pliant.policy.slot_chart import ChartRequest

START = 999.0


def chart(world: World, by: ChartBy = "job", visible: VisibleJobs | None = None) -> SlotChart:
    return world.control.slots.chart(ChartRequest(from_at=START, until_at=0.0, by=by), visible)


def steps_of(shown: SlotChart) -> dict[str, list[tuple[float, float]]]:
    """Return the changes of every layer."""
    found = {}
    for key, values in zip(shown.keys, shown.values, strict=True):
        pairs = list(zip(shown.times, values, strict=True))
        found[key.id] = [
            pair for number, pair in enumerate(pairs) if pair[1] != (pairs[number - 1][1] if number else 0)
        ]
    return found


def go_on(
    steps: Mapping[str, Sequence[tuple[float, float]]], events: Sequence[Event]
) -> dict[str, list[tuple[float, float]]]:
    """Return what a client makes of a chart and the events after it."""
    found = {name: list(changes) for name, changes in steps.items()}
    for event in events:
        if event.kind is EventKind.SLOTS_CHANGED:
            assert isinstance(event.data["num_slots"], int)
            found.setdefault(str(event.job_id), []).append((event.at, float(event.data["num_slots"])))
    return {name: list(dict(changes).items()) for name, changes in found.items()}  # the last one of an instant counts


def play(world: World) -> list[Callable[[], object]]:
    """Return things that happen one after another."""
    first, second = world.submit(max_tasks=8), []
    return [
        lambda: world.train(first),
        lambda: second.append(world.submit(max_tasks=8)),
        lambda: world.train(second[0]),
        lambda: world.control.requests.change(second[0], JobPatch(priority=10_000), who="ada"),
        lambda: world.settle(2.0),
        world.restart,
        lambda: world.finish(first),
        lambda: world.settle(2.0),
        lambda: world.control.requests.stop(second[0], "bob"),
        lambda: world.settle(2.0),
    ]


def test_events_after_a_chart_go_on_to_the_later_chart(world: World) -> None:
    shown = [chart(world)]
    for happens in play(world):
        happens()
        world.clock.advance(0.25)
        shown.append(chart(world))
    last = shown[-1]
    assert last.exact
    assert max(sum(column) for column in zip(*last.values, strict=True)) == 8
    for earlier in shown:
        events = world.store.events(EventFilter(after=earlier.last_seq))
        assert go_on(steps_of(earlier), events) == steps_of(last)


def test_every_change_of_usage_has_its_event(world: World) -> None:
    for happens in play(world):
        happens()
    told = world.store.events(EventFilter(kinds=(EventKind.SLOTS_CHANGED,)))
    usage = [(point.at, point.job_id, point.num_slots) for point in world.store.usage()]
    assert [(event.at, event.job_id, event.data["num_slots"]) for event in told] == usage
    first = told[0]
    assert first.message == "job-1 (digits) holds 1 slot"
    expected = {"num_slots": 1, "from_slots": 0, "name": "digits", "owner": "admin", "queue": "default", "colour": 0}
    assert first.data == expected


def test_marks_tell_what_happened_to_slots_and_who_did_it(world: World) -> None:
    for happens in play(world):
        happens()
    page = world.control.slots.marks(TimeWindow(from_at=START), 1000)
    assert page.num_more == 0
    kinds = [(mark.kind, mark.job_id) for mark in page.marks]
    assert kinds[:2] == [("server", None), ("came", "job-1")]
    assert {("shrank", "job-1"), ("came", "job-2"), ("went", "job-1"), ("went", "job-2")} <= set(kinds)
    (changed,) = (mark for mark in page.marks if mark.kind == "changed")
    assert (changed.job_id, changed.name, changed.colour, changed.who) == ("job-2", "digits", 1, "ada")
    shrank = next(mark for mark in page.marks if mark.kind == "shrank")
    assert (shrank.from_slots, shrank.to_slots) == (8, 4)
    went = next(mark for mark in page.marks if mark.kind == "went")
    assert went.to_slots == 0
    newest = world.control.slots.marks(TimeWindow(from_at=START), 3)
    assert (newest.marks, newest.num_more) == (page.marks[-3:], len(page.marks) - 3)


def test_jobs_that_one_does_not_see_are_a_sum_and_have_no_marks(world: World) -> None:
    world.submit(max_tasks=8)
    world.settle()
    nobody = VisibleJobs(owner="eve")
    shown = chart(world, visible=nobody)
    assert (shown.keys, shown.rest.num_keys) == ((), 0)
    assert shown.others[-1] == sum(values[-1] for values in chart(world).values) > 0
    marks = world.control.slots.marks(TimeWindow(from_at=START), 10, None, nobody).marks
    assert [mark.kind for mark in marks] == ["server"]


def test_time_without_a_server_is_a_gap_known_to_within_seconds(world: World) -> None:
    world.settle()
    for _ in range(5):
        world.clock.advance(ALIVE_EVERY_S)
        world.control.tick()
    died = world.clock.now()
    world.clock.advance(100.0)
    world.restart()
    world.clock.advance(5.0)
    shown = chart(world)
    assert [(gap.from_at, gap.until_at) for gap in shown.gaps] == [(START, 1000.0), (died, died + 100.0)]
    assert set(shown.capacity) == {8.0}


def test_a_server_at_rest_says_that_it_is_there_no_more_than_once_in_ten_seconds(world: World) -> None:
    spans = set()
    for _ in range(120):
        world.clock.advance(0.5)
        world.control.tick()
        history = world.store.slot_history(START, 2000.0, max_steps=0)
        assert history is not None
        spans |= set(history.spans)
    assert len(spans) == 7


def test_a_window_that_is_none_is_refused(world: World) -> None:
    for begin, end in ((2000.0, 3000.0), (999.0, 998.0), (-5.0, -5.0)):
        with pytest.raises(InvalidInput, match="earlier beginning"):
            world.control.slots.chart(ChartRequest(from_at=begin, until_at=end))


def test_trials_share_the_colour_of_their_search(world: World) -> None:
    def trial(number: int) -> TrialPart:
        return TrialPart(search="tune", number=number, values={})

    jobs = [world.job(world.submit()), *(world.job(world.submit(trial=trial(n))) for n in range(2))]
    assert [job.colour for job in jobs] == [0, 1, 1]
    for job in jobs:
        world.control.requests.stop(job.id)
    world.settle(3.0)
    assert world.control.slots.colour_of_search("tune") == 1
    world.restart()
    assert [world.job(world.submit(trial=trial(3))).colour, world.job(world.submit()).colour] == [1, 2]
    assert replace(jobs[0], colour=5) != jobs[0]
