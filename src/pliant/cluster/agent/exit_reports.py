"""The exits that nobody has acknowledged: each is sent until the adapter has it, and then its record says so."""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pliant.cluster.agent.messages import Exited
from pliant.cluster.zygote import records
from pliant.cluster.zygote.records import Record
from pliant.core.job import TaskId
from pliant.core.ports import TaskExit

_log = logging.getLogger(__name__)


class ExitReports:
    """Exits on their way to the adapter.

    Args:
        state_dir: the folder of the records.
        send: notes a message for the adapter.
    """

    def __init__(self, state_dir: Path, send: Callable[[Exited], None]) -> None:
        self._state_dir = state_dir
        self._send = send
        self._unacknowledged: dict[TaskId, tuple[TaskExit, Record | None]] = {}

    def report(self, ended: TaskExit, record: Record | None) -> None:
        """Send an exit; its record, if it has one, says that it was reported once the adapter acknowledges it."""
        self._unacknowledged[ended.task_id] = (ended, record)
        self._send(Exited(exit=ended))

    def resend(self) -> None:
        """Send every exit again that was not acknowledged."""
        for ended, _ in self._unacknowledged.values():
            self._send(Exited(exit=ended))

    def acknowledge(self, task_id: TaskId) -> None:
        """Record that a task's exit was reported."""
        _, record = self._unacknowledged.pop(task_id, (None, None))
        if record is None:
            return
        try:
            records.write(self._state_dir, replace(record, reported=True))
        except OSError as error:
            _log.warning("the exit of task %s will be reported again by the next server: %s", task_id, error)
