"""Unpacks archives of strangers: tar, tar.gz and zip.

An archive is read once. Every member is checked before it is written; from the first fault on nothing more is written,
but the rest is still checked, so that all faults are named at once. Then all that was written is removed again: the
target is a draft that nobody else reads, and is either whole or empty.

What bounds the harm meanwhile: only files and folders below the target are made, none over another one; headers are
read through a stream that hands out at most a megabyte at a time (no name of gigabytes gets into memory); and all
members together may have so many bytes. Of 1 MB of a tar.gz at most 250 MB are written, and none of the member whose
header goes over that.
"""

import errno
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection
from pathlib import Path
from tarfile import TarError
from typing import IO, BinaryIO, Final

from pliant.core.errors import Problem, TooLarge, UserError
from pliant.files import folder, tar, zipped
from pliant.files.members import ArchiveContents, ArchiveLimits, Inspection, Member

MAX_UNPACKED_BYTES: Final = 512 << 20
MAX_FILES: Final = 20_000
CODE_LIMITS: Final = ArchiveLimits(max_bytes=MAX_UNPACKED_BYTES, max_files=MAX_FILES)
"""Of a submission."""
MODEL_LIMITS: Final = ArchiveLimits(max_bytes=16 << 30, max_files=MAX_FILES)
"""Of a model, which has its weights with it."""

_CHUNK: Final = 1 << 16
_MAX_TEXTS: Final = 100
_BROKEN: Final = (
    TarError,
    OSError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    LookupError,
    OverflowError,
    NotImplementedError,
)
"""What readers raise for an archive that is none. An offset that is none is `EINVAL`; other errors are the disk's."""
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")
_GZIP: Final = b"\x1f\x8b"

Progress = Callable[[int, int], None]
"""Called with the number of files that are written, and of the archive's bytes that are read."""


def unpack(
    archive: Path,
    target: Path,
    *,
    limits: ArchiveLimits = CODE_LIMITS,
    field: str = "code",
    on_progress: Progress = lambda _files, _bytes: None,
    check_room: Callable[[int], None] = lambda _num_bytes: None,
) -> ArchiveContents:
    """Unpack an archive into the empty folder `target`; whatever is raised, the folder is empty again.

    Args:
        check_room: called before a file is written with the bytes that it will have; may refuse it.

    Raises:
        InvalidInput: it is no such archive, or holds something that is neither a plain file nor a folder below it.
        TooLarge: over the limit of bytes or files.
        OSError: the disk does not take it.
    """

    num_files = 0

    def write(member: Member, content: IO[bytes] | None, source: BinaryIO) -> None:
        nonlocal num_files
        path = target / member.name
        if content is None:
            path.mkdir(parents=True, exist_ok=True)
            return
        check_room(member.num_bytes)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as out:
            while chunk := content.read(_CHUNK):
                out.write(chunk)
                on_progress(num_files, source.tell())
        path.chmod(0o755 if member.executable else 0o644)
        num_files += 1
        on_progress(num_files, source.tell())

    try:
        return _read(archive, limits, field, write)
    except BaseException:
        folder.empty(target)
        raise


def inspect(archive: Path, *, limits: ArchiveLimits = CODE_LIMITS, field: str = "code") -> ArchiveContents:
    """Check an archive and return what it holds; writes nothing.

    Raises:
        InvalidInput, TooLarge: as for `unpack`.
    """
    return _read(archive, limits, field, _skip)


def read_texts(
    archive: Path, names: Collection[str], *, max_bytes: int, limits: ArchiveLimits = CODE_LIMITS, field: str = "code"
) -> dict[str, bytes]:
    """Return those small files of an archive that lie in its folder, or in one that holds all of it, and have one of
    these names; their paths are the keys. Every other member is checked and read past.

    Raises:
        InvalidInput, TooLarge: as for `unpack`; one of these files is longer than `max_bytes`.
    """
    found: dict[str, bytes] = {}

    def take(member: Member, content: IO[bytes] | None, source: BinaryIO) -> None:
        folder, _, name = member.name.rpartition("/")
        if content is None or name not in names or "/" in folder or len(found) >= _MAX_TEXTS:
            _skip(member, content, source)
            return
        found[member.name] = content.read(max_bytes + 1)
        if len(found[member.name]) > max_bytes:
            raise TooLarge(f"{member.name} is longer than {max_bytes >> 10} KiB; make it shorter")

    _read(archive, limits, field, take)
    return found


def kind_of(path: Path) -> str:
    """Return what a file is by how it begins: `zip`, `tar.gz`, `tar`, or nothing."""
    with path.open("rb") as source:
        head = source.read(512)
    if head.startswith(_ZIP):
        return "zip"
    if head.startswith(_GZIP):
        return "tar.gz"
    return "tar" if tar.is_header(head) else ""


def _read(
    archive: Path,
    limits: ArchiveLimits,
    field: str,
    take: Callable[[Member, IO[bytes] | None, BinaryIO], None],
) -> ArchiveContents:
    """Check every member, and hand those before the first fault to `take` with their content, None for a folder."""
    inspection = Inspection(limits=limits, archive_bytes=archive.stat().st_size, field=field)
    try:
        with archive.open("rb") as source:
            for member, open_content in _reader(source, field).members(source, limits):
                if not inspection.take(member):
                    break
                if inspection.problems:
                    continue
                if member.kind == "folder":
                    take(member, None, source)
                else:
                    with open_content() as content:
                        take(member, content, source)
    except UserError:
        raise
    except _BROKEN as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        message = f"not a whole {kind_of(archive) or 'tar, tar.gz or zip'} archive ({error}); pack the folder again"
        inspection.problems.append(Problem(field=field, message=message))
    return inspection.contents()


def _skip(_member: Member, content: IO[bytes] | None, _source: BinaryIO) -> None:
    """Read a member to its end, so that one that breaks off is noticed."""
    while content is not None and content.read(_CHUNK):
        pass


def _reader(source: BinaryIO, field: str) -> "tar.TarReader | zipped.ZipReader":
    head = source.read(4)
    source.seek(0)
    if head.startswith(_ZIP):
        return zipped.ZipReader()
    return tar.TarReader(field, is_zipped=head.startswith(_GZIP))
