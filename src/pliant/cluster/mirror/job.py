"""One job that has tasks on this machine: its folders, and who reads and sends them when."""

import threading
from dataclasses import dataclass, field
from pathlib import Path

from pliant.cluster.mirror.bringing import ASK
from pliant.cluster.mirror.grants import JOBS, WRITTEN
from pliant.cluster.mirror.sending import SentTree
from pliant.core.job import TaskId
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.walking import list_folder

RESULT = "result"
LOGS = "log"
CHECKPOINTS = "checkpoint"
"""The folder in the results that its tasks ask for when they need it."""


@dataclass(slots=True, kw_only=True)
class MirroredJob:
    """A job, and what of its folders the server has. Whoever reads or sends files holds `files`, and of logs `logs`."""

    job_id: str
    root: Path
    tasks: dict[TaskId, None] = field(default_factory=dict)
    """Those that have begun here and whose exits were not told."""
    num_coming: int = 0
    """Tasks whose files are being brought."""
    is_adopted: bool = False
    """An earlier agent has begun tasks of it: what was brought for them is not known."""
    uses: set[str] = field(default_factory=set)
    """Other jobs whose files were brought for it."""
    paths: set[str] = field(default_factory=set)
    """What of the server's own was brought for it."""
    trees: dict[str, SentTree] = field(default_factory=dict)
    files: threading.Lock = field(default_factory=threading.Lock)
    logs: threading.Lock = field(default_factory=threading.Lock)
    is_sending: bool = False
    """Somebody is to look at its files, or does."""
    is_logging: bool = False
    """The same for its logs."""
    ask_at: float = 0.0
    """When what its tasks ask for is looked at next, monotonic time."""
    due_at: float = 0.0
    """When its files are looked at next, monotonic time."""

    def __post_init__(self) -> None:
        for name in WRITTEN:
            path = UntrustedPath(self.root, name)
            self.trees[name] = SentTree(path=str(path), place=path)

    @property
    def is_idle(self) -> bool:
        """It has no task here, and none is to come."""
        return not self.tasks and not self.num_coming

    @property
    def results(self) -> SentTree:
        """The folder of its results, with its logs."""
        return self.trees[RESULT]

    def log_root(self, name: str) -> str:
        """Return where logs lie in one of its folders; empty: there are none."""
        return LOGS if name == RESULT else ""

    def tree_of(self, path: str) -> SentTree | None:
        """Return which of its folders a path is."""
        return next((tree for tree in self.trees.values() if tree.path == path), None)

    def asked(self) -> list[UntrustedPath]:
        """Return what its tasks ask for."""
        folder = self.results.place / CHECKPOINTS
        return [
            folder / name for name, _ in list_folder(folder) if name.startswith(ASK) and not name.endswith(".failed")
        ]


def job_folder(home: Path, job_id: str) -> Path:
    """Return where the files of a job lie."""
    return home / JOBS / job_id


class MirroredJobs:
    """The jobs that have tasks here, or are to have some. Safe to use from any thread."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._jobs: dict[str, MirroredJob] = {}
        self._lock = threading.Lock()

    def all(self) -> list[MirroredJob]:
        """Return them."""
        with self._lock:
            return list(self._jobs.values())

    def of(self, task_id: TaskId, job_id: str = "") -> MirroredJob:
        """Return the job of a task."""
        with self._lock:
            return self._get(job_id or task_id.rpartition(".")[0])

    def expect(self, task_id: TaskId) -> None:
        """Take note that a task is to come, whose files are being brought."""
        with self._lock:
            self._get(task_id.rpartition(".")[0]).num_coming += 1

    def expect_no_more(self, job: MirroredJob) -> None:
        """Take note that a task has come, or does not."""
        with self._lock:
            job.num_coming -= 1
            self._drop_idle(job)

    def adopt(self, task_id: TaskId, job_id: str) -> None:
        """Take up a task that an earlier agent has begun."""
        with self._lock:
            job = self._get(job_id or task_id.rpartition(".")[0])
            job.tasks[task_id] = None
            job.is_adopted = True

    def let_go(self, task_id: TaskId, job_id: str = "") -> None:
        """Let go of a task, and of its job if it has no other."""
        with self._lock:
            job = self._get(job_id or task_id.rpartition(".")[0])
            job.tasks.pop(task_id, None)
            self._drop_idle(job)

    def _get(self, job_id: str) -> MirroredJob:
        if (job := self._jobs.get(job_id)) is None:
            job = self._jobs[job_id] = MirroredJob(job_id=job_id, root=job_folder(self._home, job_id))
        return job

    def _drop_idle(self, job: MirroredJob) -> None:
        if job.is_idle:
            self._jobs.pop(job.job_id, None)
