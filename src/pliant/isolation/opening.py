"""Opening what somebody else may have put a link into the way of."""

import ctypes
import errno
import os
import stat
from typing import Final

from pliant.isolation.system_calls import system_call

_LOOK: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_OPENAT2: Final = 437
_NO_SYMLINKS: Final = 4
_UNKNOWN: Final = (errno.ENOSYS, errno.EPERM)
"""This kernel does not have openat2 (Linux 5.6), or a container refuses it."""


def open_plain(path: str) -> int:
    """Open a whole path as O_PATH, if no link is on the way.

    Raises:
        OSError: a link is (ELOOP), or it is not there.
    """
    how = (ctypes.c_uint64 * 3)(os.O_PATH | os.O_CLOEXEC, 0, _NO_SYMLINKS)  # O_NOFOLLOW would open a link at the end
    name, size = ctypes.c_char_p(os.fsencode(path)), ctypes.c_size_t(ctypes.sizeof(how))
    try:
        return system_call(_OPENAT2, f"opening {path}", ctypes.c_int(-1), name, ctypes.byref(how), size)
    except OSError as error:
        if error.errno not in _UNKNOWN:
            raise
    return _open_by_names(path)


def _open_by_names(path: str) -> int:
    here = os.open("/", _LOOK)
    for name in names_of(path):
        above = here
        try:
            here = os.open(name, _LOOK, dir_fd=above)
        finally:
            os.close(above)
        if stat.S_ISLNK(os.fstat(here).st_mode):
            os.close(here)
            raise OSError(errno.ELOOP, f"a link is on the way, at {name!r}", path)
    return here


def names_of(path: str) -> list[str]:
    """Return the names that a whole path is made of."""
    return [name for name in path.split("/") if name]
