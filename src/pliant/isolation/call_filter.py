"""A filter of system calls (seccomp): ways to others and to what outlives a process, which Landlock does not cover.

What it answers, and why
------------------------

Of every process:

- Memory, semaphores and message queues of System V, and message queues by name (`shmget`, `mq_open` and kin): ENOSYS.
  They belong to a user, not to a process: they would outlive the job, and those of the operator can be removed. A
  namespace for them is no way: whether CUDA shares memory between two of them was not tried. `/dev/shm` is the job's.
- Keys of the kernel (`add_key`, `request_key`, `keyctl`): ENOSYS. A process inherits the keyring of the session that
  the server was started in, also as another user, and with it tickets and passwords of the operator.
- Calls of another architecture (i386, x32, 32-bit ARM): ENOSYS, since their numbers are others. Such programs do not
  run.

Of a process without a network: `socket` of any family but that of this machine's files (AF_UNIX): EACCES; and
`io_uring_setup`: ENOSYS, since what goes through a ring passes no filter.

Of a process whose user others have too, the server or other people's jobs (strangers of another user the kernel itself
refuses):

- Priorities, scheduling and limits (`setpriority`, `ioprio_set`, `sched_setscheduler`, `sched_setparam`,
  `sched_setattr`, `prlimit64`): a process may change its own, by its number or by 0, and nobody else's: EPERM. A filter
  sees numbers, not whose they are, so children and other threads are strangers too. They may change their own, by 0.
- `sched_setaffinity` of another number, and `sched_setscheduler` of one to the usual SCHED_OTHER: success, and nothing
  happens. Thread libraries pin their own threads by the threads' numbers (OMP_PROC_BIND, affinity of a pthread) and
  give up if that fails; where a thread runs is a hint. ZeroMQ, and Jupyter with it, gives each of its threads the
  policy that it has, and aborts the process if that fails.

Not here, since the kernel asks whether one may trace the other, which Landlock refuses in every version:
`process_vm_readv`, `process_madvise`, `migrate_pages`, `move_pages`, `kcmp`, `pidfd_getfd`, core scheduling.

A process number has 32 bits; the kernel ignores the upper half of the register, and so does the filter. Calls that are
not in the table cost next to nothing: since Linux 5.11 the kernel knows which ones a filter always allows.

Source: https://docs.kernel.org/userspace-api/seccomp_filter.html; the numbers are those of the kernel's tables.
Invariant: can only be made narrower from then on, by the process or by what it starts.
"""

import ctypes
import errno
import os
import socket
import struct
import sys
from dataclasses import dataclass
from typing import Final

from pliant.isolation.system_calls import system_call

_SET_FILTER: Final = 1
_NO_SPECULATION_CHANGE: Final = 1 << 2
"""SECCOMP_FILTER_FLAG_SPEC_ALLOW: older kernels slow a filtered process down by a workaround else."""
_ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000
_X32: Final = 0x40000000
"""In a number: the call is made by x32's table."""
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16  # in struct seccomp_data
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_PROCESS, _GROUP = 0, 1
"""PRIO_PROCESS, PRIO_PGRP; the third one means all processes of a user."""
_IO_PROCESS, _IO_GROUP = 1, 2
_ALLOWED: Final = (_RETURN, 0, 0, _ALLOW)

_NUMBERS: Final = {
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "sched_setaffinity": (203, 122),
    "prlimit64": (302, 261),
    "seccomp": (317, 277),
    "socket": (41, 198),
    "io_uring_setup": (425, 425),
}
"""Of each call: on x86_64, and on 64-bit ARM."""
_UNKNOWN: Final = {
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "shmget": (29, 194),
    "shmctl": (31, 195),
    "shmat": (30, 196),
    "semget": (64, 190),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "semop": (65, 193),
    "msgget": (68, 186),
    "msgctl": (71, 187),
    "msgrcv": (70, 188),
    "msgsnd": (69, 189),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
}
"""The same, of those that nobody has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """How one kind of processor numbers system calls."""

    audit: int
    """AUDIT_ARCH_…, <linux/audit.h>."""
    column: int
    """Of the table of numbers."""
    has_x32: bool = False

    def number(self, call: str) -> int:
        """Return the number of a call."""
        return (_NUMBERS | _UNKNOWN)[call][self.column]


_ARCHITECTURES: Final = {
    "x86_64": Architecture(audit=0xC000003E, column=0, has_x32=True),
    "aarch64": Architecture(audit=0xC00000B7, column=1),
}

_Instruction = tuple[int, int, int, int]
"""Its code; how many instructions to skip if a condition holds, and if it does not; its value. <linux/filter.h>."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def architecture() -> Architecture | None:
    """Return what this process runs on; None: the filter has no numbers for it."""
    return _ARCHITECTURES.get(os.uname().machine) if sys.maxsize > 1 << 32 else None


