"""The system calls that Python has no function for. Each raises `OSError`, with what was tried in its words."""

import ctypes
import os
from typing import Final

NEW_USER: Final = 0x10000000
"""CLONE_NEWUSER, <sched.h>."""
NEW_MOUNTS: Final = 0x00020000
"""CLONE_NEWNS."""

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_CAPBSET_DROP: Final = 24
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_INHERITED: Final = 47
_PR_INHERITED_DROP_ALL: Final = 4
_CAPSET: Final = 126
_CAPSET_ARM64: Final = 91
_CAPABILITY_VERSION_3: Final = 0x20080522
_MOUNT_SETATTR: Final = 442
_READ_ONLY: Final = 1
_EMPTY_PATH: Final = 0x1000
_RECURSIVE: Final = 0x8000
_NUM_CAPABILITIES: Final = 64

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def system_call(number: int, what: str, *arguments: object) -> int:
    """Make a system call by its number; every argument is a ctypes value, since syscall(2) is variadic.

    Raises:
        OSError: it is refused, or this kernel does not have it.
    """
    return _checked(_libc.syscall(ctypes.c_long(number), *arguments), what)


def unshare(flags: int, what: str) -> None:
    """Leave the namespaces of the parent.

    Raises:
        OSError: it is refused.
    """
    _checked(_libc.unshare(flags), what)


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    """Mount.

    Raises:
        OSError: it is refused.
    """
    values = (os.fsencode(source), os.fsencode(target), None if kind is None else kind.encode())
    data = None if options is None else options.encode()
    _checked(_libc.mount(*values, ctypes.c_ulong(flags), data), f"mounting {target}")


def set_read_only(mounted: int, *, value: bool, recursive: bool = False) -> None:
    """Make a mount read-only for this process's namespace, or writable again. Linux 5.12.

    Args:
        mounted: its top, open as O_PATH.
        value: whether it is to be read-only.
        recursive: with all that is mounted in it.

    Raises:
        OSError: it is refused, or this is not the top of a mount.
    """
    change = (ctypes.c_uint64 * 4)(_READ_ONLY if value else 0, 0 if value else _READ_ONLY, 0, 0)
    flags = _EMPTY_PATH | (_RECURSIVE if recursive else 0)
    system_call(
        _MOUNT_SETATTR,
        "making mounts read-only",
        ctypes.c_int(mounted),
        ctypes.c_char_p(b""),
        ctypes.c_uint(flags),
        ctypes.byref(change),
        ctypes.c_size_t(ctypes.sizeof(change)),
    )


def allow_looking_in() -> None:
    """Let processes of the same user look at this one in /proc; after a change of user it is root's."""
    _prctl(_PR_SET_DUMPABLE, 1)


def adopt_orphans() -> None:
    """Become the parent of every process that this one or its children start, and that loses its own."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent(number: int) -> None:
    """Have this signal sent to this process when the thread that started it ends."""
    _prctl(_PR_SET_PDEATHSIG, number)


def refuse_new_privileges() -> None:
    """Give up what setuid programs and file capabilities would add, for this process and all that it starts."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def bound_capabilities() -> None:
    """Give up what a program of root's would get back; does nothing for who may not, and has none to give up."""
    for number in range(_NUM_CAPABILITIES):
        if _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) != 0:
            return  # this kernel has no more of them


def drop_capabilities() -> None:
    """Give up all capabilities.

    Raises:
        OSError: they cannot be given up.
    """
    _libc.prctl(_PR_INHERITED, _PR_INHERITED_DROP_ALL, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    number = _CAPSET_ARM64 if os.uname().machine == "aarch64" else _CAPSET
    system_call(number, "giving up capabilities", header, nothing)


def effective_capabilities() -> int:
    """Return the effective capabilities of this process, one bit each."""
    with open("/proc/self/status", "rb") as file:
        return next(int(line.split()[1], 16) for line in file if line.startswith(b"CapEff:"))


def _prctl(option: int, value: int) -> None:
    _checked(_libc.prctl(option, value, 0, 0, 0), f"prctl {option}")


def _checked(result: int, what: str) -> int:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{os.strerror(number)} ({what})")
    return int(result)
