"""What control keeps in memory of a job that has not ended, or whose processes have not: one frozen value.

The store holds the truth; whatever is here and not there (losses in a row, deadlines) may be forgotten in a restart.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pliant.core.job import Generation, Job, JobId, NodeId, Task, TaskId
from pliant.core.lifecycle import JobState, TaskState
from pliant.core.ports import ExitFacts
from pliant.policy.elastic.diagnose import WorkerLoss
from pliant.policy.elastic.membership import Membership

COMPETING = (JobState.PENDING, JobState.STARTING, JobState.RUNNING, JobState.PAUSED)
"""Jobs in these states are scheduled; those in others only give slots back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """A job has failed and its processes were killed; what they left behind comes with their exits and is quoted."""

    reason: str
    """Why it has failed, without the quotation."""
    blamed: Task
    """The process whose fault it was."""
    first_raised: bool
    """Quote the process that raised first, also if another one is blamed."""
    ended: tuple[tuple[Task, ExitFacts], ...]
    """Its processes that have ended, in this order, and what they left behind."""
    until: float
    """The reason is final then, whoever has not ended yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveJob:
    """A job, its processes and its membership, as they stand."""

    job: Job
    membership: Membership
    tasks: Mapping[TaskId, Task] = field(default_factory=dict)
    """Oldest first; those that ended are dropped once they are written."""
    generations: Mapping[int, Generation] = field(default_factory=dict)
    """Forming and active ones; those that are over are dropped once they are written."""
    python: str | None = None
    """The interpreter of its environment, once that is ready."""
    target: int = 0
    """Tasks that the newest decision gives it."""
    trained: bool = False
    """A generation of it has trained, in this life of the server or before."""
    step: int = 0
    """Steps committed, as far as is known."""
    resized_at: float | None = None
    held_until: float | None = None
    losses: tuple[WorkerLoss, ...] = ()
    """The newest losses of its tasks, oldest first."""
    joined: Mapping[TaskId, int] = field(default_factory=dict)
    """At which step a running task became a member of a generation for the first time."""
    excluded: frozenset[NodeId] = frozenset()
    """Nodes on which its tasks do not live."""
    kill_at: Mapping[TaskId, float] = field(default_factory=dict)
    killed: Mapping[TaskId, str] = field(default_factory=dict)
    """Running tasks that Pliant has sent a SIGKILL, and why, in words that follow the task's name."""
    fenced: Mapping[TaskId, WorkerLoss | None] = field(default_factory=dict)
    """Those of them that are lost already as far as their job is concerned; only their slots are not free yet. With
    each stands the loss that is counted when its exit says at which step it was; None if nobody is to blame."""
    failing: Failing | None = None
    """It has failed; that becomes its state when its processes are gone and what they wrote can be quoted."""
    raised: Mapping[TaskId, str] = field(default_factory=dict)
    """Running tasks whose program raised, which the others survive: the error's last line."""
    recovers_until: float | None = None
    """After a loss: until then, or until its survivors have done a step, nobody starts who only makes it larger."""
    raised_at: int | None = None
    """The step that was being computed when a worker last ended by its own fault; the next one there ends the job."""
    virtual_workers: int | None = None
    """V as the script uses it, once that is known."""
    finished: frozenset[TaskId] = frozenset()
    """Tasks that said that all epochs are trained; of a fixed job, those that ended with exit code 0."""
    restarting: bool = False
    """A fixed job whose processes failed: it keeps its place in line until all start again."""
    adopted_at: float = 0.0
    """When this server took charge of it; start deadlines of its older tasks count from here."""
    slept_s: float = 0.0
    """The server stood still for this long since then; start deadlines are later by it."""

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
    def proven(self) -> bool:
        """A generation of it trains: more tasks can join.

        Before that it gets its minimum only: a script that cannot start fails once and not on every slot, and neither
        the first task nor the survivors of a loss share their cores with the start of others that wait for them.
        """
        return self.membership.current is not None and self.recovers_until is None

    @property
    def unprepared(self) -> bool:
        """Its environment is not ready: no task of it can be started."""
        return self.job.spec.environment is not None and self.python is None

    @property
    def num_slots(self) -> int:
        return sum(len(task.slots) for task in self.running)

    @property
    def competes(self) -> bool:
        return self.job.state in COMPETING and self.failing is None

    @property
    def over(self) -> bool:
        """It has ended, or has failed and waits for its processes to be gone; nothing that they say matters now."""
        return self.job.ended or self.failing is not None


def task_number(task_id: TaskId) -> int:
    """Return n of `job-1.n`."""
    return int(task_id.rpartition(".")[2])


def job_of(task_id: str) -> JobId:
    """Return the job that a task id names, whether or not there is one."""
    return JobId(task_id.rpartition(".")[0])
