"""Lays hands on processes that are not its own: the server, the zygote, tasks of others."""

import ctypes
import os
import resource
import signal
from collections.abc import Callable

from probe import Facts, first_of, play, probe

_libc = ctypes.CDLL(None, use_errno=True)
_PTRACE_ATTACH, _PTRACE_DETACH = 16, 17


def checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


class Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def read_memory(pid: int) -> str:
    with open(f"/proc/{pid}/maps") as maps:
        begin = int(maps.readline().partition("-")[0], 16)
    taken = ctypes.create_string_buffer(8)
    mine, theirs = Vector(ctypes.addressof(taken), 8), Vector(begin, 8)
    checked(_libc.process_vm_readv(pid, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0))
    return f"read memory of {pid}"


def trace(pid: int) -> str:
    checked(_libc.ptrace(_PTRACE_ATTACH, pid, None, None))
    os.waitpid(pid, 0)
    checked(_libc.ptrace(_PTRACE_DETACH, pid, None, None))
    return f"traced {pid}"


def send(pid: int) -> str:
    os.kill(pid, 0)
    return f"may send signals to {pid}"


def send_by_descriptor(pid: int) -> str:
    signal.pidfd_send_signal(os.pidfd_open(pid), 0)
    return f"may send signals to {pid}"


def slow_down(pid: int) -> str:
    os.setpriority(os.PRIO_PROCESS, pid, 19)
    return "slowed down"


def pin(pid: int) -> str:
    """Try to leave it one processor; that no error comes says nothing."""
    before = os.sched_getaffinity(pid)
    os.sched_setaffinity(pid, {min(before)})
    if len(before) == 1:
        return "cannot be told on one processor"
    if os.sched_getaffinity(pid) == before:
        raise PermissionError
    os.sched_setaffinity(pid, before)
    return "pinned"


def limit(pid: int) -> str:
    resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
    return "limited"


def offer(pid: int) -> str:
    """Offer it as the first to be ended when memory runs out."""
    with open(f"/proc/{pid}/oom_score_adj", "w") as file:
        file.write("500")
    return "offered"


def of(who: str, action: Callable[[int], str]) -> Callable[[Facts], object]:
    def act(facts: Facts) -> object:
        pids = facts[who] if isinstance(facts[who], list) else [facts[who]]
        return first_of([lambda pid=pid: action(pid) for pid in pids])

    return act


for _name, _action in (
    ("a signal", send),
    ("a signal by descriptor", send_by_descriptor),
    ("tracing", trace),
    ("reading memory", read_memory),
    ("another priority", slow_down),
    ("other processors", pin),
    ("other limits", limit),
    ("an earlier end when memory runs out", offer),
):
    for _who, _of_whom in (("server", "the server"), ("zygote", "the zygote"), ("victims", "another's task")):
        probe(f"{_name}: {_of_whom}")(of(_who, _action))

play()
