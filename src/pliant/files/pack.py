"""Packs files of ours as a tar.gz while it is sent, without holding a file in memory."""

import gzip
import io
import os
import tarfile
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Final

CHUNK: Final = 1 << 16

ReadAt = Callable[[int, int], bytes]
"""Returns at most so many bytes (second) of a file at an offset (first); fewer only at its end."""


class TarGzip:
    """A tar.gz in the making; what is done of it comes out piece by piece."""

    def __init__(self) -> None:
        self._buffer = io.BytesIO()
        self._zipped = gzip.GzipFile(fileobj=self._buffer, mode="wb", compresslevel=1, mtime=0)

    def add(self, name: str, facts: os.stat_result, read_at: ReadAt) -> Generator[bytes, None, int]:
        """Add a file with the length that its facts say: one that grew is cut there, one that shrank ends with zeros.

        Returns:
            The number of bytes that it lacked, as the value of the iterator's end.
        """
        info = tarfile.TarInfo(name)
        info.size, info.mtime = facts.st_size, int(facts.st_mtime)
        info.mode = 0o755 if facts.st_mode & 0o100 else 0o644
        self._zipped.write(info.tobuf(format=tarfile.PAX_FORMAT, encoding="utf-8", errors="surrogateescape"))
        lacking = 0
        for offset in range(0, info.size, CHUNK):
            wanted = min(CHUNK, info.size - offset)
            chunk = b"" if lacking else read_at(offset, wanted)
            lacking += wanted - len(chunk)
            self._zipped.write(chunk.ljust(wanted, b"\0"))
            if data := self._drain():
                yield data
        self._zipped.write(b"\0" * (-info.size % tarfile.BLOCKSIZE))
        return lacking

    def end(self) -> bytes:
        """Return the end of the archive."""
        self._zipped.write(b"\0" * tarfile.BLOCKSIZE * 2)
        self._zipped.close()
        return self._drain()

    def _drain(self) -> bytes:
        data = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return data


def pack(folder: Path) -> Iterator[bytes]:
    """Yield a tar.gz of what is in `folder`, without holding a file in memory.

    Files that vanish meanwhile are left out; a file that grows is cut where it ended when its turn came. Links and
    devices are left out.
    """
    return pack_files(walk(folder))


def pack_files(files: Iterable[tuple[Path, str]]) -> Iterator[bytes]:
    """Yield a tar.gz of files under the names given beside them, as `pack` does."""
    archive = TarGzip()
    for path, name in files:
        yield from add_file(archive, path, name)
    yield archive.end()


def add_file(archive: TarGzip, path: Path, name: str) -> Iterator[bytes]:
    """Add a file of ours to an archive, unless it has vanished."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        yield from archive.add(name, os.fstat(file), lambda offset, limit: os.pread(file, limit, offset))
    finally:
        os.close(file)


def walk(folder: Path, exclude: frozenset[str] = frozenset()) -> Iterator[tuple[Path, str]]:
    """Yield the plain files in a folder of ours, with their names in it, but for top-level names in `exclude`."""
    waiting = [""]
    while waiting:
        where = waiting.pop()
        try:
            with os.scandir(folder / where) as found:
                entries = sorted((one for one in found if where or one.name not in exclude), key=lambda one: one.name)
        except OSError:
            continue
        names = {entry: f"{where}/{entry.name}" if where else entry.name for entry in entries}
        waiting += [names[entry] for entry in reversed(entries) if entry.is_dir(follow_symlinks=False)]
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                yield folder / names[entry], names[entry]
