"""The first process of a host (its PID 1): it starts what it is asked to, reaps, stops and continues all of them.

It runs as a script, in new namespaces that unshare(1) has made, without site-packages: it is there in some 30 ms. It
mounts what the host has for itself, then takes requests, one JSON object each, over the socket that it was given. It
ends when the other end of that socket is closed, or when the process ends whose pidfd it was given; the kernel then
kills all that is left in the host.

It does not know networks, nor what the processes are for.
"""

import array
import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

MAX_MESSAGE: Final = 200_000
_MAX_FDS: Final = 16
_CREDENTIALS: Final = struct.Struct("3i")
_FREEZE_S: Final = 5.0
_RESET: Final = (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ)
"""Ignored here, by Python or by us; a process that is started here begins as under a shell."""


def main() -> NoReturn:
    """Set the host up, say so with a pidfd of this process, and serve until the owner is gone."""
    options = json.loads(sys.argv[1])
    control = socket.socket(fileno=options["control"])
    owner = options.get("owner")
    for fd in (control.fileno(), *([] if owner is None else [owner])):
        os.set_inheritable(fd, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        _set_up(options)
    except OSError as error:
        _answer(control, {"error": str(error)}, None)
        os._exit(1)
    _answer(control, {}, os.getpid())
    _Init(control, owner).serve()


def _set_up(options: dict[str, Any]) -> None:
    if name := options.get("name"):
        socket.sethostname(name)
    for path, value in options.get("sysctls", {}).items():
        Path("/proc/sys", path).write_text(value)
    for path, size in options["tmpfs"].items():
        _mount("tmpfs", path, "tmpfs", 0, f"size={size},mode=1777")
    if options.get("names") and Path("/etc/hosts").is_file():
        own = Path("/dev/shm/hosts")  # on the tmpfs from above; the mount keeps it when its name is gone
        own.write_bytes(Path("/etc/hosts").read_bytes().rstrip() + b"\n")
        own.chmod(0o644)
        _mount(str(own), "/etc/hosts", None, 0x1000, None)  # MS_BIND
        own.unlink()


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    if libc.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3]) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"mount of {kind or source}: {os.strerror(code)}", target)


class _Init:
    def __init__(self, control: socket.socket, owner: int | None) -> None:
        self._control = control
        self._statuses: dict[int, int] = {}
        """By process that was asked for: where its exit code goes."""
        self._frozen: set[int] = set()
        self._woken, waker = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(waker, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._poll = select.poll()
        for fd in (control.fileno(), self._woken, *([] if owner is None else [owner])):
            self._poll.register(fd, select.POLLIN)
        self._owner = owner

    def serve(self) -> NoReturn:
        while True:
            ready = {fd for fd, _ in self._poll.poll()}
            if self._owner in ready:
                os._exit(0)
            if self._woken in ready:
                os.read(self._woken, 4096)
            self._reap()
            if self._control.fileno() in ready:
                self._take()

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if (fd := self._statuses.pop(pid, None)) is not None:
                with suppress(BrokenPipeError):
                    os.write(fd, struct.pack("i", os.waitstatus_to_exitcode(status)))
                os.close(fd)

    def _take(self) -> None:
        request, fds, _ = receive(self._control)
        if request is None:
            os._exit(0)
        answer: dict[str, Any] = {}
        pid: int | None = None
        try:
            match request["do"]:
                case "start":
                    pid = self._start(request, fds)
                case "freeze":
                    self._freeze()
                case "thaw":
                    self._thaw()
        except (OSError, TimeoutError) as error:
            answer = {"error": str(error)}
        finally:
            for fd in fds:
                os.close(fd)
        _answer(self._control, answer, pid)

    def _start(self, request: dict[str, Any], fds: list[int]) -> int:
        """Start a process with descriptors 0, 1, 2, ... as they came; the first one of all is for its exit code."""
        failed, failing = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                _become(request, fds[1:])
            except OSError as error:
                os.write(failing, os.fsencode(f"{error.strerror}: {os.fsdecode(error.filename)}"))
            finally:
                os._exit(127)
        os.close(failing)
        with os.fdopen(failed, "rb") as pipe:
            why = pipe.read()
        if why:
            os.waitpid(pid, 0)
            raise OSError(os.fsdecode(why))
        self._statuses[pid] = os.dup(fds[0])
        return pid

    def _freeze(self) -> None:
        """Stop every process; one in a call that cannot be interrupted stops before it computes again, so it counts."""
        deadline = time.monotonic() + _FREEZE_S
        stopped_before = {pid for pid in _pids() if _is_in(pid, "T")} - self._frozen
        while running := [
            pid for pid in _pids() if pid not in stopped_before and not (pid in self._frozen and _is_in(pid, "TtDZX"))
        ]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"processes {running} did not stop within {_FREEZE_S:g} s")
            self._frozen.update(running)
            for pid in running:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            time.sleep(0.001)

    def _thaw(self) -> None:
        for pid in self._frozen:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self._frozen.clear()


def _become(request: dict[str, Any], fds: list[int]) -> NoReturn:
    os.setsid()
    for number in _RESET:
        signal.signal(number, signal.SIG_DFL)
    sources = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, len(fds)) for fd in fds]  # out of the way of 0, 1, 2, ...
    for fd, source in enumerate(sources):
        os.dup2(source, fd)
    os.chdir(request["cwd"])
    os.execvpe(request["argv"][0], request["argv"], request["env"])


def _pids() -> list[int]:
    """Return all processes of this host but this one."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]


def _is_in(pid: int, states: str) -> bool:
    """Tell whether all threads of a process are in one of these states; a process that is gone is in every state."""
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            if Path(f"/proc/{pid}/task/{task}/stat").read_text().rpartition(")")[2].split()[0] not in states:
                return False
    except (FileNotFoundError, ProcessLookupError):
        pass
    return True


def receive(control: socket.socket) -> tuple[dict[str, Any] | None, list[int], int]:
    """Return a message (None: the other end is closed), its descriptors, and the number of the process it speaks of."""
    space = socket.CMSG_SPACE(_MAX_FDS * 4) + socket.CMSG_SPACE(_CREDENTIALS.size)
    text, ancillary, _, _ = control.recvmsg(MAX_MESSAGE, space, socket.MSG_CMSG_CLOEXEC)
    fds, pid = array.array("i"), 0
    for _, kind, data in ancillary:
        if kind == socket.SCM_RIGHTS:
            fds.frombytes(data)
        elif kind == socket.SCM_CREDENTIALS:
            pid = _CREDENTIALS.unpack(data)[0]
    return json.loads(text) if text else None, fds.tolist(), pid


def _answer(control: socket.socket, answer: dict[str, Any], pid: int | None) -> None:
    """Answer, with a pidfd and the number of the process that was started.

    The kernel turns the number, sent as a credential, into the one that the process has where it is received.
    """
    fds = [] if pid is None else [os.pidfd_open(pid)]
    credentials = _CREDENTIALS.pack(pid or os.getpid(), os.getuid(), os.getgid())
    ancillary = [
        (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds).tobytes()),
        (socket.SOL_SOCKET, socket.SCM_CREDENTIALS, credentials),
    ]
    with suppress(BrokenPipeError, ConnectionResetError):
        control.sendmsg([json.dumps(answer).encode()], ancillary[0 if fds else 1 :])
    for fd in fds:
        os.close(fd)


if __name__ == "__main__":
    main()
