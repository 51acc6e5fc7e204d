"""The inner end of a shell: a program on a terminal of its own, or on pipes, whose ends go through a tunnel.

It ends with the tunnel: it gets SIGHUP then, as at the end of any terminal, and what is left a second later is killed
by whoever started this process, the parent of all of it.
"""

import fcntl
import os
import shutil
import signal
import struct
import termios
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from pliant.core.tunnel import Frame, FrameKind, TunnelExit, WindowSize
from pliant.tunnel.stream import Inlet, Outlet, TunnelStream, write_all
from pliant.tunnel.window import TunnelClosed

HANG_UP_S: Final = 1.0
_QUIET_S: Final = 0.3
"""A program that has ended may have left others its output; what they write is awaited no longer than this."""
_CANNOT_RUN: Final = 127
_IGNORED_BY_PYTHON: Final = (signal.SIGPIPE, signal.SIGXFSZ)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramFiles:
    """A program that runs, and our ends of its files."""

    pid: int
    stdin: int
    stdout: int
    stderr: int | None
    """None: stdout has all, and is a terminal."""

    @property
    def is_terminal(self) -> bool:
        """Whether they are one file: a terminal."""
        return self.stderr is None


def start(command: Sequence[str], env: Mapping[str, str], size: WindowSize | None) -> ProgramFiles:
    """Start a program in a session of its own: on a terminal of this size, or without a size on pipes.

    Raises:
        OSError: it cannot be run.
    """
    if size is None:
        return _start_on_pipes(command, env)
    ours, theirs = os.openpty()
    try:
        resize(ours, size)
        # who leads a session and has no terminal yet gets the one that it opens first
        opening = (os.POSIX_SPAWN_OPEN, 0, os.ttyname(theirs), os.O_RDWR, 0)
        pid = _spawn(command, env, [opening, (os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)])
    except OSError:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return ProgramFiles(pid=pid, stdin=ours, stdout=ours, stderr=None)


def _start_on_pipes(command: Sequence[str], env: Mapping[str, str]) -> ProgramFiles:
    (their_in, our_in), (our_out, their_out), (our_err, their_err) = os.pipe(), os.pipe(), os.pipe()
    theirs = (their_in, their_out, their_err)
    try:
        pid = _spawn(command, env, [(os.POSIX_SPAWN_DUP2, file, number) for number, file in enumerate(theirs)])
    finally:
        for file in theirs:
            os.close(file)
    return ProgramFiles(pid=pid, stdin=our_in, stdout=our_out, stderr=our_err)


def _spawn(command: Sequence[str], env: Mapping[str, str], actions: Sequence[tuple[Any, ...]]) -> int:
    path = shutil.which(command[0], path=env.get("PATH")) or command[0]  # in the program's own PATH, not in ours
    return os.posix_spawn(
        path, list(command), env, file_actions=actions, setsid=True, setsigmask=(), setsigdef=_IGNORED_BY_PYTHON
    )


def resize(terminal: int, size: WindowSize) -> None:
    """Make a terminal so large; who runs on it is sent a SIGWINCH."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.columns, 0, 0))


def serve(stream: TunnelStream, command: Sequence[str], env: Mapping[str, str], size: WindowSize | None) -> None:
    """Run a program at the inner end of a tunnel until it has ended, or the tunnel is closed."""
    try:
        program = start(command, env, size)
    except OSError as error:
        reader = threading.Thread(target=lambda: list(stream.frames()), daemon=True)  # so that grants are taken
        reader.start()
        stream.send(TunnelExit(code=_CANNOT_RUN, error=f"{command[0]} cannot be run: {error.strerror}").frame())
        stream.close()
        return
    is_over = threading.Event()
    threading.Thread(target=_obey, args=(stream, program, is_over), name="pliant-tunnel", daemon=True).start()
    inlets = [Inlet(stream, FrameKind.DATA, lambda count: os.read(program.stdout, count), lambda: None)]
    if (errors := program.stderr) is not None:
        inlets.append(Inlet(stream, FrameKind.ERRORS, lambda count: os.read(errors, count), lambda: None))
    code = os.waitstatus_to_exitcode(os.waitpid(program.pid, 0)[1])
    is_over.set()
    for inlet in inlets:
        inlet.join(_QUIET_S)
    with suppress(TunnelClosed):
        stream.send(TunnelExit(code=code if code >= 0 else 128 - code).frame())
    stream.close()


def _obey(stream: TunnelStream, program: ProgramFiles, is_over: threading.Event) -> None:
    """Do what comes through the tunnel; when it is closed, end the program and this process."""
    outlet = Outlet(stream, lambda data: write_all(program.stdin, data), lambda: _end_input(program))
    with suppress(ValueError):  # the client does not keep to the rules: it is hung up on
        for frame in stream.frames():
            _take(frame, program, outlet)
    with suppress(ProcessLookupError):
        if not is_over.is_set():
            os.killpg(program.pid, signal.SIGHUP)
    is_over.wait(HANG_UP_S)
    os._exit(0)


def _take(frame: Frame, program: ProgramFiles, outlet: Outlet) -> None:
    match frame.kind:
        case FrameKind.DATA:
            outlet.put(frame.content)
        case FrameKind.END:
            outlet.end()
        case FrameKind.SIZE if program.is_terminal:
            resize(program.stdout, WindowSize.of(frame))
        case _:
            pass


def _end_input(program: ProgramFiles) -> None:
    if not program.is_terminal:
        os.close(program.stdin)
