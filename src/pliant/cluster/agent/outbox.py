"""Exits that the listener is still to be told of. An exit counts as told once its record says so."""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pliant.cluster.zygote import records
from pliant.cluster.zygote.records import Record
from pliant.core.ports import TaskExit

log = logging.getLogger(__name__)


class Outbox:
    """Keeps exits until somebody listens. `tell` is for one thread; the rest is safe from any."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._waiting: deque[tuple[TaskExit, Record]] = deque()
        self.listener: Callable[[TaskExit], None] | None = None

    def put(self, ended: TaskExit, record: Record) -> None:
        """Remember to tell of an exit."""
        self._waiting.append((ended, record))

    def tell(self) -> None:
        """Tell the listener, if there is one, of all exits, in their order."""
        while (listener := self.listener) is not None and self._waiting:
            ended, record = self._waiting.popleft()
            try:
                listener(ended)
            finally:
                self._note(record)

    def _note(self, record: Record) -> None:
        try:
            records.write(self._state_dir, replace(record, reported=True))
        except OSError as error:
            log.warning("the exit of task %s will be told again by the next server: %s", record.task_id, error)
