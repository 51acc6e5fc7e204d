"""Which files somebody else has written into a folder that we had filled, and then handed over.

Before it is handed over, a line is noted for every file: digest of its name, length, time of its last change, digest of
its content. A file is as it was if its length is the same, and its time or its content. Example: a job gets `train.py`
and `data.csv`; it writes `model.pt`, and a line more into `data.csv`. `model.pt` is new and `data.csv` changed, and
after a backup was restored, which keeps no times, `train.py` still is as it was.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pliant.files.pack import walk
from pliant.files.untrusted.opening import open_below, open_file
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.walking import FoundEntry

_MAX_BYTES: Final = 8 << 20
"""Of the notes; 20,000 files, the most that are submitted, need 2 MB."""
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class _Line:
    num_bytes: int
    changed_ns: int
    digest: str


class Baseline:
    """The files that a folder had when it was handed over."""

    def __init__(self, lines: dict[str, _Line]) -> None:
        self._lines = lines

    def has(self, name: str) -> bool:
        """Tell whether there was a file of this name."""
        return _name_digest(name) in self._lines

    def is_as_it_was(self, top: int, entry: FoundEntry) -> bool:
        """Tell whether what was found below an open folder is what was handed over; one that cannot be read is not."""
        line = self._lines.get(_name_digest(entry.name))
        if line is None or not entry.is_file or entry.facts.st_size != line.num_bytes:
            return False
        if entry.facts.st_mtime_ns == line.changed_ns:
            return True
        with suppress(OSError):
            file = open_below(top, entry.name, owner=None)
            try:
                return _digest(file.descriptor, line.num_bytes) == line.digest
            finally:
                file.close()
        return False


def note_baseline(folder: Path, into: Path) -> None:
    """Note what a folder of ours holds, before it is handed over.

    Raises:
        OSError: the disk does not take it.
    """
    into.write_text("".join(f"{line}\n" for line in _lines(folder)))


def read_baseline(path: UntrustedPath) -> Baseline | None:
    """Return what was noted; None if nothing was, or it cannot be read."""
    with suppress(OSError, ValueError), open_file(path) as file:
        if file.num_bytes <= _MAX_BYTES:
            lines = (line.split() for line in file.read_at(0, _MAX_BYTES).decode().splitlines())
            return Baseline({name: _Line(int(size), int(at), digest) for name, size, at, digest in lines})
    return None


def _lines(folder: Path) -> Iterator[str]:
    for path, name in walk(folder):
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            facts = os.fstat(file)
            yield f"{_name_digest(name)} {facts.st_size} {facts.st_mtime_ns} {_digest(file, facts.st_size)}"
        finally:
            os.close(file)


def _name_digest(name: str) -> str:
    return hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def _digest(file: int, num_bytes: int) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for offset in range(0, num_bytes, _CHUNK):
        digest.update(os.pread(file, min(_CHUNK, num_bytes - offset), offset))
    return digest.hexdigest()
