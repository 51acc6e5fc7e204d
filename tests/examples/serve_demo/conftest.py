"""A made recording of the whole scenario, as the demo would have seen it."""

import pytest
from tests.examples.demo.conftest import detail

from examples.demo.recording import Answer, Recording, Seen, Stage
from pliant.core.event import Event, EventKind, Usage, Value
from pliant.core.job import JobId, TaskId

T0 = 1_000_000.0
ENDPOINT, A, B = JobId("job-3"), JobId("job-4"), JobId("job-5")
WAVE_AT, CREST_AT = T0 + 10.0, T0 + 14.0
USAGE = [
    (2.0, ENDPOINT, 1), (3.0, A, 4), (3.0, B, 3), (11.0, A, 3), (11.2, ENDPOINT, 2), (12.0, A, 2), (12.0, B, 2),
    (12.2, ENDPOINT, 4), (24.0, ENDPOINT, 2), (24.1, A, 3), (25.0, ENDPOINT, 1), (25.1, A, 4), (25.1, B, 3),
    (40.0, A, 0), (40.0, B, 0),
]  # fmt: skip
READY = [(2.5, 1), (11.5, 2), (12.4, 3), (12.6, 4)]
LEFT = [(23.8, 4), (23.9, 3), (24.9, 2)]
SWITCHES = [
    (3.5, A, 0, 4), (3.5, B, 0, 3), (10.9, A, 4, 3), (11.9, A, 3, 2), (11.9, B, 3, 2), (24.6, A, 2, 3), (25.6, A, 3, 4),
    (25.7, B, 2, 3),
]  # fmt: skip


def answers() -> list[Answer]:
    """Two requests per second before the wave, ten in it; each takes 0.1 s, but 1 s until the kernels are there."""
    calm = [
        Answer(intended_at=T0 + 5 + i / 2, sent_at=T0 + 5 + i / 2, done_at=T0 + 5.1 + i / 2, status=200)
        for i in range(10)
    ]
    slow = [
        Answer(intended_at=T0 + 10 + i / 10, sent_at=T0 + 10 + i / 10, done_at=T0 + 11 + i / 10, status=200)
        for i in range(40)
    ]
    crest = [
        Answer(intended_at=T0 + 14 + i / 10, sent_at=T0 + 14 + i / 10, done_at=T0 + 14.1 + i / 10, status=200)
        for i in range(61)
    ]
    return [*calm, *slow, *crest]


def make_recording(all_answers: list[Answer]) -> Recording:
    made = Recording(began_at=T0, num_slots=8)
    made.add_job(JobId("job-1"), "A alone")
    made.add_endpoint(ENDPOINT, "digits")
    made.add_job(A, "A")
    made.add_job(B, "B")
    events: list[tuple[float, EventKind, JobId, TaskId | None, dict[str, Value]]] = [
        *((at, EventKind.TASK_READY, ENDPOINT, TaskId(f"{ENDPOINT}.{number}"), {}) for at, number in READY),
        *((at, EventKind.TASK_LEFT, ENDPOINT, TaskId(f"{ENDPOINT}.{number}"), {}) for at, number in LEFT),
        *((at, EventKind.GENERATION_SWITCHED, job, None, switch(before, size)) for at, job, before, size in SWITCHES),
        (10.8, EventKind.DEMAND, ENDPOINT, None, {"from": 1, "to": 4}),
    ]
    for seq, (at, kind, job, task, data) in enumerate(sorted(events, key=lambda one: one[0]), start=1):
        made.add_event(Event(seq=seq, at=T0 + at, kind=kind, message="So it is.", job_id=job, task_id=task, data=data))
    usage = [Usage(at=T0 + at, job_id=job, num_slots=num) for at, job, num in USAGE]
    made.set_state([detail(A, "A", 4, 480), detail(B, "B", 3, 350)], usage)
    for number, at in enumerate((0.0, 2.0, 10.0, 18.0, 27.0), start=1):
        made.set_stage(Stage(number=number, title=f"stage {number}", began_at=T0 + at))
    for answer in all_answers:
        made.add_answer(answer)
    return made


def switch(before: int, size: int) -> dict[str, Value]:
    return {"generation": 1, "size": size, "from_size": before, "step": 7, "pause_ms": 9.5, "redone_steps": 0}


@pytest.fixture
def recording() -> Recording:
    return make_recording(answers())


@pytest.fixture
def seen(recording: Recording) -> Seen:
    return recording.at(T0 + 42.0)
