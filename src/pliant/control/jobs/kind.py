"""What differs from one kind of workload to another, behind one interface (`Kind`), and which kind a job is (`Kinds`).

A kind holds no state: all of that is in the job, a `LiveJob` that the kind may extend with what only its jobs have. It
notes what it decides in a draft and performs nothing. Those who call it hold control's lock. A new kind is a class in
`control.kinds` and its name in the list there.
"""

# ruff: noqa: ARG002 - what a method here has no use for, one of another kind has

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pliant.control.jobs.draft import Draft, DumpStacks, L
from pliant.control.jobs.live import LiveJob
from pliant.control.settings import Timeouts
from pliant.core.errors import Problem
from pliant.core.job import Generation, Job, JobSpec, Task, TaskId
from pliant.core.lifecycle import TaskState
from pliant.core.link import FromTask
from pliant.core.plan import Placement
from pliant.core.ports import TaskExit
from pliant.core.workload import TaskView, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStart:
    """One process to be started, and what it is given besides what the processes of all kinds get."""

    placement: Placement
    env: Mapping[str, str] = field(default_factory=dict)
    is_elastic: bool = True
    """What IBM's variable of that name says of it."""
    sees: tuple[int, ...] = ()
    """Slots whose devices it can see, in this order; its own if empty."""
    note: str = ""
    """What people are to know of it, in words that follow its slots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What the store knows of a job when a server starts."""

    tasks: tuple[Task, ...]
    """All it ever had, oldest first."""
    generations: tuple[Generation, ...]


class Kind(Protocol[L]):
    """One kind of workload. What a method does here is right for a kind whose tasks need nothing special."""

    name: str
    speaks: bool = False
    """Its tasks have control links: one that ended by itself may have said why, and is waited for a moment."""
    replaces_unheard: bool = False
    """A task of which nothing is heard does no harm: others start in its place as soon as its machine is away."""

    def claims(self, spec: JobSpec) -> bool:
        """Tell whether what was asked for is of this kind."""
        ...

    def begin(self, job: Job, now: float) -> L:
        """Return a job that this server takes charge of now, as if it had never had a process."""
        ...

    # What it wants

    def view(self, live: L) -> Workload:
        """Return what the scheduler sees of a job."""
        return workload_of(self, live)

    def size(self, spec: JobSpec) -> str:
        """Return how many tasks were asked for, in words."""
        if spec.min_tasks == spec.max_tasks:
            return "1 task" if spec.max_tasks == 1 else f"{spec.max_tasks} tasks"
        return f"{spec.min_tasks} to {spec.max_tasks} tasks"

    def problems(self, spec: JobSpec) -> tuple[Problem, ...]:
        """Return what is wrong with the numbers that were asked for."""
        return problems_of_bounds(spec.min_tasks, spec.max_tasks, spec.virtual_workers)

    def notes(self, spec: JobSpec, code: Path) -> tuple[str, ...]:
        """Return what the owner of a job should know of its code before it is run; the code has no problems."""
        return ()

    def check_resize(self, live: L, min_tasks: int, max_tasks: int) -> None:
        """Do nothing if a person may change how many tasks a job has.

        Raises:
            Conflict: nobody can, for this kind.
            InvalidInput: with everything that is wrong with these numbers.
        """
        return

    # How its tasks start

    def starts(self, draft: Draft, live: L, placements: Sequence[Placement]) -> tuple[TaskStart, ...]:
        """Return which processes start now, on slots that the scheduler has just given to the job."""
        ...

    def leavers(self, live: L, task_ids: tuple[TaskId, ...]) -> tuple[TaskId, ...]:
        """Return who leaves when the scheduler takes the slots of these tasks."""
        return task_ids

    def regroup(self, draft: Draft, live: L, cause: str) -> L:
        """Take note that tasks were started or were asked to leave, for this cause."""
        return live

    def observe(self, draft: Draft, live: L, pids: Mapping[TaskId, int]) -> None:
        """Take note of which processes exist now."""
        return

    # What its tasks say, and how they end

    def receive(self, draft: Draft, live: L, task: Task, message: FromTask, number: int) -> None:
        """Take in a message of a live task."""
        return

    def take_exit(self, draft: Draft, live: L, task: Task, ended: TaskExit) -> None:
        """Decide what the end of a process means; its exit code is noted already."""
        ...

    def lose_vanished(self, draft: Draft, live: L, task: Task, how: str) -> None:
        """Decide what it means that a process is gone for which nobody is to blame.

        It ended while no server was there and left no trace, or its machine could not start it.
        """
        self.take_exit(draft, live, task, TaskExit(task_id=task.id, exit_code=None, error=how))

    def fence(self, draft: Draft, live: L, task: Task, how: str) -> None:
        """Decide what it means that a task with a control link gives no sign of life."""
        return

    # What time does

    def kill_late(self, draft: Draft, live: L, task: Task) -> L:
        """End a process that was to be gone by now."""
        ...

    def pass_time(self, draft: Draft, live: L) -> None:
        """Do what is due for a job that has not ended, besides killing processes that were to be gone."""
        return

    def next_deadline(self, live: L) -> float | None:
        """Return when `pass_time` next has something to do; None if never."""
        return None

    # What people ask

    def ask_stacks(self, draft: Draft, live: L) -> L:
        """Make its processes show where their threads are: in their stderr, or in an answer if the kind says so."""
        for task in live.running:
            draft.act(DumpStacks(task_id=task.id))
        return live

    def remark(self, live: L, now: float) -> str:
        """Return what people are to know of how it goes, in sentences; empty if there is nothing."""
        return ""

    # What a restart of the server does

    def restore(self, live: L, past: Remembered, timeouts: Timeouts) -> L:
        """Return a job, rebuilt by a new server, with what only its kind knows of it."""
        return live

    def resume(self, draft: Draft, live: L) -> None:
        """Take note that a new server has taken charge of a job, which has live processes or not."""
        return


