"""Removes what somebody else has made, however deep, closed or often changed it is.

Theory of operation
-------------------

What is to be removed is first renamed into a new folder of mode 700 beside it, in the folder that is ours: from then on
its owner does not reach it by name any more. Then the tree is taken apart from the top: files of a folder are unlinked,
its folders are renamed up into the new folder, and it is removed itself. So no path gets long, no stack gets deep, and
three descriptors are enough for a tree of any depth:

    .trash-x/1/{file, a/{b/{c/…}}}   →   .trash-x/2/{b/{c/…}}   →   .trash-x/3/{c/…}   →   …

Nothing is followed: an entry is unlinked or renamed by its name in a folder that is open, whatever stands there.
A folder that its owner has closed is opened by its descriptor on the way.
"""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import count, islice, repeat
from pathlib import Path
from typing import Final

from pliant.files.untrusted.beneath import open_beneath
from pliant.files.untrusted.opening import open_folder
from pliant.files.untrusted.path import UntrustedPath

TRASH: Final = ".trash-"
"""Names of folders in which something is being removed begin with this."""
_PLACE: Final = os.O_PATH | os.O_DIRECTORY
_LIST: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK
_PIECE: Final = 4096
"""So many names of a folder are looked at together."""
_MAX_PIECES: Final = 10_000
"""Of one folder: somebody may fill it again as fast as it is emptied."""


def remove(path: UntrustedPath) -> None:
    """Remove a file, or a folder with all it holds; what is not there is fine.

    Raises:
        OSError: something in it cannot be removed; that is in a folder beside it now, see `empty_trash`.
    """
    above, _, name = path.inside.rpartition("/")
    try:
        with open_folder(UntrustedPath(path.root, above)) as folder:
            _remove_from(folder, name, path.root)
    except FileNotFoundError:
        return


def empty_trash(root: Path) -> None:
    """Remove what removals that did not come to their end have left in a folder of ours.

    Raises:
        OSError: something in it cannot be removed.
    """
    for name in [name for name in os.listdir(root) if name.startswith(TRASH)]:
        _take_apart(root / name)


def _remove_from(folder: int, name: str, root: Path) -> None:
    with suppress(OSError):
        _allow_writing(folder)
    try:
        os.unlink(name, dir_fd=folder)
    except (IsADirectoryError, PermissionError):
        pass
    else:
        return
    trash = Path(tempfile.mkdtemp(prefix=TRASH, dir=root))
    try:
        place = os.open(trash, _PLACE | os.O_CLOEXEC)
        try:
            _open_up(folder, name)
            os.rename(name, "0", src_dir_fd=folder, dst_dir_fd=place)
        finally:
            os.close(place)
    except OSError:
        trash.rmdir()
        raise
    _take_apart(trash)


def _take_apart(trash: Path) -> None:
    """Remove a folder of ours that holds what somebody else has made."""
    top = os.open(trash, _LIST | os.O_CLOEXEC)
    try:
        names = map("{}-{}".format, repeat(os.urandom(8).hex()), count())
        while found := _names(top):
            errors = [error for name in found if (error := _remove_entry(top, name, names)) is not None]
            if len(errors) == len(found):
                raise errors[0]
    finally:
        os.close(top)
    trash.rmdir()


def _remove_entry(top: int, name: str, names: Iterator[str]) -> OSError | None:
    """Unlink a file, or empty a folder into `top` and remove it; return what kept it from being removed."""
    try:
        os.unlink(name, dir_fd=top)
    except (IsADirectoryError, PermissionError):
        pass
    except OSError as error:
        return None if isinstance(error, FileNotFoundError) else error
    else:
        return None
    try:
        _empty_into(top, name, names)
        os.rmdir(name, dir_fd=top)
    except OSError as error:
        return None if isinstance(error, FileNotFoundError) else error
    return None


def _empty_into(top: int, name: str, names: Iterator[str]) -> None:
    """Unlink the files of a folder in `top`, and move its folders up into `top`.

    Raises:
        OSError: that could not be done with any of them.
    """
    _open_up(top, name)
    folder = open_beneath(top, name, _LIST)
    try:
        for _ in range(_MAX_PIECES):
            if not (found := _names(folder)):
                return
            errors: list[OSError] = []
            for entry in found:
                try:
                    _unlink_or_move(folder, entry, top, next(names))
                except OSError as error:
                    errors.append(error)
            if len(errors) == len(found):
                raise errors[0]
    finally:
        os.close(folder)


def _unlink_or_move(folder: int, entry: str, top: int, new_name: str) -> None:
    try:
        os.unlink(entry, dir_fd=folder)
    except (IsADirectoryError, PermissionError):
        _open_up(folder, entry)
        os.rename(entry, new_name, src_dir_fd=folder, dst_dir_fd=top)


def _open_up(folder: int, name: str) -> None:
    """Let us write to a folder of ours that was closed; only its owner or root can, others need not."""
    with suppress(OSError):
        place = open_beneath(folder, name, _PLACE)
        try:
            _allow_writing(place)
        finally:
            os.close(place)


def _allow_writing(folder: int) -> None:
    mode = stat.S_IMODE(os.fstat(folder).st_mode)
    if mode & 0o700 != 0o700:
        os.chmod(f"/proc/self/fd/{folder}", mode | 0o700)


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in islice(entries, _PIECE)]
