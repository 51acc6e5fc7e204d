"""What an agent needs of whoever brings files to its machine and sends them back, if it does not see the server's."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from pliant.cluster.zygote.records import Record
from pliant.core.job import JobId, TaskId
from pliant.core.ports import StartOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesReady:
    """What a task needs is here, or what it wrote is with the server."""

    task_id: TaskId
    trouble: str = ""
    """Why it is not, in words."""
    is_unfit: bool = False
    """That is a reason of this machine's."""


class FileMover(Protocol):
    """Brings and sends. Nothing here waits: what was done is there to be received when the file is ready."""

    def fileno(self) -> int:
        """Return the file to wait for."""
        ...

    def bring(self, order: StartOrder) -> None:
        """Bring what a task needs."""
        ...

    def adopt(self, record: Record) -> None:
        """Send what a task writes that an earlier agent has begun."""
        ...

    def send_back(self, record: Record) -> None:
        """Send all that a task has written that has ended."""
        ...

    def forget(self, task_id: TaskId) -> None:
        """Let go of a task that was not begun."""
        ...

    def receive(self) -> Collection[FilesReady]:
        """Return what was done."""
        ...

    def retain(self, job_ids: Collection[JobId]) -> None:
        """Remove the files of all other jobs that have no task here."""
        ...

    def close(self) -> None:
        """Let go; what is here stays."""
        ...
