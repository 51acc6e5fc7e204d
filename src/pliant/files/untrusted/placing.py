"""Puts a file of ours into a folder that somebody else writes to, as theirs, in one step and through no link."""

import os
from collections.abc import Callable
from typing import BinaryIO, Final

from pliant.files.untrusted.beneath import open_beneath
from pliant.files.untrusted.opening import open_folder
from pliant.files.untrusted.path import UntrustedPath

_PLACE: Final = os.O_PATH | os.O_DIRECTORY


def place_file(path: UntrustedPath, write: Callable[[BinaryIO], None]) -> None:
    """Write a file and give it its name, in the place of what is called so; the folder above it is made if need be.

    The file belongs to whom the topmost folder belongs to. It is written where only we are.

    Args:
        path: at least two names below its root.
        write: writes the content; the file is dropped if it raises.

    Raises:
        OSError: a link or something else stands in the path, or the disk does not take it.
    """
    above, _, name = path.inside.rpartition("/")
    draft = path.root / f".placed-{os.getpid()}"
    with open_folder(UntrustedPath(path.root, above.partition("/")[0])) as top:
        owner = os.fstat(top)
    draft.unlink(missing_ok=True)
    try:
        with open(draft, "xb", opener=lambda way, flags: os.open(way, flags, 0o600)) as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
            if owner.st_uid != os.geteuid():
                os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
        _make_folder(UntrustedPath(path.root, above), owner)
        with open_folder(UntrustedPath(path.root, above)) as folder:
            os.rename(draft, name, dst_dir_fd=folder)
    finally:
        draft.unlink(missing_ok=True)


def _make_folder(path: UntrustedPath, owner: os.stat_result) -> None:
    """Make one folder, unless it is there."""
    above, _, name = path.inside.rpartition("/")
    with open_folder(UntrustedPath(path.root, above)) as folder:
        try:
            os.mkdir(name, 0o755, dir_fd=folder)
        except FileExistsError:
            return
        if owner.st_uid != os.geteuid():
            made = open_beneath(folder, name, _PLACE)
            try:
                if os.fstat(made).st_uid == os.geteuid():
                    os.chown(f"/proc/self/fd/{made}", owner.st_uid, owner.st_gid)
            finally:
                os.close(made)
