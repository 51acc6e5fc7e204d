"""What is in a folder, as one end tells the other: a line for each thing, checked like all that comes from outside."""

import gzip
import hashlib
import json
import stat
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pliant.cluster.mirror.messages import MAX_LISTING_BYTES

_MAX_NAME_BYTES: Final = 4096
_NUM_FIELDS: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeEntry:
    """A file, a folder or a link."""

    name: str
    """Its way from the top; empty: the top itself, a file then. Bytes that are no UTF-8 are lone surrogates."""
    mode: int
    """With what it is, as in `st_mode`."""
    num_bytes: int = 0
    mtime_ns: int = 0
    says: str = ""
    """Of a file its SHA-256 in hex, of a link where it leads."""
    uid: int = 0
    gid: int = 0

    @property
    def is_file(self) -> bool:
        """Whether it is a plain file."""
        return stat.S_ISREG(self.mode)

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return stat.S_ISDIR(self.mode)

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return stat.S_ISLNK(self.mode)


def pack_listing(entries: Iterable[TreeEntry]) -> tuple[str, bytes]:
    """Return the digest of a listing, and its bytes."""
    lines = "".join(
        json.dumps([one.name, one.mode, one.num_bytes, one.mtime_ns, one.says, one.uid, one.gid]) + "\n"
        for one in entries
    ).encode()
    return hashlib.sha256(lines).hexdigest(), gzip.compress(lines, 1, mtime=0)


def unpack_listing(content: bytes) -> tuple[TreeEntry, ...]:
    """Return what a listing says.

    Raises:
        ValueError: it is no listing, too long, or names something that does not lie below the top.
    """
    try:
        unpacking = zlib.decompressobj(wbits=31)
        lines = unpacking.decompress(content, MAX_LISTING_BYTES)
        if unpacking.unconsumed_tail:
            raise ValueError("a listing is too long")
        return tuple(_entry(json.loads(line)) for line in lines.splitlines())
    except (zlib.error, RecursionError) as error:
        raise ValueError(f"a listing cannot be read: {error}") from error


def check_name(name: str) -> str:
    """Return a name that leads to something below the top.

    Raises:
        ValueError: it leads elsewhere, or nowhere.
    """
    parts = name.split("/")
    if len(name) > _MAX_NAME_BYTES or "\0" in name or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"a file is called {name!r:.80}, which no file can be")
    return name


def _entry(given: object) -> TreeEntry:
    if not isinstance(given, list) or len(given) != _NUM_FIELDS:
        raise ValueError("a listing has a line that is none")
    name, mode, num_bytes, mtime_ns, says, uid, gid = given
    numbers = (mode, num_bytes, mtime_ns, uid, gid)
    if not isinstance(name, str) or not isinstance(says, str) or any(type(one) is not int for one in numbers):
        raise ValueError("a listing has a line that is none")
    entry = TreeEntry(name=name, mode=mode, num_bytes=num_bytes, mtime_ns=mtime_ns, says=says, uid=uid, gid=gid)
    if name or not entry.is_file:
        check_name(name)
    if num_bytes < 0 or not (entry.is_file or entry.is_folder or entry.is_link):
        raise ValueError(f"a listing has {name!r:.80}, which is no file, folder or link")
    return entry
