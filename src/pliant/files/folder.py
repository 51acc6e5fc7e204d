"""Folders as a whole: published by one rename, made read-only, emptied and removed even if they are read-only."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from pliant.files.untrusted import removal
from pliant.files.untrusted.path import UntrustedPath

READ_ONLY_FILE: Final = 0o444
READ_ONLY_FOLDER: Final = 0o555
_CANNOT_SHARE: Final = (errno.ENOSYS, errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL)
"""What file systems say that do not copy content by themselves."""


def publish(draft: Path, to: Path) -> None:
    """Give a folder its name: it is there with all it holds, or not at all. Both lie on the same disk.

    Raises:
        OSError: something is there already.
    """
    draft.chmod(0o755)  # a folder that is renamed to another place must be writable
    os.rename(draft, to)
    sync_folder(to.parent)


def sync_folder(folder: Path) -> None:
    """Make names that were given or taken in a folder last through a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, content: bytes, *, durable: bool = True, mode: int = 0o600) -> None:
    """Write a file, whole or not at all; a durable one lasts through a loss of power.

    Raises:
        OSError: it could not be written; nothing was changed.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def copy_folder(folder: Path, to: Path) -> None:
    """Copy a folder of ours, which nobody else has written to, with modes and times; `to` is made.

    File systems that can (XFS, Btrfs) keep the content once, until a copy is written to.

    Raises:
        OSError: the disk does not take it.
    """
    _mirror(folder, to, copy_file)


def link_folder(folder: Path, to: Path) -> None:
    """Make a folder that holds the same files as another one; nobody writes to either.

    Raises:
        OSError: the disk does not take it.
    """
    _mirror(folder, to, os.link)


def _mirror(folder: Path, to: Path, make_file: Callable[[Path, Path], None]) -> None:
    to.mkdir()
    for root, folders, files in os.walk(folder):
        there = to / os.path.relpath(root, folder)
        for name in folders:
            (there / name).mkdir()
        for name in files:
            make_file(Path(root) / name, there / name)


def copy_file(source: Path, to: Path) -> None:
    """Copy a file of ours, with mode and times, to where there is none.

    Raises:
        OSError: the disk does not take it.
    """
    with source.open("rb") as content, to.open("xb") as copy:
        facts = os.fstat(content.fileno())
        _copy_content(content.fileno(), copy.fileno(), facts.st_size)
        os.fchmod(copy.fileno(), stat.S_IMODE(facts.st_mode))
        os.utime(copy.fileno(), ns=(facts.st_atime_ns, facts.st_mtime_ns))


def _copy_content(source: int, to: int, num_bytes: int) -> None:
    try:
        while num_bytes > 0 and (copied := os.copy_file_range(source, to, num_bytes)):
            num_bytes -= copied
    except OSError as error:
        if error.errno not in _CANNOT_SHARE:
            raise
        while num_bytes > 0 and (copied := os.sendfile(to, source, None, num_bytes)):
            num_bytes -= copied


def make_read_only(folder: Path, *, also_itself: bool = True) -> None:
    """Take the right to write from all files and folders below a folder, and from itself."""
    for root, folders, files in os.walk(folder, topdown=False):
        for name in files:
            os.chmod(Path(root) / name, READ_ONLY_FILE, follow_symlinks=True)
        for name in folders:
            os.chmod(Path(root) / name, READ_ONLY_FOLDER)
    if also_itself:
        folder.chmod(READ_ONLY_FOLDER)


def remove(folder: Path) -> None:
    """Remove a folder with all it holds, also if it is read-only; one that is not there is fine.

    Raises:
        OSError: something in it cannot be removed.
    """
    if not folder.is_symlink() and folder.is_dir():
        removal.remove(UntrustedPath(folder.parent, folder.name))


def empty(folder: Path) -> None:
    """Remove all that a folder holds, also what is read-only; the folder itself stays.

    Raises:
        OSError: something in it cannot be removed.
    """
    for path in list(folder.iterdir()):
        removal.remove(UntrustedPath(folder, path.name))


def plain_files(folder: Path) -> Iterator[Path]:
    """Yield the plain files below a folder in the order of their names; links and devices are left out."""
    for root, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            path = Path(root) / name
            if stat.S_ISREG(path.lstat().st_mode):
                yield path


def find_outside(folder: Path, root: Path) -> Iterator[Path]:
    """Yield links in a folder that lead to nothing or out of `root`, which is a resolved path."""
    for parent, folders, files in os.walk(folder):
        for name in (*sorted(folders), *sorted(files)):
            path = Path(parent) / name
            if path.is_symlink() and not (path.exists() and path.resolve().is_relative_to(root)):
                yield path
