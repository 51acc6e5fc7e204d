"""Code in (an uploaded tar.gz) and results out (a tar.gz made while it is sent).

Unpacking trusts nothing: only files and folders below the target are made, and every size is limited while reading, so
that neither a bomb nor a header of gigabytes gets into memory or onto the disk. It knows nothing of jobs.
"""

import gzip
import io
import os
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from pliant.core.errors import InvalidInput, Problem, TooLarge

MAX_UNPACKED_BYTES = 512 << 20
MAX_FILES = 20_000
MAX_PROBLEMS = 20
_HEADER_BYTES = 4096
_MAX_READ = 1 << 20
_CHUNK = 1 << 16
_BROKEN = (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, UnicodeError, OverflowError)


class _Limited(io.RawIOBase):
    """A decompressed stream that refuses to hand out too much at once or altogether."""

    def __init__(self, source: BinaryIO, limit: int) -> None:
        self._source = gzip.GzipFile(fileobj=source, mode="rb")
        self._limit = limit

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._source.tell()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        assert whence == os.SEEK_SET
        self._check(offset)
        return self._source.seek(offset)

    def read(self, size: int = -1) -> bytes:
        if size < 0 or size > _MAX_READ:
            raise tarfile.ReadError(f"a header of {size} bytes")
        self._check(self._source.tell() + size)
        return self._source.read(size)

    def _check(self, position: int) -> None:
        if position > self._limit + _MAX_READ:
            raise TooLarge(f"code: the archive unpacks to more than {self._limit >> 20} MiB; leave data out of it")


def unpack(archive: Path, target: Path, *, max_bytes: int = MAX_UNPACKED_BYTES, max_files: int = MAX_FILES) -> None:
    """Unpack a tar.gz into the empty folder `target`.

    Raises:
        InvalidInput: it is not a tar.gz, or holds something that is neither a plain file nor a folder below it.
        TooLarge: over the limit of bytes or files. In either case `target` may hold a part; the caller removes it.
    """
    problems: list[Problem] = []
    num_bytes = num_files = 0
    try:
        with archive.open("rb") as source:
            stream = _Limited(source, max_bytes + max_files * _HEADER_BYTES)
            with tarfile.open(fileobj=stream, mode="r:") as tar:
                for member in tar:
                    num_files += 1
                    num_bytes += member.size if member.isreg() else 0
                    _check_size(num_bytes, num_files, max_bytes, max_files)
                    if problem := _refusal(member):
                        problems.append(Problem(field="code", message=problem))
                    elif not problems:
                        _write(tar, member, target)
                    if len(problems) >= MAX_PROBLEMS:
                        break
    except _BROKEN as error:
        problems.append(Problem(field="code", message=f"not a whole tar.gz archive ({error}); pack the folder again"))
    if problems:
        raise InvalidInput(*problems)


def _check_size(num_bytes: int, num_files: int, max_bytes: int, max_files: int) -> None:
    if num_files > max_files:
        raise TooLarge(f"code: the archive holds more than {max_files} files; leave data and environments out of it")
    if num_bytes > max_bytes:
        raise TooLarge(f"code: the archive unpacks to more than {max_bytes >> 20} MiB; leave data out of it")


def _refusal(member: tarfile.TarInfo) -> str:
    name = member.name[:200]
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or "\0" in member.name:
        return f"archive member {name!r} points outside the folder; pack names relative to it"
    if member.issym() or member.islnk():
        return f"archive member {name!r} is a link; pack the file that it points to"
    if member.issparse() or not (member.isfile() or member.isdir()):
        return f"archive member {name!r} is neither a file nor a folder; leave it out"
    return ""


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    path = target / member.name
    try:
        if member.isdir():
            path.mkdir(parents=True, exist_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        source = tar.extractfile(member)
        assert source is not None
        with source, path.open("xb") as out:
            while chunk := source.read(_CHUNK):
                out.write(chunk)
        path.chmod(0o755 if member.mode & 0o100 else 0o644)
    except (FileExistsError, NotADirectoryError) as error:
        raise InvalidInput(
            Problem(field="code", message=f"archive member {member.name[:200]!r} is in it twice; pack it once")
        ) from error


def pack(folder: Path, *, exclude: frozenset[str]) -> Iterator[bytes]:
    """Yield a tar.gz of what is in `folder`, but for top-level names in `exclude`, without holding a file in memory.

    Files that vanish meanwhile are left out; a file that grows is cut where it ended when its turn came. Links and
    devices are left out.
    """
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=1, mtime=0) as zipped:
        for path, name in _walk(folder, exclude):
            yield from _pack_file(path, name, zipped, buffer)
        zipped.write(b"\0" * tarfile.BLOCKSIZE * 2)
    yield buffer.getvalue()


def _pack_file(path: Path, name: str, zipped: gzip.GzipFile, buffer: io.BytesIO) -> Iterator[bytes]:
    with _opened(path) as source:
        if source is None:
            return
        facts = os.fstat(source.fileno())
        info = tarfile.TarInfo(name)
        info.size, info.mtime, info.mode = facts.st_size, int(facts.st_mtime), 0o644
        zipped.write(info.tobuf(format=tarfile.PAX_FORMAT, encoding="utf-8", errors="surrogateescape"))
        left = info.size
        while left:
            chunk = source.read(min(_CHUNK, left)) or b"\0" * min(_CHUNK, left)
            left -= len(chunk)
            zipped.write(chunk)
            if data := _taken(buffer):
                yield data
        zipped.write(b"\0" * (-info.size % tarfile.BLOCKSIZE))


def _walk(folder: Path, exclude: frozenset[str]) -> Iterator[tuple[Path, str]]:
    for root, folders, files in os.walk(folder):
        if Path(root) == folder:
            folders[:] = [name for name in folders if name not in exclude]
        folders.sort()
        for name in sorted(files):
            path = Path(root) / name
            if path.is_file() and not path.is_symlink():
                yield path, path.relative_to(folder).as_posix()


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO | None]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        yield None
        return
    with os.fdopen(descriptor, "rb") as source:
        yield source


def _taken(buffer: io.BytesIO) -> bytes:
    data = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return data
