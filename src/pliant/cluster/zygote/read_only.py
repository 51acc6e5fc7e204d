"""Folders that a task can read and not write, also as root: mounts of its own, which nobody else sees.

The modes of files do not bind root; mounts do. The folders are mounted on themselves in a mount namespace of the
process, read-only. What the machine mounts and unmounts later still reaches the process; what it mounts reaches nobody.

Knows no data sets. Invariant: nothing changes for other processes than this one and those that it starts.
"""

import ctypes
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_NEW_NAMESPACE: Final = 0x00020000  # the numbers are those of <sched.h> and <sys/mount.h>
_READ_ONLY: Final = 1
_REMOUNT: Final = 32
_BIND: Final = 4096
_RECURSIVE: Final = 16384
_SLAVE: Final = 1 << 19
_KEPT: Final = os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC
"""What a mount says besides; a remount would forget it. These numbers are the same for statvfs(3) and mount(2)."""
_ESCAPE: Final = re.compile(r"\\(\d{3})")

_libc = ctypes.CDLL(None, use_errno=True)


def make_read_only(folders: Sequence[str]) -> None:
    """Let this process, and all that it starts from now on, read these folders and not write in them.

    Needs a process of one thread that may mount (CAP_SYS_ADMIN).

    Raises:
        OSError: the machine refuses, or a folder is not there; folders before that one are read-only.
    """
    if not folders:
        return
    if _libc.unshare(_NEW_NAMESPACE) != 0:
        raise _os_error("a mount namespace of its own")
    _mount("/", _RECURSIVE | _SLAVE)  # before anything else, or the machine would see what follows
    for folder in folders:
        _mount(folder, _BIND | _RECURSIVE)
        for point in _mounts_within(os.path.realpath(folder)):
            _mount(point, _REMOUNT | _BIND | _READ_ONLY | (os.statvfs(point).f_flag & _KEPT))


def _mounts_within(folder: str) -> list[str]:
    """Return where something is mounted in a folder, and the folder itself if it is, from the outside in."""
    table = Path("/proc/self/mountinfo").read_bytes().splitlines()
    points = {_ESCAPE.sub(_character, os.fsdecode(line.split(b" ")[4])) for line in table}
    return sorted(point for point in points if point == folder or point.startswith(folder.rstrip("/") + "/"))


def _character(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 8))


def _mount(folder: str, flags: int) -> None:
    name = os.fsencode(folder)
    if _libc.mount(name, name, None, ctypes.c_ulong(flags), None) != 0:
        raise _os_error(folder)


def _os_error(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), what)
