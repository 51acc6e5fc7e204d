"""Slots that trials left count as free while somebody wants them, and no longer."""

import pytest
from tests.examples.tune_demo.conftest import BAD, GOOD, T0, A

from examples.demo.recording import Seen
from examples.tune_demo.handover import Handover, handovers_of
from pliant.core.event import Event, EventKind
from pliant.core.job import JobId, TaskId

LIMITS = {A: (1, 1), GOOD: (1, 2), BAD: (1, 2)}


def found(seen: Seen, limits: dict[JobId, tuple[int, int]] = LIMITS, num_slots: int = 3) -> tuple[Handover, ...]:
    return handovers_of(seen.events, num_slots=num_slots, limits=limits, trials=[GOOD, BAD])


def test_a_slot_is_handed_over_when_another_that_wants_it_has_it(seen: Seen) -> None:
    (handover,) = found(seen)

    assert (handover.job_id, handover.began_at) == (BAD, T0 + 8.2)
    assert handover.took_s == pytest.approx(0.4)


def test_a_slot_that_nobody_wants_is_not_handed_over(seen: Seen) -> None:
    assert found(seen, {**LIMITS, GOOD: (1, 1)}) == ()


def event(seq: int, at: float, kind: EventKind, job_id: JobId, task: str = "", **data: int) -> Event:
    task_id = TaskId(task) if task else None
    return Event(seq=seq, at=at, kind=kind, message="", job_id=job_id, task_id=task_id, data=data)


LEFT = [
    event(1, 0.0, EventKind.TASK_STARTED, GOOD, "job-2.1"),
    event(2, 1.0, EventKind.JOB_SUBMITTED, BAD),
    event(3, 2.0, EventKind.TASK_LEFT, GOOD, "job-2.1"),
    event(4, 2.5, EventKind.TASK_STARTED, BAD, "job-3.1"),
]


def test_a_job_that_waits_for_its_first_slot_wants_one() -> None:
    assert handovers_of(LEFT, num_slots=1, limits={GOOD: (1, 1), BAD: (1, 1)}, trials=[GOOD]) == (
        Handover(began_at=2.0, job_id=GOOD, took_s=0.5),
    )


def test_a_job_that_waits_for_more_slots_than_are_free_wants_none_yet() -> None:
    assert handovers_of(LEFT, num_slots=1, limits={GOOD: (1, 1), BAD: (2, 2)}, trials=[GOOD]) == ()


def test_slots_that_are_kept_for_a_job_that_starts_are_not_free() -> None:
    starts = [
        event(1, 0.0, EventKind.TASK_STARTED, A, "job-1.1"),
        event(2, 0.1, EventKind.GENERATION_SWITCHED, A, size=1),
        event(3, 0.2, EventKind.TASK_STARTED, GOOD, "job-2.1"),
        event(4, 0.3, EventKind.DECISION, BAD, to=2),
        event(5, 0.3, EventKind.TASK_STARTED, BAD, "job-3.1"),
        event(6, 1.0, EventKind.TASK_LEFT, GOOD, "job-2.1"),
        event(7, 2.0, EventKind.GENERATION_SWITCHED, BAD, size=1),
        event(8, 2.1, EventKind.TASK_STARTED, BAD, "job-3.2"),
    ]

    assert handovers_of(starts, num_slots=3, limits={**LIMITS, A: (1, 3)}, trials=[GOOD]) == ()
