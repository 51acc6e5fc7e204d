"""Packs a folder as a tar.gz while it is sent, without holding a file in memory."""

import gzip
import io
import os
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_CHUNK = 1 << 16


def pack(folder: Path, *, exclude: frozenset[str]) -> Iterator[bytes]:
    """Yield a tar.gz of what is in `folder`, but for top-level names in `exclude`, without holding a file in memory.

    Files that vanish meanwhile are left out; a file that grows is cut where it ended when its turn came. Links and
    devices are left out.
    """
    return pack_files(walk(folder, exclude))


def pack_files(files: Iterable[tuple[Path, str]]) -> Iterator[bytes]:
    """Yield a tar.gz of files under the names given beside them, as `pack` does."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=1, mtime=0) as zipped:
        for path, name in files:
            yield from _pack_file(path, name, zipped, buffer)
        zipped.write(b"\0" * tarfile.BLOCKSIZE * 2)
    yield buffer.getvalue()


def _pack_file(path: Path, name: str, zipped: gzip.GzipFile, buffer: io.BytesIO) -> Iterator[bytes]:
    with _open(path) as source:
        if source is None:
            return
        facts = os.fstat(source.fileno())
        info = tarfile.TarInfo(name)
        info.size, info.mtime = facts.st_size, int(facts.st_mtime)
        info.mode = 0o755 if facts.st_mode & 0o100 else 0o644
        zipped.write(info.tobuf(format=tarfile.PAX_FORMAT, encoding="utf-8", errors="surrogateescape"))
        left = info.size
        while left:
            chunk = source.read(min(_CHUNK, left)) or b"\0" * min(_CHUNK, left)
            left -= len(chunk)
            zipped.write(chunk)
            if data := _drain(buffer):
                yield data
        zipped.write(b"\0" * (-info.size % tarfile.BLOCKSIZE))


def walk(folder: Path, exclude: frozenset[str] = frozenset()) -> Iterator[tuple[Path, str]]:
    """Yield the plain files in a folder, with their names in it, but for top-level names in `exclude`."""
    for root, folders, files in os.walk(folder):
        top = exclude if Path(root) == folder else frozenset()
        folders[:] = sorted(name for name in folders if name not in top)
        for name in sorted(name for name in files if name not in top):
            path = Path(root) / name
            if path.is_file() and not path.is_symlink():
                yield path, path.relative_to(folder).as_posix()


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO | None]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        yield None
        return
    with os.fdopen(descriptor, "rb") as source:
        yield source


def _drain(buffer: io.BytesIO) -> bytes:
    data = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return data
