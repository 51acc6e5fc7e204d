"""A listening socket that counts what it accepts, before TLS or HTTP see it. Knows no HTTP.

It stands below asyncio: `accept` is the first place that knows the address of a connection, and `close` the last one
that every connection passes, whatever became of its handshake.
"""

import asyncio
import contextlib
import errno
import logging
import math
import socket
import struct
from typing import Any, Final

from pliant.entry.server.http.connections import ConnectionCounts, CountedConnection

log = logging.getLogger(__name__)

_CLOSE_AT_ONCE: Final = struct.pack("ii", 1, 0)
"""Of SO_LINGER: what is not sent yet is thrown away, and the other side learns it."""
_LOGGED_EVERY_S: Final = 60.0


class CountingSocket(socket.socket):
    """A listening socket; set `counts` before it listens."""

    counts: ConnectionCounts
    takes_turns = False
    """Other processes take connections from it as well: one at a time is taken, so that all come to their turn."""
    _has_taken = False
    _logged_at = -math.inf

    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection.

        Raises:
            BlockingIOError: there is none, or it is another process's turn.
            ConnectionAbortedError: there are too many; asyncio takes that as none at the moment.
            RuntimeError: no event loop runs here.
        """
        if self._has_taken:
            self._has_taken = False
            raise BlockingIOError(errno.EAGAIN, "another process may take the next connection")
        plain, address = super().accept()
        self._has_taken = self.takes_turns
        accepted = _AcceptedSocket(plain.family, plain.type, plain.proto, fileno=plain.detach())
        loop = asyncio.get_running_loop()
        counted = self.counts.admit(str(address[0]), accepted.fileno(), accepted.end_at_once, loop.time())
        if counted is None:
            self._log_refusal(str(address[0]), loop.time())
            accepted.end_at_once()
            accepted.close()
            raise ConnectionAbortedError(f"too many connections from {address[0]}")
        accepted.attend(self.counts, counted, loop)
        return accepted, address

    def dup(self) -> "CountingSocket":
        """Return another socket on the same address, whose connections count together with those of this one."""
        copy = super().dup()
        copy.counts = self.counts
        copy.takes_turns = self.takes_turns
        return copy

    def _log_refusal(self, address: str, now: float) -> None:
        """Log that somebody was refused, not more often than once a minute: they could fill the disk with it."""
        if now - self._logged_at >= _LOGGED_EVERY_S:
            self._logged_at = now
            log.warning(
                "a connection from %s was refused: %d are open, and none of them waits; others are not logged for %d s",
                address,
                len(self.counts),
                _LOGGED_EVERY_S,
            )


class _AcceptedSocket(socket.socket):
    """A connection, which is counted until it is closed."""

    _counts: ConnectionCounts | None = None
    _counted: CountedConnection
    _deadline: asyncio.TimerHandle

    def attend(self, counts: ConnectionCounts, counted: CountedConnection, loop: asyncio.AbstractEventLoop) -> None:
        """End it when the head of its first request is late, also while TLS still shakes hands."""
        self._counts, self._counted = counts, counted
        self._deadline = loop.call_at(counted.waits_until, self._end_if_unclaimed)
        seconds = math.ceil(1000 * counts.limits.stalled_write_s)
        self.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, seconds)

    def end_at_once(self) -> None:
        """End the connection; whoever reads from it, here and there, sees its end."""
        with contextlib.suppress(OSError):  # the other side was faster
            self.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _CLOSE_AT_ONCE)
            self.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close it, and count it no longer."""
        if self._counts is not None:
            self._deadline.cancel()
            self._counts.release(self._counted)
        super().close()

    def _end_if_unclaimed(self) -> None:
        """End it if no protocol has taken its deadline over."""
        if self._counts is not None and self._counted.drop == self.end_at_once:
            self._counts.release(self._counted)
            self.end_at_once()
