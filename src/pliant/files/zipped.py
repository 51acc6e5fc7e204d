"""Reads zip member by member. A member that is read to its end is checked against its length and its CRC-32."""

import os
import stat
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import IO, BinaryIO, Final

from pliant.files.members import ArchiveLimits, Member

_ENCRYPTED: Final = 0x1
_UTF8: Final = 0x800
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_HEADER_BYTES: Final = 30
"""Of the header before each member's data, without its name."""
_END: Final = b"PK\x05\x06"
_END_BYTES: Final = 22
"""Of the last record, without its comment."""


class ZipReader:
    """Reads a zip."""

    def members(
        self,
        source: BinaryIO,
        limits: ArchiveLimits,  # noqa: ARG002 (as of TarReader)
    ) -> Iterator[tuple[Member, Callable[[], IO[bytes]]]]:
        """Yield what the directory tells of each member, and what opens its content.

        Raises:
            zipfile.BadZipFile, NotImplementedError, zlib.error, EOFError: it is no whole archive.
        """
        with zipfile.ZipFile(source) as archive:
            _refuse_strangers(archive, source)
            _refuse_overlap(archive.infolist())
            for info in archive.infolist():
                yield member_of(info), partial(archive.open, info)


def member_of(info: zipfile.ZipInfo) -> Member:
    """Return what an entry of the directory tells."""
    mode = info.external_attr >> 16
    return Member(
        name=_name(info),
        num_bytes=info.file_size,
        kind=_kind(info, mode),
        executable=bool(mode & 0o100),
        flaw=_flaw(info),
    )


def _name(info: zipfile.ZipInfo) -> str:
    """Return a name; one that was not declared as UTF-8 may be it all the same, else it gets lone surrogates."""
    name = info.orig_filename
    if info.flag_bits & _UTF8:
        return name
    return name.encode("cp437").decode("utf-8", "surrogateescape")


def _kind(info: zipfile.ZipInfo, mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "link"
    if _is_folder(info):
        return "folder"
    return "file" if stat.S_IFMT(mode) in (0, stat.S_IFREG) else "other"


def _is_folder(info: zipfile.ZipInfo) -> bool:
    return info.filename.endswith("/")  # the library's own test fails for an empty name


def _flaw(info: zipfile.ZipInfo) -> str:
    if info.flag_bits & _ENCRYPTED:
        return "is encrypted; pack it without a password"
    if info.compress_type not in _METHODS:
        return "is compressed in a way that is not known here; pack with deflate, as `zip` does, or as tar.gz"
    if "\\" in info.orig_filename:
        return "has a backslash in its name; pack with slashes between folders"
    return ""


def _refuse_strangers(archive: zipfile.ZipFile, source: BinaryIO) -> None:
    """Refuse bytes before the first member and after the directory: other programs may find another archive there.

    Raises:
        BadZipFile: there are some.
    """
    if min((info.header_offset for info in archive.infolist()), default=0) != 0:
        raise zipfile.BadZipFile("something stands before its first member, such as another archive")
    size = len(archive.comment)
    end = source.seek(-_END_BYTES - size, os.SEEK_END)
    last = source.read(_END_BYTES)
    if not last.startswith(_END) or int.from_bytes(last[-2:], "little") != size:
        raise zipfile.BadZipFile(f"something follows its directory, which ends before byte {end}")


def _refuse_overlap(infos: list[zipfile.ZipInfo]) -> None:
    """Refuse members that share their bytes: a bomb that no ratio of one member shows.

    Raises:
        BadZipFile: some do.
    """
    for one, following in pairwise(sorted(infos, key=lambda info: info.header_offset)):
        if one.header_offset + _HEADER_BYTES + one.compress_size > following.header_offset:
            raise zipfile.BadZipFile(f"members {one.filename[:100]!r} and {following.filename[:100]!r} overlap")
