"""Slots that trials left count as free while somebody wants them, and no longer."""

import pytest
from tests.examples.tune_demo.conftest import BAD, GOOD, T0, A

from examples.demo.recording import Seen
from examples.tune_demo.handover import Handover, handovers_of
from pliant.core.event import Event, EventKind
from pliant.core.job import JobId, TaskId

MOST = {A: 1, GOOD: 2, BAD: 2}


def found(seen: Seen, most: dict[JobId, int] = MOST, num_slots: int = 3) -> tuple[Handover, ...]:
    return handovers_of(seen.events, num_slots=num_slots, most=most, trials=[GOOD, BAD])


def test_a_slot_is_handed_over_when_another_that_wants_it_has_it(seen: Seen) -> None:
    (handover,) = found(seen)

    assert (handover.job_id, handover.began_at) == (BAD, T0 + 8.2)
    assert handover.took_s == pytest.approx(0.4)


def test_a_slot_that_nobody_wants_is_not_handed_over(seen: Seen) -> None:
    assert found(seen, {**MOST, GOOD: 1}) == ()


def test_slots_that_were_free_before_count_until_all_that_is_wanted_is_held(seen: Seen) -> None:
    assert [handover.took_s for handover in found(seen, {**MOST, A: 2}, num_slots=4)] != []


def test_a_job_that_waits_for_its_first_slot_wants_one() -> None:
    def event(seq: int, at: float, kind: EventKind, job_id: JobId, task: str = "") -> Event:
        return Event(seq=seq, at=at, kind=kind, message="", job_id=job_id, task_id=TaskId(task) if task else None)

    events = [
        event(1, 0.0, EventKind.TASK_STARTED, GOOD, "job-2.1"),
        event(2, 1.0, EventKind.JOB_SUBMITTED, BAD),
        event(3, 2.0, EventKind.TASK_LEFT, GOOD, "job-2.1"),
        event(4, 2.5, EventKind.TASK_STARTED, BAD, "job-3.1"),
    ]

    assert handovers_of(events, num_slots=1, most={GOOD: 1, BAD: 1}, trials=[GOOD]) == (
        Handover(began_at=2.0, job_id=GOOD, took_s=0.5),
    )
