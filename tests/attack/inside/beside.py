"""Runs beside a task of its own job, in a shell, or is that task: lays hands on the sidecar, and on the other one.

Between a task and what runs beside it are walls. What its sidecar knows of others is nothing, though it is a fork of
the process that all tasks are forked from.
"""

import ctypes
import hashlib
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from probe import Facts, play, probe
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.sync.client import connect

from pliant.core.link_proof import NUM_BYTES, LinkProof

_libc = ctypes.CDLL(None, use_errno=True)
_PTRACE_ATTACH, _PTRACE_DETACH = 16, 17
_PIDFD_GETFD = 438
_TOKEN = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def variables(pid: int) -> str:
    with open(f"/proc/{pid}/environ", "rb") as file:
        return f"read {len(file.read())} bytes"


def memory(pid: int) -> str:
    with open(f"/proc/{pid}/mem", "rb"):
        return "opened"


def descriptors(pid: int) -> str:
    return f"0 is {os.readlink(f'/proc/{pid}/fd/0')}"


def take_connection(pid: int) -> str:
    """Take one of its files: the connection with the server is among them."""
    handle = os.pidfd_open(pid)
    taken = [_libc.syscall(_PIDFD_GETFD, handle, number, 0) for number in range(32)]
    if max(taken) < 0:
        raise PermissionError
    return "took a file"


def trace(pid: int) -> str:
    checked(_libc.ptrace(_PTRACE_ATTACH, pid, None, None))
    os.waitpid(pid, 0)
    checked(_libc.ptrace(_PTRACE_DETACH, pid, None, None))
    return "traced"


def stop(pid: int) -> str:
    os.kill(pid, signal.SIGSTOP)
    return "stopped"


def stop_by_descriptor(pid: int) -> str:
    signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGSTOP)
    return "stopped"


def type_into(pid: int) -> str:
    with open(f"/proc/{pid}/fd/0", "wb", buffering=0) as file:
        return f"wrote {file.write(b'x')} bytes"


def of(who: str, action: Callable[[int], str]) -> Callable[[Facts], object]:
    return lambda facts: action(facts[who]) if who in facts else "nobody is there"


for _name, _action in (
    ("variables", variables),
    ("memory", memory),
    ("files", descriptors),
    ("a file, taken", take_connection),
    ("tracing", trace),
    ("a signal", stop),
    ("a signal by descriptor", stop_by_descriptor),
    ("its input", type_into),
):
    for _who in ("task", "sidecar", "shell"):
        probe(f"{_name} of the {_who}")(of(_who, _action))


def in_its_place(facts: Facts, key: str) -> str:
    """Connect as the sidecar of a tunnel that is being made or used."""
    proof = LinkProof(task_id=facts["tunnel"], challenge="", nonce=os.urandom(NUM_BYTES).hex())
    try:
        with connect(facts["inside"], additional_headers={"Authorization": proof.authorization(key)}):
            return "connected"
    except InvalidStatus as refused:
        return f"HTTP {refused.response.status_code}"
    except WebSocketException as error:
        return type(error).__name__


@probe("the place of the sidecar, by guesses")
def guess(facts: Facts) -> str:
    return ", ".join(sorted({in_its_place(facts, key) for key in ("", "x", facts["tunnel"], "0" * 43, "A" * 43)}))


def parts(pid: int) -> Iterator[bytes]:
    """Yield the parts of a process's memory that it can write."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        for line in maps.readlines():
            bounds, modes = line.split()[:2]
            if modes.startswith("rw") and not line.rstrip().endswith("[vvar]"):
                begin, end = (int(bound, 16) for bound in bounds.split("-"))
                with suppress(OSError, ValueError, OverflowError):
                    mem.seek(begin)
                    yield mem.read(min(end - begin, 1 << 28))


@probe("what its own sidecar knows of others")
def known(facts: Facts) -> str:
    """Search the parent; a server of an ordinary user lets it: that is of its own job, within the same walls."""
    wanted = {facts["token_hash"]: "the token of another job", facts["key_hash"]: "a variable of the server"}
    with suppress(OSError):
        for part in (Path(f"/proc/{os.getppid()}/environ").read_bytes(), *parts(os.getppid())):
            for match in _TOKEN.finditer(part):
                if what := wanted.get(hashlib.sha256(match.group()).hexdigest()):
                    return f"found {what}"
    return "nothing"


@probe("nonsense through its own sidecar's connection")
def nonsense(_: Facts) -> str:
    """Take the connection of the parent, where the system lets it, and send what is no WebSocket."""
    handle = os.pidfd_open(os.getppid())
    for number in range(3, 32):
        taken = _libc.syscall(_PIDFD_GETFD, handle, number, 0)
        with suppress(OSError):
            if taken >= 0 and os.readlink(f"/proc/self/fd/{taken}").startswith("socket:"):
                for _ in range(100):
                    os.write(taken, b"\xff" * 4096)
    return "done"


play()
