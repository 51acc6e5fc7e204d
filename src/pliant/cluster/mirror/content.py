"""Files by what is in them: whatever a machine fetches comes once, is whole or not there, and goes on where it stopped.

One folder on each disk that files are brought to: `ab/ab34…` is a file whose SHA-256 that is, `ab34….part` one that is
on its way. Small files are copied to where they belong, so that each has its own mode and times; large ones of the
server's own are the same file under a second name; other large ones are moved.
"""

import hashlib
import os
import secrets
import stat
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from pliant.core.errors import Conflict
from pliant.files.folder import copy_file
from pliant.files.space import check_room

FOLDER: Final = ".pliant-content"
MARK: Final = ".mirror"
"""In a folder that is a copy: of which pool."""
LARGE_BYTES: Final = 1 << 20
_MOVED_BYTES: Final = 64 << 20
"""A file of a job that is so large is not kept twice."""
_PART: Final = ".part"


class ContentFolder:
    """The files of one folder. Safe to use from any thread.

    Args:
        root: on the disk that the files are to be on; made if it is missing.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._coming: dict[str, threading.Event] = {}
        self._lock = threading.Lock()

    def has(self, digest: str) -> bool:
        """Tell whether a file is here."""
        return self._path(digest).is_file()

    def find(self, digest: str) -> Path | None:
        """Return where a file is; None: it is not here."""
        return self._path(digest) if self.has(digest) else None

    def begun(self, digest: str) -> int:
        """Return how much of a file is here that has not come whole."""
        with suppress(OSError):
            return self._part(digest).stat().st_size
        return 0

    def claim(self, digests: Iterable[str]) -> Iterator[str]:
        """Yield those that the caller is to fetch; it releases each. The others are here, or on their way."""
        for digest in digests:
            with self._lock:
                if digest in self._coming or self.has(digest):
                    continue
                self._coming[digest] = threading.Event()
            yield digest

    def release(self, digest: str) -> None:
        """Take note that the caller has fetched a file, or has given up."""
        with self._lock:
            self._coming.pop(digest).set()

    def wait(self, digest: str) -> bool:
        """Wait while somebody fetches a file; tell whether it is here then."""
        with self._lock:
            coming = self._coming.get(digest)
        if coming is not None:
            coming.wait()
        return self.has(digest)

    def write(self, digest: str, offset: int, num_bytes: int, pieces: Iterable[bytes]) -> None:
        """Write the rest of a file that is on its way, and keep it if it is what it is called.

        Raises:
            Conflict: it is something else.
            NoSpace: the disk has no room for it.
            OSError: the disk does not take it.
        """
        part = self._part(digest)
        part.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_room(self._root, num_bytes)
        whole = hashlib.sha256()
        with part.open("r+b" if offset else "wb") as file:
            while offset > file.tell() and (piece := file.read(min(LARGE_BYTES, offset - file.tell()))):
                whole.update(piece)
            for piece in pieces:
                file.write(piece)
                whole.update(piece)
            file.truncate()
        if whole.hexdigest() != digest:
            part.unlink()
            raise Conflict(f"what came is not what was asked for (SHA-256 {digest:.16}…): it has changed meanwhile")
        part.chmod(0o644)
        part.replace(self._path(digest))

    def draft(self, digest: str, *, mode: int, is_own: bool) -> Path:
        """Return a file of this content, for the caller to move to its place.

        Args:
            digest: of a file that is here.
            mode: which it is to have; files under several names have one.
            is_own: nobody but the server has written it, and nobody changes it here.

        Raises:
            OSError: it is not here, or the disk does not take it.
        """
        kept = self._path(digest)
        draft = self._root / f".draft-{secrets.token_hex(8)}"
        facts = kept.stat()
        is_alike = facts.st_nlink == 1 or stat.S_IMODE(facts.st_mode) == mode & 0o777
        if is_own and is_alike and facts.st_size >= LARGE_BYTES:
            os.link(kept, draft)
        elif facts.st_size >= _MOVED_BYTES:
            with self._lock:
                kept.replace(draft)
        else:
            os.utime(kept)  # it is of use
            copy_file(kept, draft)
        return draft

    def sweep(self, before: float) -> None:
        """Remove what nothing here is made of and was not asked for since then, seconds since the epoch."""
        for path in [*self._root.glob("*/*"), *self._root.glob(".draft-*")]:
            with suppress(OSError):
                facts = path.stat()
                if facts.st_ctime < before and facts.st_nlink == 1:
                    path.unlink()

    def _path(self, digest: str) -> Path:
        return self._root / digest[:2] / digest

    def _part(self, digest: str) -> Path:
        return self._root / digest[:2] / f"{digest}{_PART}"
