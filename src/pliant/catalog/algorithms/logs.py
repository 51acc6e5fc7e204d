"""What algorithms print, by search: the newest of it, however much there is."""

import os
import threading
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

MAX_BYTES: Final = 1 << 20
"""As much is read back at most; on the disk there may be twice as much."""
_NEW: Final = ".log"
_OLD: Final = ".old"


class AlgorithmLogs:
    """The logs in one folder. Safe to call from any thread; a full disk loses what was printed, and nothing else."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._lock = threading.Lock()

    def append(self, search: str, data: bytes) -> None:
        """Add a piece of what the algorithm of a search has printed."""
        data = data[-self._max_bytes :]
        with self._lock, suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            new = self._path(search, _NEW)
            with new.open("ab") as file:
                is_full = file.tell() + len(data) > self._max_bytes
                if not is_full:
                    file.write(data)
            if is_full:
                new.replace(self._path(search, _OLD))
                new.write_bytes(data)

    def read(self, search: str) -> str:
        """Return the newest of what was printed; it is a stranger's, and what is no UTF-8 is replaced."""
        with self._lock:
            both = b"".join(map(_content, (self._path(search, _OLD), self._path(search, _NEW))))
        return both[-self._max_bytes :].decode("utf-8", "replace")

    def remove(self, search: str) -> None:
        """Forget what was printed for a search."""
        with self._lock:
            for end in (_OLD, _NEW):
                self._path(search, end).unlink(missing_ok=True)

    def sweep(self, searches: Collection[str]) -> None:
        """Forget what was printed for all searches but these."""
        kept = {self._path(search, end).name for search in searches for end in (_OLD, _NEW)}
        with self._lock, suppress(FileNotFoundError):
            for name in os.listdir(self._folder):
                if name not in kept:
                    (self._folder / name).unlink(missing_ok=True)

    def _path(self, search: str, end: str) -> Path:
        return self._folder / f"{search}{end}"


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
