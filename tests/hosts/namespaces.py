"""A set of namespaces with a first process in it, and the processes that are started there.

The first process (`init.py`) is spoken to over a socket pair. Of what it starts it sends the number, which the kernel
turns into the one that holds out here, and a pidfd: a signal never meets a stranger of the same number.
Other namespaces may be made inside: they end with the ones they were made in.
"""

import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

from tests.hosts.init import MAX_MESSAGE, receive

PATIENCE_S: Final = 30.0
_INIT: Final = Path(__file__).with_name("init.py")
_CONTROL: Final = 3
"""The descriptor of its socket in a first process that another one has started; 0, 1 and 2 come before it."""
_UNSHARE: Final = (
    *("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount", "--propagation", "slave"),
    *("--mount-proc", "--uts", "--ipc"),
)


_Ended = Callable[[float], int]
"""Waits, so many seconds at most, until the last process in the namespaces is gone."""
_Start = Callable[[Mapping[str, Any], int, int], _Ended]
"""Starts a first process with options, the descriptor of its socket, and one for what it writes."""


class HostProcess:
    """A process on a host. It may have children; they are its own affair, and the host's."""

    def __init__(self, argv: Sequence[str], *, pid: int, pidfd: int, status: int) -> None:
        self.argv = list(argv)
        self.pid = pid
        """Its number out here; inside it has another one."""
        self._pidfd, self._status = pidfd, status
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return its exit code (negative: the signal that ended it), or None while it runs."""
        return self._read(0.0)

    def wait(self, timeout_s: float = PATIENCE_S) -> int:
        """Return its exit code when it has ended; TimeoutError if it has not by then."""
        if (code := self._read(timeout_s)) is None:
            raise TimeoutError(f"process {self.pid} {self.argv} still runs after {timeout_s:g} s")
        return code

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send it a signal; nothing happens if it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def close(self) -> None:
        """Forget it: it may run on, but is never again waited for or signalled from here."""
        if self._status >= 0:
            os.close(self._pidfd)
            os.close(self._status)
            self._pidfd = self._status = -1
            self._code = -signal.SIGKILL if self._code is None else self._code

    def _read(self, timeout_s: float) -> int | None:
        if self._code is None and is_readable(self._status, timeout_s):
            code = os.read(self._status, 4)  # nothing: the first process was killed, and all others with it
            self._code = struct.unpack("i", code)[0] if code else -signal.SIGKILL
        return self._code


class Namespaces:
    """Namespaces for network, processes, mounts, names and IPC of their own, and the first process in them."""

    def __init__(self, options: Mapping[str, Any], start: _Start) -> None:
        """Make them, in what `start` makes them in."""
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._lock = threading.Lock()
        self._processes: list[HostProcess] = []
        with tempfile.TemporaryFile() as errors:
            with theirs:
                self._ended = start(options, theirs.fileno(), errors.fileno())
            try:
                [self._pidfd], self.pid = self._receive()
            except (OSError, RuntimeError) as error:
                self._control.close()  # what has begun ends by that
                self._ended(PATIENCE_S)
                wrote = os.pread(errors.fileno(), 4096, 0).decode(errors="replace").strip()
                raise RuntimeError(f"no namespaces can be made: {wrote or error}") from error

    @classmethod
    def outermost(cls, options: Mapping[str, Any]) -> Self:
        """Make namespaces in those of this process. They end with this process, whatever ends it."""
        return cls(options, _start_here)

    def inner(self, options: Mapping[str, Any]) -> "Namespaces":
        """Make namespaces inside these; they end with these, frozen or not."""
        return Namespaces(options, self._start_inside)

    def _start_inside(self, options: Mapping[str, Any], control: int, errors: int) -> _Ended:
        command = _command({**options, "control": _CONTROL})
        return self.popen(command, streams=(None, errors, errors), fds=[control]).wait

    @property
    def numbers(self) -> list[int]:
        """The number of the first process, out here and then in each PID namespace that it is in, inwards."""
        lines = Path(f"/proc/self/fdinfo/{self._pidfd}").read_text().splitlines()
        return [int(number) for line in lines if line.startswith("NSpid:") for number in line.split()[1:]]

    def popen(
        self,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        streams: tuple[int | None, int, int] = (None, 1, 2),
        fds: Sequence[int] = (),
    ) -> HostProcess:
        """Start a process in here.

        Args:
            argv: program and arguments; the program is looked for on the PATH of `env`.
            env: its whole environment; that of this process if nothing is given.
            cwd: the folder it starts in; that of this process if nothing is given.
            streams: what becomes its standard input (None: nothing), output and errors.
            fds: what becomes its descriptors 3, 4, ...
        """
        words = [os.fspath(word) for word in argv]
        request = {"do": "start", "argv": words, "env": dict(os.environ if env is None else env)}
        request["cwd"] = os.fspath(cwd or os.getcwd())
        status, writing = os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY)
        try:
            first = nothing if streams[0] is None else streams[0]
            [pidfd], pid = self._ask(request, [writing, first, *streams[1:], *fds])
        except BaseException:
            os.close(status)
            raise
        finally:
            os.close(writing)
            os.close(nothing)
        process = HostProcess(words, pid=pid, pidfd=pidfd, status=status)
        self._processes.append(process)
        return process

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout_s: float = PATIENCE_S,
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run a process in here to its end; RuntimeError says what it wrote if it fails and `check` is true."""
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given.write(stdin.encode())
            given.seek(0)
            streams = (given.fileno(), out.fileno(), err.fileno())
            process = self.popen(argv, env=env, cwd=cwd, streams=streams)
            try:
                code = process.wait(timeout_s)
            finally:
                process.kill()
                self._processes.remove(process)
                process.close()
            texts = [os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode() for file in (out, err)]
        if check and code != 0:
            raise RuntimeError(f"{' '.join(process.argv)} ended with {code}: {stdin}\n{''.join(texts)}")
        return subprocess.CompletedProcess(process.argv, code, *texts)

    def freeze(self) -> None:
        """Stop all processes but the first; returns when none of them runs."""
        self._ask({"do": "freeze"})

    def thaw(self) -> None:
        """Let the processes that `freeze` has stopped go on."""
        self._ask({"do": "thaw"})

    def kill(self) -> None:
        """Kill all processes at once, by SIGKILL of the first; returns when the last one is gone."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        self._ended(PATIENCE_S)

    def close(self) -> None:
        """Kill all processes, and forget them."""
        self.kill()
        for process in self._processes:
            process.close()
        self._control.close()
        os.close(self._pidfd)

    def _ask(self, request: Mapping[str, Any], fds: Sequence[int] = ()) -> tuple[list[int], int]:
        message = json.dumps(request).encode()
        if len(message) > MAX_MESSAGE:
            raise ValueError(f"arguments and environment have {len(message)} bytes, more than {MAX_MESSAGE}")
        with self._lock:
            try:
                socket.send_fds(self._control, [message], fds)
            except (BrokenPipeError, ConnectionResetError) as error:
                raise RuntimeError("the first process of the host is gone: the host was killed; restart it") from error
            return self._receive()

    def _receive(self) -> tuple[list[int], int]:
        if not is_readable(self._control.fileno(), PATIENCE_S):
            raise TimeoutError(f"the first process of the host did not answer within {PATIENCE_S:g} s")
        answer, fds, pid = receive(self._control)
        if answer is None:
            raise RuntimeError("the first process of the host is gone, or could not be started; see what it wrote")
        if "error" in answer:
            raise OSError(answer["error"])
        return fds, pid


def is_readable(fd: int, timeout_s: float) -> bool:
    """Wait until something can be read from a descriptor, or its other end is closed."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))


def _start_here(options: Mapping[str, Any], control: int, errors: int) -> _Ended:
    owner = os.pidfd_open(os.getpid())
    try:
        shim = subprocess.Popen(
            _command({**options, "control": control, "owner": owner}),
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            pass_fds=(control, owner),
            start_new_session=True,
        )
    finally:
        os.close(owner)
    return shim.wait


def _command(options: Mapping[str, Any]) -> list[str]:
    return [*_UNSHARE, sys.executable, "-I", "-S", str(_INIT), json.dumps(options)]
