"""Puts a file below a folder that somebody else can write to, whole or not at all, as the owner of that folder.

Folders on the way are made. No link is followed: every step is taken by an open folder, and what is renamed over a link
replaces the link.
"""

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from pliant.files.untrusted.beneath import open_beneath
from pliant.files.untrusted.opening import open_folder
from pliant.files.untrusted.path import UntrustedPath

_FOLDER: Final = os.O_PATH | os.O_DIRECTORY
_APPEND: Final = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER_MODE: Final = 0o700
_MAX_DEPTH: Final = 100


def put_file(
    draft: Path, path: UntrustedPath, *, mode: int, mtime_ns: int, owner: tuple[int, int] | None = None
) -> None:
    """Move a file of ours to its place below a stranger's folder; what is there is replaced.

    Args:
        draft: the file, on the same disk; whoever can write to the folder that it lies in is us.
        path: where it is to be.
        mode: its rights; those beyond 0o777 are dropped.
        mtime_ns: when its owner has changed it last.
        owner: user and group; None: those of the topmost folder.

    Raises:
        OSError: a folder stands there, something else than a folder is on the way, or the disk does not take it.
    """
    with _folder_of(path, owner) as (folder, whose):
        file = os.open(draft, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _hand_over(file, whose)
            if stat.S_IMODE(os.fstat(file).st_mode) != mode & 0o777:
                os.fchmod(file, mode & 0o777)
            os.utime(file, ns=(mtime_ns, mtime_ns))
        finally:
            os.close(file)
        os.rename(draft, path.name, dst_dir_fd=folder)


def place_file(path: UntrustedPath, write: Callable[[BinaryIO], None]) -> None:
    """Write a file and give it its name, in the place of what is called so; see `put_file`.

    Args:
        path: where it is to be; it is written in the root of that, where only we are.
        write: writes the content; the file is dropped if it raises.

    Raises:
        OSError: as of `put_file`.
    """
    draft = path.root / f".placed-{os.getpid()}"
    draft.unlink(missing_ok=True)
    try:
        with open(draft, "xb", opener=lambda way, flags: os.open(way, flags, 0o600)) as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        put_file(draft, path, mode=0o600, mtime_ns=draft.stat().st_mtime_ns)
    finally:
        draft.unlink(missing_ok=True)


def put_link(path: UntrustedPath, leads_to: str, *, owner: tuple[int, int] | None = None) -> None:
    """Make a symbolic link below a stranger's folder; a file or a link that is there is replaced.

    Raises:
        OSError: as of `put_file`.
    """
    with _folder_of(path, owner) as (folder, whose):
        draft = f".{secrets.token_hex(8)}"
        os.symlink(leads_to, draft, dir_fd=folder)
        try:
            os.chown(draft, *whose, dir_fd=folder, follow_symlinks=False)
            os.rename(draft, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            os.unlink(draft, dir_fd=folder)
            raise


def put_folder(path: UntrustedPath, *, mode: int = _FOLDER_MODE, owner: tuple[int, int] | None = None) -> None:
    """Make a folder below a stranger's, unless it is there; its mode is this one then, and its owner, if one is named.

    Raises:
        OSError: something else stands there, or the disk does not take it.
    """
    with _folder_of(path, owner) as (folder, whose):
        inside = _enter(folder, path.name, whose)
        try:
            facts = os.fstat(inside)
            if owner is not None and (facts.st_uid, facts.st_gid) != owner:
                os.chown(f"/proc/self/fd/{inside}", *owner)
            if stat.S_IMODE(facts.st_mode) != mode & 0o777:
                os.chmod(f"/proc/self/fd/{inside}", mode & 0o777)
        finally:
            os.close(inside)


def append_at(path: UntrustedPath, offset: int, content: bytes) -> int:
    """Write to a file from an offset on, if it is as long as that; return how long it is then.

    Bytes that are there already are written once more. A file that is shorter stays as it is.

    Raises:
        OSError: it is no plain file with one name, or the disk does not take it.
    """
    with _folder_of(path, None) as (folder, whose):
        try:
            file = os.open(path.name, _APPEND | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
            _hand_over(file, whose)
        except FileExistsError:
            file = os.open(path.name, _APPEND, dir_fd=folder)
        try:
            facts = os.fstat(file)
            if not stat.S_ISREG(facts.st_mode) or facts.st_nlink > 1 or facts.st_uid != whose[0]:
                raise OSError(errno.EPERM, "it is not a plain file of the folder's owner")
            if facts.st_size < offset:
                return facts.st_size
            view, at = memoryview(content), offset
            while view:
                written = os.pwrite(file, view, at)
                view, at = view[written:], at + written
            return at
        finally:
            os.close(file)


def remove_file(path: UntrustedPath) -> None:
    """Remove a file, or whatever has its name and is no folder; one that is not there is fine.

    Raises:
        OSError: it is a folder, or cannot be removed.
    """
    above, _, name = path.inside.rpartition("/")
    with suppress(FileNotFoundError), open_folder(UntrustedPath(path.root, above)) as folder:
        os.unlink(name, dir_fd=folder)


@contextmanager
def _folder_of(path: UntrustedPath, owner: tuple[int, int] | None) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield the folder that something is to lie in, made if it is missing, and whose what is made there is to be.

    Raises:
        OSError: something else is on the way, or the topmost folder is missing.
    """
    *folders, _name = path.inside.split("/")
    if len(folders) > _MAX_DEPTH or any(part in ("", ".", "..") for part in path.inside.split("/")):
        raise OSError(errno.EINVAL, "it does not lie below a folder of the owner", path.inside)
    with open_folder(UntrustedPath(path.root, folders[0] if folders else "")) as top:
        facts, here = os.fstat(top), os.dup(top)
        whose = (facts.st_uid, facts.st_gid) if owner is None else owner
        try:
            for folder in folders[1:]:
                above, here = here, _enter(here, folder, whose)
                os.close(above)
            yield here, whose
        finally:
            os.close(here)


def _enter(folder: int, name: str, whose: tuple[int, int]) -> int:
    """Return a folder in an open one; it is made if it is missing."""
    try:
        os.mkdir(name, _FOLDER_MODE, dir_fd=folder)
    except FileExistsError:
        return open_beneath(folder, name, _FOLDER)
    made = open_beneath(folder, name, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _hand_over(made, whose)
        return open_beneath(made, "", _FOLDER)
    finally:
        os.close(made)


def _hand_over(descriptor: int, whose: tuple[int, int]) -> None:
    """Give what is open to somebody, unless it is theirs."""
    facts = os.fstat(descriptor)
    if (facts.st_uid, facts.st_gid) != whose:
        os.fchown(descriptor, *whose)
