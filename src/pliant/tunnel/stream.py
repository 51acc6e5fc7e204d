"""One end of a tunnel: frames over a WebSocket, in both directions at once, none of them faster than it is dealt with.

Theory of operation. Data are sent within a window: an end sends no more than `WINDOW_BYTES` beyond what the other has
granted, and grants what it has dealt with (written to a terminal, a pipe, a socket). So a reader that stands still
stops the writer at the far end, no end holds more than a window, and the WebSocket itself is always being read: its
pings are answered while data wait, and whoever does not answer them is gone. Invariant: `frames` never waits for
anything but the next frame; what it yields is dealt with elsewhere (`Outlet`).
"""

import os
import queue
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, Protocol

from websockets.exceptions import ConnectionClosed, ConnectionClosedOK
from websockets.sync.connection import Connection

from pliant.core.tunnel import CHUNK_BYTES, DATA_KINDS, Frame, FrameKind, grant, granted, unpack
from pliant.tunnel.window import TunnelClosed, Window

_LOOK_UP_S: Final = 1.0


class DataEnd(Protocol):
    """Where data go, and what is told of those that were dealt with: a tunnel, or one of its channels."""

    def send(self, frame: Frame) -> None:
        """Send a frame; data wait until the other end has dealt with what came before.

        Raises:
            TunnelClosed: it is closed.
        """

    def deal(self, num_bytes: int) -> None:
        """Note that so many bytes of data have been dealt with, so that as many more may come."""


class TunnelStream:
    """Frames over a WebSocket. Any thread may send; one reads."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._window = Window()

    def send(self, frame: Frame) -> None:
        """Send a frame; data wait until the other end has dealt with what came before.

        Raises:
            TunnelClosed: the tunnel is closed.
        """
        if frame.kind in DATA_KINDS:
            self._window.take(len(frame.content))
        send_message(self._connection, frame.pack())

    def frames(self) -> Iterator[Frame]:
        """Yield what comes until the tunnel is closed; whoever deals with data says so with `deal`.

        Raises:
            ValueError: the other end does not keep to the rules.
        """
        try:
            for message in messages_of(self._connection):
                frame = unpack(message)
                if frame.kind is FrameKind.GRANT:
                    self._window.take_grant(granted(frame))
                    continue
                if frame.kind in DATA_KINDS:
                    self._window.note_coming(len(frame.content))
                yield frame
        except (ConnectionClosed, OSError):
            return
        finally:
            self._window.close()

    def deal(self, num_bytes: int) -> None:
        """Note that so many bytes of data have been dealt with, so that as many more may come."""
        if given := self._window.deal(num_bytes):
            with suppress(TunnelClosed):
                self.send(grant(given))

    def close(self) -> None:
        """Close the tunnel from this side; what was sent arrives."""
        self._connection.close()

    @property
    def reason(self) -> str:
        """Why the other side has closed it, in words; empty if it did not say."""
        return self._connection.close_reason or ""


def messages_of(connection: Connection) -> Iterator[bytes | str]:
    """Yield what comes until the connection is closed.

    Python acts on a signal between two instructions. One that comes just before a wait is noticed at its end, so no
    wait here is long: Ctrl-C ends a command though nothing comes.

    Raises:
        ConnectionClosed: not as it should be.
    """
    while True:
        try:
            message = connection.recv(timeout=_LOOK_UP_S)
        except TimeoutError:
            continue
        except ConnectionClosedOK:
            return
        yield message


def send_message(connection: Connection, message: bytes) -> None:
    """Send a message.

    Raises:
        TunnelClosed: the tunnel is closed.
    """
    try:
        connection.send(message)
    except (ConnectionClosed, OSError) as error:
        raise TunnelClosed("the tunnel is closed") from error


class Outlet:
    """Writes the data that come through a tunnel to a file, in a thread of its own, and grants what is written.

    Args:
        stream: where the data come from.
        write: writes all of some bytes, and may wait; an OSError means that nobody takes them any more.
        end: called when no more data come.
        broken: called once when nobody takes them any more; what comes then is read and forgotten.
    """

    def __init__(
        self,
        stream: DataEnd,
        write: Callable[[bytes], None],
        end: Callable[[], None],
        broken: Callable[[], None] = lambda: None,
    ) -> None:
        self._stream = stream
        self._write = write
        self._end = end
        self._broken = broken
        self._waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="pliant-tunnel-out", daemon=True)
        self._thread.start()

    def put(self, data: bytes) -> None:
        """Have data written; there are never more than a window of them."""
        self._waiting.put(data)

    def end(self) -> None:
        """Have the end noted after what was put."""
        self._waiting.put(None)

    def finish(self) -> None:
        """Have the end noted after what was put, and wait for that."""
        self.end()
        self._thread.join()

    def _run(self) -> None:
        is_open = True
        while (data := self._waiting.get()) is not None:
            if is_open:
                try:
                    self._write(data)
                except OSError:
                    is_open = False
                    self._broken()
            self._stream.deal(len(data))
        with suppress(OSError):
            self._end()


class Inlet:
    """Reads a file, in a thread of its own, and sends what is in it through a tunnel.

    Args:
        stream: where it goes.
        kind: as what.
        read: returns some bytes, none at the end; an OSError is the end, too.
        ended: called at the end of the file, not when the tunnel is closed.
    """

    def __init__(
        self, stream: DataEnd, kind: FrameKind, read: Callable[[int], bytes], ended: Callable[[], None]
    ) -> None:
        self._stream = stream
        self._kind = kind
        self._read = read
        self._ended = ended
        self._reads_since: float | None = None
        self._thread = threading.Thread(target=self._run, name="pliant-tunnel-in", daemon=True)
        self._thread.start()

    def join(self, quiet_s: float | None) -> None:
        """Wait until the end is sent; or only until nothing has come for so long, if others keep the file open."""
        while self._thread.is_alive():
            self._thread.join(None if quiet_s is None else quiet_s / 4)
            since = self._reads_since
            if quiet_s is not None and since is not None and time.monotonic() - since >= quiet_s:
                return

    def _run(self) -> None:
        try:
            while data := self._next():
                self._stream.send(Frame(self._kind, data))
        except TunnelClosed:
            return
        self._ended()

    def _next(self) -> bytes:
        self._reads_since = time.monotonic()
        try:
            return self._read(CHUNK_BYTES)
        except OSError:
            return b""
        finally:
            self._reads_since = None


def write_all(file: int, data: bytes) -> None:
    """Write all of it, however long that takes.

    Raises:
        OSError: nobody takes it any more.
    """
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(file, rest) :]
        except BlockingIOError:  # somebody who has it open, too, does not want to wait
            select.select((), (file,), ())
