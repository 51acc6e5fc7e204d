"""Unpacks archives that nobody vouches for: tar, tar.gz and zip.

An archive is read twice: first all of it is checked, then it is unpacked, so that nothing of one that is refused gets
onto the disk. Only files and folders below the target are made; every size is limited while reading, so that neither
a bomb nor a header of gigabytes gets into memory.
"""

import errno
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from tarfile import TarError
from typing import BinaryIO, Final

from pliant.core.errors import Problem, UserError
from pliant.files import tar, zipped
from pliant.files.members import Inspection, Limits, Listing

MAX_UNPACKED_BYTES: Final = 512 << 20
MAX_FILES: Final = 20_000
CODE_LIMITS: Final = Limits(max_bytes=MAX_UNPACKED_BYTES, max_files=MAX_FILES)
"""Of a submission."""

_CHUNK: Final = 1 << 16
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
"""How readers tell of an archive that is none. A place that is no place is `EINVAL`; other errors are the disk's."""
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")
_GZIP: Final = b"\x1f\x8b"


def unpack(
    archive: Path,
    target: Path,
    *,
    limits: Limits = CODE_LIMITS,
    field: str = "code",
    told: Callable[[int, int], None] = lambda _files, _bytes: None,
    fits: Callable[[Listing], None] = lambda _listing: None,
) -> Listing:
    """Unpack an archive into the empty folder `target`; `told` hears how many files and bytes are done.

    `fits` is shown what is in it after it was checked, and may refuse it before anything is written.

    Raises:
        InvalidInput: it is no such archive, or holds something that is neither a plain file nor a folder below it;
            nothing was written.
        TooLarge: over the limit of bytes or files; nothing was written.
        OSError: the disk does not take it; `target` may hold a part, which the caller removes.
    """
    listing = inspect(archive, limits=limits, field=field)
    fits(listing)
    num_files = num_bytes = 0
    with archive.open("rb") as source:
        for member, content in _reader(source, field).contents(source, limits):
            path = target / member.name
            if content is None:
                path.mkdir(parents=True, exist_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            with content, path.open("xb") as out:
                while chunk := content.read(_CHUNK):
                    out.write(chunk)
                    num_bytes += len(chunk)
                    told(num_files, num_bytes)
            path.chmod(0o755 if member.executable else 0o644)
            num_files += 1
            told(num_files, num_bytes)
    return listing


def inspect(archive: Path, *, limits: Limits = CODE_LIMITS, field: str = "code") -> Listing:
    """Check an archive and return what it holds; writes nothing.

    Raises:
        InvalidInput, TooLarge: as for `unpack`.
    """
    inspection = Inspection(limits=limits, archive_bytes=archive.stat().st_size, field=field)
    try:
        with archive.open("rb") as source:
            for member in _reader(source, field).members(source, limits):
                if not inspection.take(member):
                    break
    except UserError:
        raise
    except _BROKEN as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        message = f"not a whole {kind_of(archive) or 'tar, tar.gz or zip'} archive ({error}); pack the folder again"
        inspection.problems.append(Problem(field=field, message=message))
    return inspection.listing()


def kind_of(path: Path) -> str:
    """Return what a file is by how it begins: `zip`, `tar.gz`, `tar`, or nothing."""
    with path.open("rb") as source:
        head = source.read(512)
    if head.startswith(_ZIP):
        return "zip"
    if head.startswith(_GZIP):
        return "tar.gz"
    return "tar" if tar.is_header(head) else ""


def _reader(source: BinaryIO, field: str) -> "tar.TarReader | zipped.ZipReader":
    head = source.read(4)
    source.seek(0)
    if head.startswith(_ZIP):
        return zipped.ZipReader()
    return tar.TarReader(field, is_zipped=head.startswith(_GZIP))