def refuse_calls(*, shares_user: bool, leads_session: bool, has_network: bool = True) -> bool:
    """Filter the calls of this process, which has one thread, for good. Needs `refuse_new_privileges` before.

    Args:
        shares_user: processes that are not its own have the same user.
        leads_session: nobody but what it starts can be in its process group.
        has_network: it may make sockets of the network.

    Returns:
        Whether this machine can.
    """
    here = architecture()
    if here is None:
        return False
    own = os.getpid() if shares_user else None
    instructions = program(here, own, leads_session=leads_session, has_network=has_network)
    code = b"".join(struct.pack("=HBBI", *one) for one in instructions)
    given = _Program(length=len(code) // 8, instructions=code)
    try:
        system_call(
            here.number("seccomp"),
            "a filter of system calls",
            ctypes.c_uint(_SET_FILTER),
            ctypes.c_uint(_NO_SPECULATION_CHANGE),
            ctypes.byref(given),
        )
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EINVAL, errno.EPERM, errno.EACCES):  # built without it, or a container's
            return False
        raise
    return True


def program(
    here: Architecture, own: int | None, *, leads_session: bool, has_network: bool = True
) -> list[_Instruction]:
    """Return the filter as the kernel wants it.

    Args:
        here: whose numbers it knows.
        own: the number of the process; None: it may call about others, as far as the kernel lets it.
        leads_session, has_network: as for `refuse_calls`.
    """
    unknown = _answer(errno.ENOSYS)
    code = [_load(_ARCHITECTURE_AT), _equal(here.audit, skip=1), unknown, _load(_NUMBER_AT)]
    if here.has_x32:
        code += [(_IF_AT_LEAST, 0, 1, _X32), unknown]
    blocks = {call: [unknown] for call in _UNKNOWN}
    if own is not None:
        blocks |= _about_others(own, leads_session=leads_session)
    if not has_network:
        blocks["socket"] = [_load(_ARGUMENTS_AT), _equal(socket.AF_UNIX, skip=1), _answer(errno.EACCES), _ALLOWED]
        blocks["io_uring_setup"] = [unknown]
    for call, block in blocks.items():
        code += [_equal(here.number(call), otherwise=len(block)), *block]
    return [*code, _ALLOWED]


def _about_others(own: int, *, leads_session: bool) -> dict[str, list[_Instruction]]:
    """Return what is done about each call; it always ends in an answer."""
    refused = _answer(errno.EPERM)
    blocks = {"sched_setaffinity": _only(own, 0, _answer(0))}
    for call in ("sched_setparam", "sched_setattr"):
        blocks[call] = _only(own, 0, refused)
    usual = [_load(_ARGUMENTS_AT + 8), _equal(os.SCHED_OTHER, otherwise=1), _answer(0)]
    blocks["sched_setscheduler"] = _only(own, 0, *usual, refused)
    for call, alone, together in (("setpriority", _PROCESS, _GROUP), ("ioprio_set", _IO_PROCESS, _IO_GROUP)):
        kinds = [_equal(together, skip=2), _equal(alone, skip=1)] if leads_session else [_equal(alone, skip=1)]
        blocks[call] = [_load(_ARGUMENTS_AT), *kinds, refused, *_only(own, 1, refused)]
    looked_at = _only(own, 0, refused)
    limits = _ARGUMENTS_AT + 2 * 8  # without new limits the call only reads
    read = [_load(limits), _equal(0, otherwise=2), _load(limits + 4), _equal(0, skip=len(looked_at) - 1)]
    blocks["prlimit64"] = [*read, *looked_at]
    return blocks


def _only(own: int, argument: int, *otherwise: _Instruction) -> list[_Instruction]:
    """Return what allows a call about oneself, and answers one about another process."""
    about = _ARGUMENTS_AT + argument * 8  # the lower half: both architectures are little-endian
    rest = len(otherwise)
    return [_load(about), _equal(0, skip=rest + 1), _equal(own, skip=rest), *otherwise, _ALLOWED]


def _load(at: int) -> _Instruction:
    return (_LOAD, 0, 0, at)


def _equal(value: int, *, skip: int = 0, otherwise: int = 0) -> _Instruction:
    return (_IF_EQUAL, skip, otherwise, value)


def _answer(number: int) -> _Instruction:
    return (_RETURN, 0, 0, _ERRNO | number)
