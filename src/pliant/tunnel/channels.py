"""Many connections through one tunnel: each is a channel with a window of its own, so none holds up another.

Theory of operation. One end opens channels, for connections that come to it; the other connects to what is to be
reached, for each. From then on both do the same: what comes from the socket is sent, what comes through the tunnel is
written to it, and the end of either direction is passed on. A channel is over when both have ended, or when an end has
reset it; then its socket is closed. Numbers are not used again, so what still comes of a channel that is over is known
and forgotten. Invariant: `serve` waits for nothing but the next message; two threads of every channel do the rest.
"""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

from websockets.exceptions import ConnectionClosed
from websockets.sync.connection import Connection

from pliant.core.tunnel import (
    DATA_KINDS,
    MAX_CHANNELS,
    WHOLE_TUNNEL,
    Frame,
    FrameKind,
    grant,
    granted,
    pack_for,
    unpack_channel,
)
from pliant.tunnel.stream import Inlet, Outlet, messages_of, send_message
from pliant.tunnel.window import TunnelClosed, Window

Connect = Callable[[], socket.socket]
"""Connects to what is to be reached, at once; an OSError means that it does not answer."""


class TunnelChannel:
    """One connection: what comes from a socket goes through the tunnel, and the other way.

    Args:
        connection: the socket, which belongs to the channel from now on.
        send: sends a frame of this channel.
        forget: called once when it is over.
    """

    def __init__(self, connection: socket.socket, send: Callable[[Frame], None], forget: Callable[[], None]) -> None:
        self._socket = connection
        self._send = send
        self._forget = forget
        self._window = Window()
        self._inlet: Inlet | None = None
        self._is_far_end_done = False
        self._is_begun = threading.Event()
        self._outlet = Outlet(self, connection.sendall, self._end_writing, self.reset)

    def begin(self) -> None:
        """Read from the socket from now on; called once, whatever has become of the channel."""
        self._inlet = Inlet(self, FrameKind.DATA, self._socket.recv, self._end_reading)
        self._is_begun.set()

    def send(self, frame: Frame) -> None:
        """Send a frame; data wait until the other end has dealt with what came before.

        Raises:
            TunnelClosed: the channel is over.
        """
        if frame.kind in DATA_KINDS:
            self._window.take(len(frame.content))
        self._send(frame)

    def deal(self, num_bytes: int) -> None:
        """Note that so many bytes have been written, so that as many more may come."""
        given = self._window.deal(num_bytes)
        if given and not self._window.is_closed:
            with suppress(TunnelClosed):
                self._send(grant(given))

    def take(self, frame: Frame) -> None:
        """Take what has come through the tunnel.

        Raises:
            ValueError: the other end does not keep to the rules.
        """
        match frame.kind:
            case FrameKind.DATA | FrameKind.END if self._is_far_end_done:
                raise ValueError("something comes through a channel after its end")
            case FrameKind.DATA:
                self._window.note_coming(len(frame.content))
                self._outlet.put(frame.content)
            case FrameKind.GRANT:
                self._window.take_grant(granted(frame))
            case FrameKind.END:
                self._is_far_end_done = True
                self._outlet.end()
            case FrameKind.RESET:
                self.close()
            case _:
                raise ValueError("a frame of this kind is none of a channel")

    def reset(self) -> None:
        """End it in both directions, and say so."""
        if not self._window.is_closed:
            with suppress(TunnelClosed):
                self._send(Frame(FrameKind.RESET))
        self.close()

    def close(self) -> None:
        """End it in both directions, here."""
        self._window.close()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._outlet.end()

    def _end_reading(self) -> None:
        with suppress(TunnelClosed):
            self._send(Frame(FrameKind.END))

    def _end_writing(self) -> None:
        """Pass the end on, and wait for that of the other direction: then it is over."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        self._is_begun.wait()
        assert self._inlet is not None
        self._inlet.join(None)
        self._socket.close()
        self._forget()


class TunnelChannels:
    """The channels of a tunnel, at one end of it.

    Args:
        connection: the tunnel's WebSocket.
        connect: for every channel that the other end opens; None: it may open none.
        note: called with what comes of the tunnel itself, and may raise a ValueError.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        connect: Connect | None = None,
        note: Callable[[Frame], None] = lambda _frame: None,
    ) -> None:
        self._connection = connection
        self._connect = connect
        self._note = note
        self._lock = threading.Lock()
        self._channels: dict[int, TunnelChannel] = {}
        self._last_number = WHOLE_TUNNEL
        self._is_over = False

    def __len__(self) -> int:
        return len(self._channels)

    @property
    def reason(self) -> str:
        """Why the other side has closed the tunnel, in words; empty if it did not say."""
        return self._connection.close_reason or ""

    def tell(self, frame: Frame) -> None:
        """Send a frame of the tunnel itself.

        Raises:
            TunnelClosed: it is closed.
        """
        self._send(WHOLE_TUNNEL, frame)

    def open(self, connection: socket.socket) -> None:
        """Open a channel for a connection; it is closed at once if there are too many, or the tunnel is over."""
        number = self._add(self._last_number + 1, connection)
        if number is None:
            connection.close()
            return
        with suppress(TunnelClosed):
            self._send(number, Frame(FrameKind.OPEN))
        self._channels[number].begin()

    def serve(self) -> None:
        """Take in what comes, until the tunnel is closed; then all channels are.

        Raises:
            ValueError: the other end does not keep to the rules.
        """
        try:
            for message in messages_of(self._connection):
                number, frame = unpack_channel(message)
                if number == WHOLE_TUNNEL:
                    self._note(frame)
                elif frame.kind is FrameKind.OPEN:
                    self._accept(number)
                elif (channel := self._channels.get(number)) is not None:
                    channel.take(frame)
        except (ConnectionClosed, OSError):
            return
        finally:
            with self._lock:
                self._is_over = True
                left = list(self._channels.values())
            for channel in left:
                channel.close()

    def close(self) -> None:
        """Close the tunnel from this side."""
        self._connection.close()

    def _accept(self, number: int) -> None:
        if self._connect is None or number <= self._last_number:
            raise ValueError("a channel was opened that must not be")
        try:
            connection = self._connect()
        except OSError:
            self._last_number = number
            self._send(number, Frame(FrameKind.RESET))
            return
        if self._add(number, connection) is None:
            connection.close()
            self._send(number, Frame(FrameKind.RESET))
            return
        self._channels[number].begin()

    def _add(self, number: int, connection: socket.socket) -> int | None:
        with self._lock:
            self._last_number = number
            if self._is_over or len(self._channels) >= MAX_CHANNELS:
                return None
            self._channels[number] = TunnelChannel(
                connection, lambda frame: self._send(number, frame), lambda: self._forget(number)
            )
            return number

    def _forget(self, number: int) -> None:
        with self._lock:
            self._channels.pop(number, None)

    def _send(self, number: int, frame: Frame) -> None:
        send_message(self._connection, pack_for(number, frame))
