"""The command `shell`: a program beside a task, with this terminal or these pipes as its own."""

import os
import queue
import signal
import sys
import threading
from contextlib import ExitStack, suppress
from functools import partial
from typing import Annotated, Final

import typer

from pliant.api.tunnel import ShellRequest
from pliant.cli.options import JobArgument
from pliant.cli.problems import validate
from pliant.cli.screen import say
from pliant.cli.session import job_id_of, open_client
from pliant.cli.terminal import KeyFilter, has_terminal, raw, window_size
from pliant.client import Client
from pliant.core.errors import Unavailable
from pliant.core.tunnel import Frame, FrameKind, TunnelExit
from pliant.tunnel.stream import Inlet, Outlet, TunnelStream, write_all
from pliant.tunnel.window import TunnelClosed

_BROKEN_PIPE: Final = 128 + signal.SIGPIPE
_STDIN, _STDOUT, _STDERR = 0, 1, 2


def shell(
    context: typer.Context,
    job: JobArgument,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND", help="Run this in place of a shell.", show_default=False),
    ] = None,
    task: Annotated[
        int | None, typer.Option(metavar="N", help="Beside this task, such as 2 for job-1.2.", show_default=False)
    ] = None,
) -> None:
    """Open a shell beside a task of a job, within its walls.

    It has the task's user, files, GPUs and limits, and ends with it. On a
    terminal Enter ~ . hangs up. Where input or output is a pipe there is no
    terminal, and stdout and stderr come apart. The exit code is the command's.

    \b
    pliant shell digits
    pliant shell --task 2 job-1
    pliant shell job-1 -- nvidia-smi
    pliant shell job-1 -- tar c . > code.tar
    """
    terminal = None
    if has_terminal():
        size = window_size()
        terminal = {"term": os.environ.get("TERM") or "xterm", "rows": size.rows, "columns": size.columns}
    request = validate(ShellRequest, {"task": task, "command": command or (), "terminal": terminal})
    with open_client(context) as client:
        job_id = job_id_of(client, job)
        if terminal is not None:
            _warn_of_stranger(client, job_id)
        code = _Session(client.open_shell(job_id, request), on_terminal=terminal is not None).attend()
    raise typer.Exit(code)


def _warn_of_stranger(client: Client, job_id: str) -> None:
    """Say that what somebody else's job prints can do anything to a terminal."""
    owner = client.job(job_id).job.owner
    if owner != client.people.me().name:
        say(f"{job_id} is {owner}'s: what runs there can send your terminal anything, and can see what you type")


class _Session:
    """One shell, from here."""

    def __init__(self, stream: TunnelStream, *, on_terminal: bool) -> None:
        self._stream = stream
        self._on_terminal = on_terminal
        self._keys = KeyFilter() if on_terminal else None
        self._is_broken = False
        self._resized: queue.SimpleQueue[None] = queue.SimpleQueue()

    def attend(self) -> int:
        """Pass everything on until it is over; return the exit code.

        Raises:
            Unavailable: the server, or the task, is gone.
        """
        ended: TunnelExit | None = None
        with ExitStack() as stack:
            stack.callback(self._stream.close)
            if self._on_terminal:
                stack.enter_context(raw(lambda: self._resized.put(None)))
                threading.Thread(target=self._send_sizes, daemon=True).start()
            outlets = {
                FrameKind.DATA: Outlet(self._stream, partial(write_all, _STDOUT), lambda: None, self._break),
                FrameKind.ERRORS: Outlet(self._stream, partial(write_all, _STDERR), lambda: None),
            }
            self._read_input()
            with suppress(ValueError):  # it does not keep to the rules: the end is missing then
                for frame in self._stream.frames():
                    if frame.kind is FrameKind.EXIT:
                        ended = TunnelExit.of(frame)
                    elif frame.kind in outlets:
                        outlets[frame.kind].put(frame.content)
            for outlet in outlets.values():
                outlet.finish()
        if ended is not None and ended.error:
            say(ended.error, stderr=True)
        return self._code(ended)

    def _code(self, ended: TunnelExit | None) -> int:
        if self._is_broken:
            return _BROKEN_PIPE
        if self._keys is not None and self._keys.hangs_up:
            say("hung up", stderr=True)
            return 1
        if ended is None:
            raise Unavailable(f"the shell was ended: {self._stream.reason or 'the connection to the server was lost'}")
        return ended.code

    def _read_input(self) -> None:
        if not self._on_terminal and sys.stdin.isatty():  # whoever reads our output may want to read the keys
            self._end_input()
        else:
            Inlet(self._stream, FrameKind.DATA, self._read, self._end_input)

    def _read(self, count: int) -> bytes:
        if self._keys is None:
            return os.read(_STDIN, count)
        while typed := os.read(_STDIN, count):
            passed = self._keys.feed(typed)
            if self._keys.hangs_up:
                self._stream.close()
                break
            if passed:
                return passed
        return b""

    def _end_input(self) -> None:
        with suppress(TunnelClosed):
            self._stream.send(Frame(FrameKind.END))

    def _break(self) -> None:
        self._is_broken = True
        self._stream.close()

    def _send_sizes(self) -> None:
        with suppress(TunnelClosed, OSError):
            while True:
                self._resized.get()
                self._stream.send(window_size().frame())
