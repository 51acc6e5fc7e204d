"""A made recording of the whole scenario, as the demo would have seen it."""

from dataclasses import replace

import pytest

from examples.demo.recording import Recording, Seen, Stage
from pliant.api.job_views import JobDetail
from pliant.core.event import Event, EventKind, Usage
from pliant.core.job import Generation, Job, JobId, JobSpec, Progress, TaskId
from pliant.core.lifecycle import GenerationState, JobState

T0 = 1_000_000.0
A, B = JobId("job-1"), JobId("job-2")
USAGE = [
    (0.4, A, 1), (1.6, A, 8), (14.0, A, 4), (14.2, B, 1), (15.1, B, 4), (28.0, A, 3), (28.2, B, 5),
    (41.0, B, 4), (42.0, B, 5), (58.0, A, 0), (58.4, B, 8), (80.0, B, 0),
]  # fmt: skip
SWITCHES = [
    (1.0, A, 0, 1), (3.0, A, 1, 8), (14.0, A, 8, 4), (14.8, B, 0, 1), (15.5, B, 1, 4), (27.9, A, 4, 3), (29.0, B, 4, 5),
    (41.3, B, 5, 4), (42.5, B, 4, 5), (59.0, B, 5, 8),
]  # fmt: skip
DECISIONS = [
    (0.3, A, 0, 8, "Alone, so it may have all 8 slots; it starts with 1 and grows."),
    (13.9, A, 8, 4, "Shares 8 slots with 1 job of equal priority: 4 of 8 are its part."),
    (13.9, B, 0, 4, "Shares 8 slots with 1 job of equal priority: 4 of 8 are its part."),
    (27.9, A, 4, 3, "Priority 5000 of 15000: 2.67 of 8 slots, rounded to 3."),
    (27.9, B, 4, 5, "Priority 10000 of 15000: 5.33 of 8 slots, rounded to 5."),
    (58.1, B, 5, 8, "Alone, so it may have all 8 slots."),
]
TITLES = [
    (0.0, "A starts on one slot and grows to 8"),
    (13.0, "B arrives: 4 and 4"),
    (27.0, "B's priority doubles: 3 and 5"),
    (40.0, "one of B's workers is killed"),
    (48.0, "A ends: B grows to 8 and ends"),
]


def detail(job_id: JobId, name: str, size: int, step: int) -> JobDetail:
    spec = JobSpec(name=name, script="elastic.py", max_tasks=8, virtual_workers=8)
    progress = Progress(
        epoch=step // 10, num_epochs=60, step=step, num_steps=600, samples=step * 64, samples_per_s=5120.0,
        loss=0.0312, metrics={"accuracy": 0.974}, eta_s=12.0,
    )  # fmt: skip
    job = Job(
        id=job_id, spec=spec, owner="demo", state=JobState.RUNNING, priority=5000, min_tasks=1, max_tasks=8,
        submitted_at=T0, num_slots=size, progress=progress,
    )  # fmt: skip
    members = tuple(TaskId(f"{job_id}.{i + 1}") for i in range(size))
    active = Generation(job_id=job_id, number=2, members=members, state=GenerationState.ACTIVE, announced_at=T0)
    retired = replace(active, number=1, members=members[:1], state=GenerationState.RETIRED)
    return JobDetail(job=job, tasks=(), generations=(retired, active))


@pytest.fixture
def recording() -> Recording:
    made = Recording(began_at=T0, num_slots=8)
    made.add_job(A, "A")
    made.add_job(B, "B")
    for seq, (at, job_id, before, after, why) in enumerate(DECISIONS, start=1):
        data = {"from": before, "to": after, "num_slots": after}
        made.add_event(Event(seq=seq, at=T0 + at, kind=EventKind.DECISION, message=why, job_id=job_id, data=data))
    for seq, (at, job_id, before, after) in enumerate(SWITCHES, start=20):
        switch = {"generation": seq, "size": after, "from_size": before, "step": 1, "pause_ms": 9.5, "redone_steps": 0}
        kind = EventKind.GENERATION_SWITCHED
        made.add_event(Event(seq=seq, at=T0 + at, kind=kind, message="It trains on.", job_id=job_id, data=switch))
    lost = Event(seq=90, at=T0 + 41.0, kind=EventKind.TASK_LOST, message="Killed by signal 9.", job_id=B)
    made.add_event(lost)
    usage = [Usage(at=T0 + at, job_id=job_id, num_slots=slots) for at, job_id, slots in USAGE]
    made.set_state([detail(A, "A", 3, 480), detail(B, "B", 5, 350)], usage)
    ends = [at for at, _ in TITLES[1:]] + [None]
    for number, ((at, title), end) in enumerate(zip(TITLES, ends, strict=True), start=1):
        made.set_stage(Stage(number=number, title=title, began_at=T0 + at, ended_at=None if end is None else T0 + end))
    return made


@pytest.fixture
def seen(recording: Recording) -> Seen:
    return recording.at(T0 + 82.0)
