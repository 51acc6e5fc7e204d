"""Who is due is known without a look at all jobs, and is the same as with one."""

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pliant.control.jobs.inbox import ControlInbox
from pliant.control.jobs.ledger import Ledger
from pliant.control.kinds import KINDS
from pliant.control.kinds.fixed import FixedJob
from pliant.control.loop.deadlines import Deadlines, next_deadline
from pliant.control.settings import ControlSettings
from pliant.core.job import Job, JobId, JobSpec, NodeId, Task, TaskId
from pliant.core.lifecycle import JobState, TaskState
from pliant.sim.clock import VirtualClock
from pliant.sim.cluster import SimCluster
from pliant.sim.store import MemoryStore
from pliant.sim.tasks import SimTasks
from pliant.sim.training import SimWork

SPEC = JobSpec(name="sleeps", script="sleeps.py", max_tasks=1, virtual_workers=1, fixed=True)
instants = st.integers(0, 20).map(float)
changes = st.lists(
    st.tuples(st.integers(0, 5), st.one_of(st.none(), instants, st.just("over"), st.just("due")), instants), max_size=40
)


def new_ledger() -> Ledger:
    clock = VirtualClock()
    cluster = SimCluster(clock, [])
    return Ledger(
        store=MemoryStore(),
        cluster=cluster,
        links=SimTasks(clock, cluster, lambda _job_id: SimWork()),
        clock=clock,
        settings=ControlSettings(home=Path("/nowhere"), url="", secret=b""),
        kinds=KINDS,
        inbox=ControlInbox(),
    )


def put(ledger: Ledger, number: int, at: float | None) -> None:
    """Have a job that is to be killed at an instant, or never."""
    job_id, task_id = JobId(f"job-{number}"), TaskId(f"job-{number}.1")
    live = ledger.get(job_id)
    if live is None:
        job = Job(
            id=job_id,
            spec=SPEC,
            owner="ada",
            state=JobState.RUNNING,
            priority=1,
            min_tasks=1,
            max_tasks=1,
            submitted_at=0.0,
        )
        task = Task(
            id=task_id, job_id=job_id, node_id=NodeId("a"), slots=(0,), state=TaskState.TRAINING, started_at=0.0
        )
        live = FixedJob(job=job, tasks={task_id: task})
    draft = ledger.draft()
    draft.put(replace(live, kill_at={} if at is None else {task_id: at}))
    ledger.commit(draft)


def end(ledger: Ledger, number: int) -> None:
    """Let a job be over, if there is one."""
    if (live := ledger.get(JobId(f"job-{number}"))) is not None:
        draft = ledger.draft()
        draft.put(replace(live, job=replace(live.job, state=JobState.COMPLETED), tasks={}, kill_at={}))
        ledger.commit(draft)


def by_a_look_at_all(ledger: Ledger) -> dict[JobId, float]:
    found = {job_id: next_deadline(KINDS, live) for job_id, live in ledger.jobs().items()}
    return {job_id: at for job_id, at in found.items() if at is not None}


@given(changes)
def test_who_is_due_is_who_a_look_at_all_jobs_finds(changes: list[tuple[int, float | str | None, float]]) -> None:
    ledger = new_ledger()
    deadlines = Deadlines(ledger)
    for number, change, now in changes:
        if change == "over":
            end(ledger, number)
        elif not isinstance(change, str):
            put(ledger, number, change)
        known = by_a_look_at_all(ledger)
        if change == "due":
            assert list(deadlines.due(now)) == [job_id for job_id, at in known.items() if at <= now]
        assert deadlines.next_at() == min(known.values(), default=None)


def test_a_job_that_is_due_and_stays_as_it_is_is_due_again() -> None:
    ledger = new_ledger()
    deadlines = Deadlines(ledger)
    put(ledger, 1, 5.0)

    assert (deadlines.due(4.0), deadlines.due(5.0), deadlines.due(5.0)) == ([], ["job-1"], ["job-1"])


def test_deadlines_that_move_again_and_again_are_not_kept() -> None:
    ledger = new_ledger()
    deadlines = Deadlines(ledger)
    for number in range(3):
        put(ledger, number, 1000.0 + number)
    for moved in range(1000):
        put(ledger, 0, 2000.0 + moved)
        deadlines.next_at()

    assert len(deadlines) < 100
