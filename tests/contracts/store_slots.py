"""The contract of `Store` over who held how many slots when, over capacity, and over events by time."""

from collections import defaultdict
from dataclasses import replace
from random import Random

import pytest
from tests.contracts.store import a_job, a_spec, an_event, messages

from pliant.core.event import EventKind, Usage
from pliant.core.job import DeletedJob, JobId
from pliant.core.job_filter import JobFilter
from pliant.core.lifecycle import JobState
from pliant.core.ports import EventFilter, Store, Writes
from pliant.core.serving_profile import EndpointPart, ServingProfile
from pliant.core.slot_history import HOUR_S, CapacitySpan, layer_of
from pliant.core.trial_part import TrialPart

ONE, OTHER = JobId("job-1"), JobId("job-2")
JOBS = tuple(replace(a_job(job_id), started_at=0.0, colour=7) for job_id in (ONE, OTHER))


def points(*given_points: tuple[float, JobId, int]) -> tuple[Usage, ...]:
    """Return steps of usage."""
    return tuple(Usage(at=at, job_id=job_id, num_slots=num_slots) for at, job_id, num_slots in given_points)


def a_span(number: int, from_at: float, until_at: float, num_slots: int = 8) -> CapacitySpan:
    """Return a span of capacity."""
    return CapacitySpan(number=number, from_at=from_at, until_at=until_at, num_slots=num_slots)


