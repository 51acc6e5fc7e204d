"""What control keeps in memory of a job that has not ended, or whose processes have not: one frozen value.

The store holds the truth; whatever is here and not there (losses in a row, deadlines) may be forgotten in a restart.
Here stands what jobs of all kinds have. A kind that keeps more extends the class with that (`control.kinds`).
"""

# ruff: noqa: ARG002 - what a method here has no use for, one of a kind has

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self, TypeVar

from pliant.core.job import Generation, Job, JobId, NodeId, Task, TaskId
from pliant.core.lifecycle import JobState, TaskState
from pliant.core.ports import ExitFacts

L = TypeVar("L", bound="LiveJob")
V = TypeVar("V")
MAX_GIVEN_UP: Final = 16
"""So many of the slots that a job gave up are known."""
COMPETING = (JobState.PENDING, JobState.STARTING, JobState.RUNNING, JobState.PAUSED)
"""Jobs in these states are scheduled; those in others only give slots back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """A job has failed and its processes were killed; what they left behind comes with their exits and is quoted."""

    reason: str
    """Why it has failed, without the quotation."""
    blamed: Task | None = None
    """The process whose fault it was; None if that was forgotten in a restart of the server."""
    first_raised: bool = False
    """Quote the process that raised first, also if another one is blamed."""
    ended: tuple[tuple[Task, ExitFacts], ...] = ()
    """Its processes that have ended, in this order, and what they left behind."""
    until: float
    """The reason is final then, whoever has not ended yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveJob:
    """A job and its processes, as they stand."""

    job: Job
    tasks: Mapping[TaskId, Task] = field(default_factory=dict)
    """Oldest first; those that ended are dropped once they are written."""
    python: str | None = None
    """The interpreter of its environment, once that is ready."""
    target: int = 0
    """Tasks that the newest decision gives it."""
    resized_at: float | None = None
    given_up: tuple[tuple[NodeId, int], ...] = ()
    """Slots that the scheduler took from it, the newest last; no more than the last few."""
    held_until: float | None = None
    excluded: frozenset[NodeId] = frozenset()
    """Nodes on which its tasks do not live."""
    kill_at: Mapping[TaskId, float] = field(default_factory=dict)
    killed: Mapping[TaskId, str] = field(default_factory=dict)
    """Running tasks that Pliant has sent a SIGKILL, and why, in words that follow the task's name."""
    received: Mapping[TaskId, int] = field(default_factory=dict)
    """The number of the newest message of each running task that this server has taken in."""
    failing: Failing | None = None
    """It has failed; that becomes its state when its processes are gone and what they wrote can be quoted."""
    adopted_at: float = 0.0
    """When this server took charge of it; start deadlines of its older tasks count from here."""
    slept_s: float = 0.0
    """The server stood still for this long since then; start deadlines are later by it."""
    ran_s: float = 0.0
    """It has held slots for this long before `held_since`."""
    held_since: float | None = None
    """When it was given the slots that it holds; None if it holds none."""
    stacks_at: float | None = None
    """When somebody last asked where its processes are."""

    @property
    def id(self) -> JobId:
        return self.job.id

    @property
    def label(self) -> str:
        """The job for people: its id and its name."""
        return f"{self.job.id} ({self.job.spec.name})"

    @property
    def running(self) -> tuple[Task, ...]:
        """Its processes that have not ended, oldest first."""
        return tuple(task for task in self.tasks.values() if not task.ended)

    @property
    def staying(self) -> tuple[Task, ...]:
        """Its processes that nobody has asked to leave."""
        return tuple(task for task in self.running if task.state is not TaskState.LEAVING)

    @property
    def unprepared(self) -> bool:
        """Its environment is not ready: no task of it can be started."""
        return self.job.spec.environment is not None and self.python is None

    @property
    def waits(self) -> bool:
        """It is to run after others that are not over."""
        return bool(self.job.after or self.job.after_any)

    @property
    def on_hold(self) -> bool:
        """It takes no slots until somebody releases it."""
        return bool(self.job.hold)

    @property
    def num_slots(self) -> int:
        return len({(task.node_id, slot) for task in self.running for slot in task.slots})

    @property
    def limit_at(self) -> float | None:
        """When its time is over; None while it holds no slots, or if it has no limit."""
        limit_s = self.job.spec.time_limit_s
        if limit_s is None or self.held_since is None or not self.competes:
            return None
        return self.held_since + limit_s - self.ran_s

    @property
    def competes(self) -> bool:
        return self.job.state in COMPETING and self.failing is None

    @property
    def wants_slots(self) -> bool:
        """It takes part in decisions: nothing but the scheduler keeps it from slots."""
        return self.competes and not (self.waits or self.unprepared or self.on_hold)

    @property
    def over(self) -> bool:
        """It has ended, or has failed and waits for its processes to be gone; nothing that they say matters now."""
        return self.job.ended or self.failing is not None

    def give_up(self, tasks: Iterable[Task]) -> Self:
        """Return the job that has been told to give up the slots of these tasks."""
        slots = [(task.node_id, slot) for task in tasks for slot in task.slots]
        newest_first = [*dict.fromkeys(reversed((*self.given_up, *slots)))]
        return replace(self, given_up=tuple(newest_first[MAX_GIVEN_UP - 1 :: -1]))

    def has_given_up(self, task: Task) -> bool:
        """Tell whether it was told to give up all slots of a task before."""
        return all((task.node_id, slot) in self.given_up for slot in task.slots)

    # What a kind may know better

    @property
    def proven(self) -> bool:
        """It may start more tasks than its minimum."""
        return True

    @property
    def open_generations(self) -> Mapping[int, Generation]:
        """By number; they are stored whenever they change, and dropped once they are over and written."""
        return {}

    def is_out_of_reach(self, silent: Container[NodeId]) -> bool:
        """Tell whether all who could go on with its work are on machines that nothing is heard of: perhaps they do."""
        return False

    def is_needed(self, task_id: TaskId) -> bool:
        """Tell whether a task that is asked to leave has something to hand over before it can be ended."""
        return False

    def ends_by_itself(self, task_id: TaskId) -> bool:
        """Tell whether a task exits without being asked when its job completes."""
        return False

    def close(self) -> Self:
        """Return the job with nothing under way: it has ended, or holds no slots any more."""
        return self

    def postpone(self, seconds: float) -> Self:
        """Return the job with its deadlines moved: the server could not hear for so long what would meet them."""
        kill_at = {task_id: at + seconds for task_id, at in self.kill_at.items()}
        return replace(self, kill_at=kill_at, slept_s=self.slept_s + seconds)

    def keep_tasks(self, task_ids: Container[TaskId]) -> Self:
        """Return the job with nothing that concerns other tasks than these; the job itself if nothing does."""
        return replace_parts(
            self,
            tasks=of_tasks(self.tasks, task_ids),
            kill_at=of_tasks(self.kill_at, task_ids),
            killed=of_tasks(self.killed, task_ids),
            received=of_tasks(self.received, task_ids),
        )


def of_tasks(known: Mapping[TaskId, V], task_ids: Container[TaskId]) -> Mapping[TaskId, V]:
    """Return what is known of these tasks; the same mapping if it is of no others."""
    if all(task_id in task_ids for task_id in known):
        return known
    return {task_id: one for task_id, one in known.items() if task_id in task_ids}


def replace_parts(live: L, **parts: Any) -> L:
    """Return the job with these parts; the job itself if they are its own."""
    return live if all(getattr(live, name) is part for name, part in parts.items()) else replace(live, **parts)


def task_number(task_id: TaskId) -> int:
    """Return n of `job-1.n`."""
    return int(task_id.rpartition(".")[2])


def job_of(task_id: str) -> JobId:
    """Return the job that a task id names, whether or not there is one."""
    return JobId(task_id.rpartition(".")[0])
