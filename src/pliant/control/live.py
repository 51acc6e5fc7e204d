"""What control keeps in memory of a job that has not ended, or whose processes have not: one frozen value.

The store holds the truth; whatever is here and not there (losses in a row, deadlines) may be forgotten in a restart.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pliant.core.job import Generation, Job, JobId, Task, TaskId
from pliant.core.lifecycle import JobState, TaskState
from pliant.core.plan import TaskView, WorkloadView
from pliant.policy.membership import Membership

COMPETING = (JobState.PENDING, JobState.STARTING, JobState.RUNNING, JobState.PAUSED)
"""Jobs in these states are scheduled; those in others only give slots back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveJob:
    """A job, its processes and its membership, as they stand."""

    job: Job
    membership: Membership
    tasks: Mapping[TaskId, Task] = field(default_factory=dict)
    """Oldest first; those that ended are dropped once they are written."""
    generations: Mapping[int, Generation] = field(default_factory=dict)
    """Forming and active ones; those that are over are dropped once they are written."""
    target: int = 0
    """Tasks that the newest decision gives it."""
    trained: bool = False
    """A generation of it has trained, in this life of the server or before."""
    step: int = 0
    """Steps committed, as far as anybody has told."""
    resized_at: float | None = None
    held_until: float | None = None
    num_losses: int = 0
    """Losses in a row without a committed step in between."""
    loss_step: int = 0
    """`step` at the newest loss."""
    loss_task: int = 0
    """Number of the newest task at the newest loss that was counted; later losses of older tasks belong to it."""
    kill_at: Mapping[TaskId, float] = field(default_factory=dict)
    virtual_workers: int | None = None
    """V as the script told, if it did."""
    finished: frozenset[TaskId] = frozenset()
    """Tasks that said that all epochs are trained."""
    adopted_at: float = 0.0
    """When this server took charge of it; start deadlines of its older tasks count from here."""

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
        """Its processes that nobody has told to leave."""
        return tuple(task for task in self.running if task.state is not TaskState.LEAVING)

    @property
    def proven(self) -> bool:
        """A generation of it trains, or has just been lost: more tasks can join.

        Before that it gets its minimum only: a script that cannot start fails once and not on every slot, and the first
        task does not share its cores with the start of others that would have to wait for it.
        """
        return self.membership.current is not None

    @property
    def num_slots(self) -> int:
        return sum(len(task.slots) for task in self.running)

    @property
    def competes(self) -> bool:
        return self.job.state in COMPETING

    def view(self) -> WorkloadView:
        """Return what the scheduler sees of it."""
        return WorkloadView(
            id=self.job.id,
            name=self.job.spec.name,
            priority=self.job.priority,
            min_tasks=self.job.min_tasks if self.competes else 0,
            max_tasks=self.job.max_tasks if self.competes else 0,
            slots_per_task=self.job.spec.slots_per_task,
            submitted_at=self.job.submitted_at,
            tasks=tuple(
                TaskView(
                    id=task.id,
                    node_id=task.node_id,
                    slots=task.slots,
                    leaving=task.state is TaskState.LEAVING or not self.competes,
                )
                for task in self.running
            ),
            resized_at=self.resized_at,
            held_until=self.held_until,
        )


def task_number(task_id: TaskId) -> int:
    """Return n of `job-1.n`."""
    return int(task_id.rpartition(".")[2])


def job_of(task_id: str) -> JobId:
    """Return the job that a task id names, whether or not there is one."""
    return JobId(task_id.rpartition(".")[0])
