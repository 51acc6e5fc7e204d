"""Landlock: a process gives up the file system, but for folders that it names, and the way to signal strangers.

Source: https://docs.kernel.org/userspace-api/landlock.html. A kernel knows a number of rights, which its ABI tells;
what a ruleset handles is forbidden to the process and to all that it starts, except below the folders of its rules.
Rules only allow: there is no "all but". A layer cannot be left.

Knows no confinement. Invariant: a right that the kernel does not know is not asked for.
"""

import ctypes
import errno
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from pliant.isolation.opening import open_plain
from pliant.isolation.system_calls import system_call

_CREATE_RULESET: Final = 444  # the numbers are the same on every architecture
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_VERSION: Final = 1
_ERRATA: Final = 2
_BENEATH: Final = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_REFER, _TRUNCATE, _IOCTL_DEV, _RESOLVE_UNIX = 1 << 13, 1 << 14, 1 << 15, 1 << 16
_FIRST_13: Final = (1 << 13) - 1
_ADDED: Final = ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV), (9, _RESOLVE_UNIX))
"""Rights to files by the ABI that brought them."""
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV | _RESOLVE_UNIX
"""What a rule about a file, not a folder, may grant."""
_SCOPED_SINCE: Final = 6
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2

READ: Final = _EXECUTE | _READ_FILE | _READ_DIR
WRITE: Final = (_FIRST_13 & ~_MAKE_CHAR & ~_MAKE_BLOCK) | _REFER | _TRUNCATE | _IOCTL_DEV | _RESOLVE_UNIX
WRITE_UNLISTED: Final = WRITE & ~_READ_DIR
"""Everything but to see which names there are."""
DEVICE: Final = _READ_FILE | _WRITE_FILE | _READ_DIR | _IOCTL_DEV
LIST: Final = _READ_FILE | _READ_DIR
"""/proc: the modes of its files say the rest."""
CHANGE: Final = _WRITE_FILE | _TRUNCATE
"""What is in its files alone."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("parent", ctypes.c_int32))


@dataclass(frozen=True, slots=True, kw_only=True)
class LandlockRule:
    """What is allowed at a path and, if it is a folder, below it."""

    path: str
    rights: int
    is_plain: bool = False
    """A path with a link on its way counts as not there."""


def abi() -> int:
    """Return the version of Landlock that this kernel has, 0 if none or if it is turned off."""
    with suppress(OSError):
        return system_call(_CREATE_RULESET, "asking for Landlock", None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    return 0


def errata() -> int:
    """Return which mended faults of Landlock this kernel has, one bit each; 0 if it does not tell."""
    with suppress(OSError):
        return system_call(_CREATE_RULESET, "errata", None, ctypes.c_size_t(0), ctypes.c_uint32(_ERRATA))
    return 0


def scopes_signals(version: int) -> bool:
    """Tell whether this version keeps signals inside."""
    return version >= _SCOPED_SINCE


def restrict(rules: Iterable[LandlockRule], version: int, *, reach_sockets: bool = False) -> None:
    """Give up everything but what the rules allow, for good. Needs `refuse_new_privileges` before.

    Args:
        rules: a path that is not there is left out.
        version: of this kernel, 1 or higher.
        reach_sockets: leave abstract sockets of strangers within reach.

    Raises:
        OSError: the kernel refuses.
    """
    known = _FIRST_13 | sum(right for since, right in _ADDED if version >= since)
    scoped = 0 if version < _SCOPED_SINCE else _SIGNALS | (0 if reach_sockets else _ABSTRACT_SOCKETS)
    attributes = _Ruleset(files=known, network=0, scoped=scoped)
    size = ctypes.sizeof(_Ruleset) if version >= _SCOPED_SINCE else 8
    ruleset = system_call(
        _CREATE_RULESET, "a Landlock ruleset", ctypes.byref(attributes), ctypes.c_size_t(size), ctypes.c_uint32(0)
    )
    try:
        for rule in rules:
            _add(ruleset, rule, known)
        system_call(_RESTRICT_SELF, "entering Landlock", ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _add(ruleset: int, rule: LandlockRule, known: int) -> None:
    try:
        parent = open_plain(rule.path) if rule.is_plain else os.open(rule.path, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP):
            return
        raise
    try:
        is_folder = stat.S_ISDIR(os.fstat(parent).st_mode)
        rights = rule.rights & known & (-1 if is_folder else _OF_FILES)
        beneath = _Beneath(rights=rights, parent=parent)
        system_call(
            _ADD_RULE,
            f"a Landlock rule for {rule.path}",
            ctypes.c_int(ruleset),
            ctypes.c_int(_BENEATH),
            ctypes.byref(beneath),
            ctypes.c_uint32(0),
        )
    finally:
        os.close(parent)
