"""What is remembered of what was brought: of each tree of the server's own, its listing's digest and its last use."""

import json
import threading
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from pliant.files.folder import write_whole

_FILE: Final = ".brought"


class Brought:
    """A file in the agent's own folder. Safe to use from any thread; a file that is lost costs a look at each tree."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / _FILE
        self._lock = threading.Lock()
        self._known: dict[str, tuple[str, float]] = {}
        with suppress(OSError, ValueError, TypeError):
            found = json.loads(self._path.read_text())
            self._known = {str(path): (str(digest), float(at)) for path, (digest, at) in found.items()}

    def digest(self, path: str) -> str:
        """Return the digest of the listing by which a path was brought last; empty: of none."""
        return self._known.get(path, ("", 0.0))[0]

    def note(self, path: str, digest: str, at: float) -> None:
        """Take note that a path is here."""
        with self._lock:
            self._known[path] = (digest, at)
            self._write()

    def forget(self, path: str) -> None:
        """Take note that a path is not here any more."""
        with self._lock:
            if self._known.pop(path, None) is not None:
                self._write()

    def take_unused(self, before: float, *, but: Collection[str]) -> list[str]:
        """Forget what was not brought since then, seconds since the epoch, but for some paths, and return it."""
        with self._lock:
            unused = [path for path, (_, at) in self._known.items() if at < before and path not in but]
            for path in unused:
                del self._known[path]
            if unused:
                self._write()
        return unused

    def _write(self) -> None:
        with suppress(OSError):  # a disk that is full: see the class
            write_whole(self._path, json.dumps(self._known).encode(), durable=False)