class SlotsContract:
    """What a caller may rely on of slots over time; the fixture is `store`."""

    def test_a_window_is_read_with_what_was_held_before_it(self, store: Store) -> None:
        store.write(Writes(jobs=JOBS, events=(an_event("a"), an_event("b"))))
        steps = [(1.0, ONE, 4), (2.0, OTHER, 2), (3.0, OTHER, 0), (5.0, ONE, 4), (5.0, ONE, 6), (9.0, OTHER, 1)]
        store.write(Writes(usage=points(*steps)))
        found = store.slot_history(5.0, 9.0, max_steps=10)
        assert found is not None
        assert (found.held, list(found.steps), found.last_seq) == ({ONE: 4}, steps[3:5], 2)
        assert found.layers == {ONE: layer_of(JOBS[0])}
        assert store.slot_history(0.0, 100.0, max_steps=6) is not None
        assert store.slot_history(0.0, 100.0, max_steps=5) is None

    def test_layers_tell_of_searches_and_endpoints(self, store: Store) -> None:
        endpoint = EndpointPart(name="digits", version=2, runner="python", profile=ServingProfile())
        trial = TrialPart(search="tune", number=3, values={})
        jobs = (
            replace(JOBS[0], spec=replace(a_spec(), endpoint=endpoint)),
            replace(JOBS[1], spec=replace(a_spec(), trial=trial)),
        )
        store.write(Writes(jobs=jobs))
        assert store.job_layers([ONE, OTHER, JobId("job-9")]) == {job.id: layer_of(job) for job in jobs}
        assert store.job_layers([]) == {}
        assert store.job(ONE) == jobs[0]
        assert [job.id for job in store.jobs(JobFilter(endpoints=("digits",)))] == [ONE]

    def test_hours_are_the_sums_of_their_steps(self, store: Store) -> None:
        store.write(Writes(jobs=JOBS))
        store.write(Writes(usage=points((10.0, ONE, 4), (20.0, OTHER, 1), (3000.0, ONE, 2))))
        store.write(Writes(usage=points((HOUR_S + 100.0, ONE, 5), (HOUR_S + 200.0, ONE, 0))))
        found = store.slot_history(0.0, 2 * HOUR_S, max_steps=0, by_hour=True)
        assert found is not None
        assert sorted(found.hours) == [
            (0, ONE, 2, 4 * 3590.0 - 2 * 600.0),
            (0, OTHER, 1, 3580.0),
            (1, ONE, -2, 3 * 3500.0 - 5 * 3400.0),
        ]
        assert (list(found.steps), found.held) == ([], {})
        later = store.slot_history(HOUR_S, 3 * HOUR_S, max_steps=0, by_hour=True)
        assert later is not None
        assert (later.held, len(later.hours), set(later.layers)) == ({ONE: 2, OTHER: 1}, 1, {ONE, OTHER})

    @pytest.mark.parametrize("seed", range(3))
    def test_hours_come_to_what_their_steps_come_to(self, store: Store, seed: int) -> None:
        job, chance = JOBS[0], Random(seed)
        store.write(Writes(jobs=(job,)))
        steps = [(float(at), job.id, chance.randrange(9)) for at in sorted(chance.choices(range(20_000), k=20))]
        for half in (steps[: len(steps) // 2], steps[len(steps) // 2 :]):
            store.write(Writes(usage=points(*half)))
        sums: defaultdict[int, float] = defaultdict(float)
        held = 0
        for at, _, num_slots in steps:
            sums[int(at // HOUR_S)] += (num_slots - held) * ((at // HOUR_S + 1) * HOUR_S - at)
            held = num_slots
        read = store.slot_history(0.0, 7 * HOUR_S, max_steps=0, by_hour=True)
        assert read is not None
        assert {hour: area for hour, one, _, area in read.hours if one == job.id} == pytest.approx(dict(sums))
        assert sum(delta for _, one, delta, _ in read.hours if one == job.id) == held

    def test_nothing_is_left_of_a_job_that_is_deleted(self, store: Store) -> None:
        store.write(Writes(jobs=JOBS, usage=points((1.0, ONE, 4), (1.0, OTHER, 1))))
        store.write(Writes(deleted=(DeletedJob(id=ONE, owner="ann", deleted_at=2.0, deleted_by="ann"),)))
        for by_hour in (False, True):
            found = store.slot_history(0.0, HOUR_S, max_steps=9, by_hour=by_hour)
            assert found is not None
            assert set(found.layers) == {OTHER}

    def test_spans_of_capacity_reach_into_the_window_or_are_the_next_ones(self, store: Store) -> None:
        spans = [a_span(1, 10.0, 20.0), a_span(2, 30.0, 40.0, 4), a_span(3, 40.0, 50.0)]
        store.write(Writes(capacity=(a_span(1, 10.0, 10.0),)))
        store.write(Writes(capacity=tuple(spans)))
        expected = {(35.0, 38.0): [2], (25.0, 45.0): [1, 2, 3], (60.0, 70.0): [3], (0.0, 5.0): [1], (0.0, 35.0): [1, 2]}
        for (begin, end), numbers in expected.items():
            found = store.slot_history(begin, end, max_steps=1)
            assert found is not None
            assert list(found.spans) == [spans[number - 1] for number in numbers]

    def test_events_are_read_by_time_and_newest_first(self, store: Store) -> None:
        store.write(Writes(events=tuple(replace(an_event(str(n)), at=float(n)) for n in range(1, 11))))
        assert messages(store.events(EventFilter(since=3.0, until=6.0))) == ["3", "4", "5"]
        newest = EventFilter(newest=True, limit=3)
        assert messages(store.events(newest)) == ["10", "9", "8"]
        assert messages(store.events(replace(newest, before=8, since=6.0))) == ["7", "6"]
        assert messages(store.events(replace(newest, before=3, after=1))) == ["2"]
        assert store.count_events(EventFilter(since=3.0, until=6.0)) == 3
        assert store.count_events(EventFilter(before=9, limit=5)) == 5

    def test_of_changes_of_state_those_to_some_can_be_read_alone(self, store: Store) -> None:
        ends = [replace(an_event(str(to), kind=EventKind.JOB_STATE), data={"to": str(to)}) for to in JobState]
        store.write(Writes(events=(*ends, an_event("decision"))))
        which = EventFilter(states=(JobState.FAILED, JobState.STOPPED))
        assert messages(store.events(which)) == ["failed", "stopped", "decision"]
        assert store.count_events(which) == 3
