"""A process that a room of the server keeps beside it, and speaks to over a socket pair."""

import os
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO


@contextmanager
def companion(program: Sequence[str], log: IO[bytes], *, end_s: float) -> Iterator[socket.socket]:
    """Run a process as long as the block lasts; yield the socket to it.

    Args:
        program: its command; the number of its own end of the socket comes after it.
        log: gets what it writes.
        end_s: so long it may take to end once the socket is shut down; then it is killed.
    """
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            process = subprocess.Popen(
                [*program, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(theirs.fileno(),),
                env={name: value for name, value in os.environ.items() if not name.startswith("PLIANT_")},
                cwd="/",
                start_new_session=True,
            )
        try:
            yield ours
        finally:
            hang_up(ours)
            _end(process, end_s)


def hang_up(channel: socket.socket) -> None:
    """Shut a socket down, unless the other end was faster."""
    with suppress(OSError):
        channel.shutdown(socket.SHUT_RDWR)


def _end(process: "subprocess.Popen[bytes]", end_s: float) -> None:
    try:
        process.wait(end_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