class Kinds:
    """All kinds that a server knows. Of two that claim a spec the first has it."""

    def __init__(self, *kinds: Kind[Any]) -> None:
        self._kinds = kinds

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called."""
        return tuple(kind.name for kind in self._kinds)

    def of(self, job: Job) -> Kind[Any]:
        """Return the kind of a job."""
        return self.of_spec(job.spec)

    def of_spec(self, spec: JobSpec) -> Kind[Any]:
        """Return the kind of what was asked for.

        Raises:
            LookupError: no kind claims it; a mistake of ours, since the request was accepted.
        """
        for kind in self._kinds:
            if kind.claims(spec):
                return kind
        raise LookupError(f"no kind of workload claims {spec.name!r}")


def workload_of(kind: Kind[Any], live: LiveJob, *, num_done: int = 0, pinned: bool = False) -> Workload:
    """Return what the scheduler sees of a job.

    A job that has ended, is stopping or is held wants nothing, but holds its slots until its processes are gone.

    Args:
        kind: the job's.
        live: the job.
        num_done: so many of its tasks have done their part and need no slot any more.
        pinned: it cannot be paused without losing its work.
    """
    job, wants = live.job, live.competes and not live.on_hold
    return Workload(
        id=job.id,
        kind=kind.name,
        name=job.spec.name,
        priority=job.priority,
        min_tasks=job.min_tasks - num_done if wants else 0,
        max_tasks=job.max_tasks - num_done if wants else 0,
        slots_per_task=job.spec.slots_per_task,
        slot_share=job.spec.slot_share,
        submitted_at=job.submitted_at,
        tasks=tuple(
            TaskView(
                id=task.id,
                node_id=task.node_id,
                slots=task.slots,
                leaving=task.state is TaskState.LEAVING or not live.competes,
            )
            for task in live.running
        ),
        given_up=live.given_up,
        resized_at=live.resized_at,
        held_until=live.held_until,
        excluded=live.excluded,
        queue=job.queue,
        owner=job.owner,
        pinned=pinned and wants,
    )


def problems_of_bounds(min_tasks: int, max_tasks: int, virtual_workers: int | None) -> tuple[Problem, ...]:
    """Return what is wrong with these limits of a job's size; V is None as long as nobody knows it."""
    problems = []
    if min_tasks > max_tasks:
        problems.append(
            Problem(
                field="min_tasks",
                message=f"{min_tasks} is above max_tasks {max_tasks}; lower the one or raise the other",
            )
        )
    if virtual_workers is not None and max_tasks > virtual_workers:
        problems.append(
            Problem(
                field="max_tasks",
                message=f"{max_tasks} is above virtual_workers {virtual_workers}: the global batch of a job cannot be "
                f"cut finer later; lower max_tasks, or submit again with `--virtual-workers {max_tasks}`",
            )
        )
    return tuple(problems)
