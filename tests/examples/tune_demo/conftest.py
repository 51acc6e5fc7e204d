"""A made recording of both searches, as the demo would have seen them: two trials each, of which one is pruned."""

from dataclasses import replace

import pytest
from tests.examples.demo.conftest import detail
from tests.tiny_searches import trial as made_trial
from tests.tiny_searches import view

from examples.demo.recording import Recording, Seen
from examples.tune_demo.scenario import Run, TuneOutcome
from pliant.api.job_views import JobDetail
from pliant.core.event import Event, EventKind, Usage, Value
from pliant.core.job import JobId, TaskId
from pliant.core.lifecycle import JobState
from pliant.core.search import SearchState, Trial, TrialState
from pliant.core.trial_part import TrialPart

T0 = 1_000_000.0
RIGID_AT = 50.0
JOBS = tuple(JobId(f"job-{number}") for number in range(1, 9))
A, GOOD, BAD, A_AGAIN, GOOD_AGAIN, BAD_AGAIN, BEST_ALONE, A_ALONE = JOBS
K = EventKind
HALF: list[tuple[float, EventKind, int, int | None, dict[str, Value]]] = [
    (0.0, K.JOB_SUBMITTED, 0, None, {}),
    (0.1, K.TASK_STARTED, 0, 1, {}),
    (0.9, K.TASK_READY, 0, 1, {}),
    (1.0, K.GENERATION_SWITCHED, 0, None, {"size": 1, "step": 0}),
    (2.0, K.JOB_SUBMITTED, 1, None, {}),
    (2.1, K.TASK_STARTED, 1, 1, {}),
    (2.2, K.JOB_SUBMITTED, 2, None, {}),
    (2.3, K.TASK_STARTED, 2, 1, {}),
    (4.0, K.TASK_READY, 1, 1, {}),
    (4.1, K.GENERATION_SWITCHED, 1, None, {"size": 1, "step": 0}),
    (4.4, K.TASK_READY, 2, 1, {}),
    (4.5, K.GENERATION_SWITCHED, 2, None, {"size": 1, "step": 0}),
    (6.1, K.EPOCH_FINISHED, 1, None, {"step": 20}),
    (8.0, K.JOB_HELD, 2, None, {}),
    (8.2, K.TASK_LEFT, 2, 1, {}),
    (8.3, K.JOB_STATE, 2, None, {"from": "running", "to": "paused"}),
    (8.6, K.TASK_STARTED, 1, 2, {}),
    (10.1, K.EPOCH_FINISHED, 1, None, {"step": 60}),
    (20.0, K.JOB_STATE, 1, None, {"from": "running", "to": "completed"}),
    (20.1, K.TASK_LEFT, 1, 1, {}),
    (20.2, K.TASK_LEFT, 1, 2, {}),
    (30.0, K.JOB_STATE, 0, None, {"from": "running", "to": "completed"}),
    (30.1, K.TASK_LEFT, 0, 1, {}),
]
"""Three slots: A's one, and one for each trial; the better one grows when the other has left. Jobs by their place."""
USAGE = [(0.1, 0, 1), (2.1, 1, 1), (2.3, 2, 1), (8.2, 2, 0), (8.6, 1, 2), (20.1, 1, 1), (20.2, 1, 0), (30.1, 0, 0)]


def trials(good: JobId, bad: JobId, began_at: float) -> tuple[Trial, ...]:
    ended = made_trial(0, job_id=good, begun_at=began_at + 2, ended_at=began_at + 20, results=(0.25,))
    pruned = made_trial(
        1, job_id=bad, state=TrialState.PRUNED, begun_at=began_at + 2, ended_at=began_at + 9, results=(0.75,)
    )
    return ended, pruned


def run_of(label: str, jobs: tuple[JobId, JobId, JobId], began_at: float) -> Run:
    made = trials(jobs[1], jobs[2], began_at)
    found = view(name=label, state=SearchState.COMPLETED, best=made[0])
    return Run(
        label=label, view=found, trials=made, beside=jobs[0], began_at=began_at + 2.0, ended_at=began_at + 20.0
    )  # fmt: skip


def job_detail(job_id: JobId, digest: str, most: int) -> JobDetail:
    made = detail(job_id, "made", 0, 100)
    job = replace(made.job, state=JobState.COMPLETED, digest=digest, max_tasks=most)
    if job_id in (GOOD, BAD, GOOD_AGAIN, BAD_AGAIN):
        search = "elastic" if job_id in (GOOD, BAD) else "rigid"
        number = int(job_id in (BAD, BAD_AGAIN))
        job = replace(job, spec=replace(job.spec, trial=TrialPart(search=search, number=number, values={"lr": 0.01})))
    return JobDetail(job=job, tasks=(), generations=())


@pytest.fixture
def outcome() -> TuneOutcome:
    return TuneOutcome(
        elastic=run_of("elastic", (A, GOOD, BAD), T0),
        rigid=run_of("rigid", (A_AGAIN, GOOD_AGAIN, BAD_AGAIN), T0 + RIGID_AT),
        best_alone=BEST_ALONE,
        training_alone=A_ALONE,
    )


@pytest.fixture
def recording(outcome: TuneOutcome) -> Recording:
    made = Recording(began_at=T0, num_slots=3)
    usage, seq = [], 0
    for began_at, jobs in ((T0, (A, GOOD, BAD)), (T0 + RIGID_AT, (A_AGAIN, GOOD_AGAIN, BAD_AGAIN))):
        for at, kind, place, task, data in HALF:
            seq, job_id = seq + 1, jobs[place]
            task_id = None if task is None else TaskId(f"{job_id}.{task}")
            made.add_event(
                Event(seq=seq, at=began_at + at, kind=kind, message="So.", job_id=job_id, task_id=task_id, data=data)
            )
        usage += [Usage(at=began_at + at, job_id=jobs[place], num_slots=num) for at, place, num in USAGE]
    digests = ("a" * 64, "b" * 64, "", "a" * 64, "b" * 64, "", "b" * 64, "a" * 64)
    most = (1, 2, 2, 1, 2, 2, 1, 1)
    made.set_state([job_detail(*one) for one in zip(JOBS, digests, most, strict=True)], usage)
    for job_id, label in zip(JOBS, ("A", "elastic #0", "elastic #1", "A again", "rigid #0", "rigid #1"), strict=False):
        made.add_job(job_id, label)
    made.set_search(outcome.rigid.view)
    return made


@pytest.fixture
def seen(recording: Recording) -> Seen:
    return recording.at(T0 + 100.0)
