"""The settings of control, and where a job's files lie. It reads no environment and no clock."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pliant.api.trust import Trust
from pliant.core.job import JobId, NodeId, TaskId
from pliant.core.plan import Policy
from pliant.files.untrusted.path import UntrustedPath
from pliant.policy.elastic.diagnose import Rules

ARCHIVE: Final = "archive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long control waits for what, seconds."""

    lease_s: float = 2.0
    """A task that shows no sign of life on its control link for this long counts as hung: it is killed and replaced."""
    leave_s: float = 30.0
    """A task that has nothing left to do (it left, or its job has ended) is killed this long after."""
    stop_s: float = 60.0
    """The tasks of a job that a person stopped are killed this long after if they still train."""
    silent_s: float = 30.0
    """A task that an earlier server started is killed if it has not said hello to this one by then: a loss could not be
    recovered from while nobody knows where it stands."""
    return_s: float = 6.0
    """The same for one that was ready to train before: links are tried once a second at least."""
    messages_s: float = 1.0
    """After a process ended by itself, its last messages on the link are awaited this long."""
    backoff_s: float = 1.0
    """A job is held this long after its second loss without progress, twice as long after the third, and so on."""
    max_backoff_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlSettings:
    """What is decided once, when the server starts."""

    home: Path
    """The state folder."""
    url: str
    """Where tasks reach this server."""
    trust: Trust = field(default_factory=Trust)
    """By what tasks know that it is this server, if the URL begins with https."""
    server_file: Path | None = None
    """Where this machine's tasks read which server leads now."""
    secret: bytes = field(repr=False)
    """Job tokens derive from it."""
    challenge: str = ""
    """This server's own, which tasks prove their tokens with; it stands in `server_file`."""
    policy: Policy = field(default_factory=Policy)
    open_folders: tuple[Path, ...] = ()
    """Folders whose files everybody may name by their whole paths, whatever their modes."""
    ibm_modules: Path | None = None
    """Folder of IBM's module names, put on the path of every task."""
    rules: Rules = field(default_factory=Rules)
    """How often tasks may be lost before the job is stopped with a diagnosis."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    encrypt_state: bool = False
    """State that tasks of a training on different hosts send each other is encrypted."""

    def folders(self, job_id: JobId) -> "JobFolders":
        """Return where the files of a job lie."""
        return JobFolders(root=self.home / "jobs" / job_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFolders:
    """Where the files of a job lie. What its tasks write to is untrusted; the folder above it is ours."""

    root: Path

    @property
    def code(self) -> UntrustedPath:
        return UntrustedPath(self.root, "code")

    @property
    def submitted(self) -> UntrustedPath:
        """Notes of the code as it was submitted; without walls tasks of the server's user could write to them, too."""
        return UntrustedPath(self.root, "submitted")

    @property
    def archive(self) -> UntrustedPath:
        """The code as it was sent, packed: what is run if the job is run again, whatever its tasks wrote to `code`."""
        return self.submitted / ARCHIVE

    @property
    def result(self) -> UntrustedPath:
        return UntrustedPath(self.root, "result")

    @property
    def model(self) -> UntrustedPath:
        return self.result / "model"

    @property
    def weights(self) -> UntrustedPath:
        return self.model / "model.pt"

    @property
    def checkpoints(self) -> UntrustedPath:
        return self.result / "checkpoint"

    @property
    def state(self) -> UntrustedPath:
        return UntrustedPath(self.root, "state")

    @property
    def logs(self) -> UntrustedPath:
        return self.result / "log"

    @property
    def logs_removed(self) -> Path:
        """Says when and why a clean-up removed the logs, in words; ours."""
        return self.root / "logs-removed"

    def log(self, task_id: TaskId, node_id: NodeId) -> UntrustedPath:
        """Return LOG_DIR of one task."""
        return self.logs / log_name(task_id, node_id)


def log_name(task_id: TaskId, node_id: NodeId) -> str:
    """Return what LOG_DIR of a task is called among those of its job."""
    return f"{task_id}.{node_id}"
