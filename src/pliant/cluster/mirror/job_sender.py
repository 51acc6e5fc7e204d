"""Sends what the tasks of a job have written on this machine: its logs, and all else. Knows not when that is due."""

import threading
from dataclasses import dataclass
from typing import Final

from pliant.cluster.mirror.connections import FileConnections, TaskConnection
from pliant.cluster.mirror.job import LOGS, MirroredJob
from pliant.core.errors import Conflict, Unavailable
from pliant.core.job import TaskId

_AGAIN_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSender:
    """Used by one thread at a time for the logs of a job, and by one for its files."""

    connections: FileConnections
    is_closed: threading.Event

    def send_all(self, job: MirroredJob, task_id: TaskId) -> list[str]:
        """Send all that there is; return what the server does not take.

        Raises:
            NotFound: it wants none of it.
        """
        while True:
            troubles: list[str] = []
            try:
                try:
                    with job.logs:
                        self.send_logs(job, task_id)
                except (Conflict, OSError) as error:  # no reason to keep its files back
                    troubles = [f"its logs: {error}"]
                with job.files:
                    return troubles + self.send_files(job, task_id, is_last=True)
            except Unavailable:
                if self.is_closed.wait(_AGAIN_S):
                    raise

    def send_logs(self, job: MirroredJob, task_id: TaskId) -> None:
        """Send what its logs have grown by.

        Raises:
            Unavailable, NotFound, Conflict: as of `SentTree.send_logs`.
        """
        with TaskConnection(self.connections, task_id) as taker:
            job.results.send_logs(taker, log_root=LOGS)

    def send_files(self, job: MirroredJob, task_id: TaskId, *, is_last: bool = False) -> list[str]:
        """Send what else has changed; return what the server does not take, in words.

        Raises:
            Unavailable, NotFound: as of `SentTree.send_files`.
        """
        troubles: list[str] = []
        with TaskConnection(self.connections, task_id) as taker:
            for name, tree in job.trees.items():
                if is_last:
                    tree.refused.clear()
                found = tree.send_files(taker, log_root=job.log_root(name), is_last=is_last)
                troubles += [f"{name}/{trouble}" for trouble in found]
        return troubles
