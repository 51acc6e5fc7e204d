"""What the server has not stored of a task that ends, left in its LOG_DIR for the server that comes back.

Knows no connection: the link says what is to be left, and when all of it is stored after all.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pliant.api.unsent import pack
from pliant.core.job import TaskId
from pliant.core.ports import UNSENT_FILE
from pliant.files.folder import sync_folder, write_whole
from pliant.train.link.send_queue import Numbered


class UnsentFile:
    """The file of one task.

    Args:
        folder: the task's LOG_DIR.
        task_id: whose messages these are.
    """

    def __init__(self, folder: Path, task_id: TaskId) -> None:
        self._path = folder / UNSENT_FILE
        self._task_id = task_id

    def write(self, messages: Sequence[Numbered]) -> bool:
        """Leave these messages, oldest first; return whether all of them are there, also after a loss of power."""
        content, is_whole = pack(self._task_id, [(each.number, each.message) for each in messages])
        try:
            write_whole(self._path, content)
            sync_folder(self._path.parent)
        except OSError as error:
            print(f"pliant: what the server has not stored cannot be left in {self._path}: {error}", flush=True)
            return False
        return is_whole

    def remove(self) -> None:
        """Leave nothing: all is stored."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
