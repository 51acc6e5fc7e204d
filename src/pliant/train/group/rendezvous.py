"""Where the members of a generation find each other: values by key, kept by the first member's process.

Not c10d's TCPStore: its client asks the name server for the name of every address it connects to (five seconds each
where none answers), tries again for its whole time-out where nobody listens, and waits without end for one that
listens and is silent. Here a rendezvous that is gone is an error at once, and a wait that nobody wants any more ends.

A value is forgotten when the connection that it came by ends without success, so that what a try left behind misleads
nobody; after success it is kept for members who are slower.
Values are small (addresses, at most a megabyte together); there is one request at a time on a connection. Knows nothing
of torch.

A frame is its length (4 bytes, big-endian) and its parts, each with its length before it. Requests: `set`, key, value
(no answer); `get`, key… (answered with the values once all of them are there); `done` (no answer).
"""

import contextlib
import os
import selectors
import socket
import struct
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from errno import EADDRNOTAVAIL, EINPROGRESS
from time import monotonic
from typing import Final

from pliant.train.errors import GenerationLost, TrainingError

_LENGTH: Final = struct.Struct("!I")
_MOST_BYTES: Final = 1 << 20
_LOOK_S: Final = 0.1
"""Seconds between two looks at whether a wait is still wanted."""


def _pack(parts: Sequence[bytes]) -> bytes:
    body = b"".join(_LENGTH.pack(len(part)) + part for part in parts)
    return _LENGTH.pack(len(body)) + body


def _unpack(body: bytes) -> list[bytes]:
    parts, at = [], 0
    while at < len(body):
        (length,) = _LENGTH.unpack_from(body, at)
        at += _LENGTH.size + length
        parts.append(body[at - length : at])
    return parts


def _take_frame(buffer: bytearray) -> bytes | None:
    """Take the first whole frame out of a buffer; None if there is none yet."""
    if len(buffer) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack_from(buffer)
    if length > _MOST_BYTES:
        raise ValueError(f"a frame of {length} bytes")
    end = _LENGTH.size + length
    if len(buffer) < end:
        return None
    body = bytes(buffer[_LENGTH.size : end])
    del buffer[:end]
    return body


class Rendezvous:
    """Listens in this process from its construction until it is closed or forgotten.

    Args:
        host: my own address, at which the other tasks reach me.

    Raises:
        TrainingError: this machine has no such address.
    """

    def __init__(self, host: str) -> None:
        self.host = host
        listener = _listen(host)
        self.port: int = listener.getsockname()[1]
        closed, close = socket.socketpair()
        desk = _Desk(listener, closed)
        self._thread = threading.Thread(target=desk.serve, name=f"pliant-rendezvous-{self.port}", daemon=True)
        self._thread.start()
        self._close = weakref.finalize(self, close.close)  # the desk sees its end of the pair close

    def close(self) -> None:
        """Stop listening and end every connection; returns when that is done."""
        self._close()
        self._thread.join()


def _listen(host: str) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        return socket.create_server((address[0], 0), family=family, backlog=128)
    except OSError as error:
        why = "this machine has no such address" if error.errno == EADDRNOTAVAIL else error.strerror
        raise TrainingError(
            f"this task cannot listen at {host}: {why}; the machine's agent sets PLIANT_HOST, which must be an "
            f"address of this machine that the others reach"
        ) from None


@dataclass(slots=True, eq=False)
class _Client:
    connection: socket.socket
    received: bytearray = field(default_factory=bytearray)
    unsent: bytearray = field(default_factory=bytearray)
    wanted: list[bytes] | None = None


class _Desk:
    """The server's side: one thread, all connections."""

    def __init__(self, listener: socket.socket, closed: socket.socket) -> None:
        self._listener = listener
        self._closed = closed
        self._values: dict[bytes, tuple[bytes, _Client | None]] = {}
        self._clients: set[_Client] = set()
        self._selector = selectors.DefaultSelector()

    def serve(self) -> None:
        self._listener.setblocking(False)
        with self._selector as selector, self._listener, self._closed:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._closed, selectors.EVENT_READ)
            while True:
                for key, events in selector.select():
                    if key.fileobj is self._closed:
                        for client in self._clients:
                            client.connection.close()
                        return
                    if key.fileobj is self._listener:
                        self._accept()
                    elif not self._attend(key.data, events):
                        selector.unregister(key.fileobj)
                        self._part(key.data)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # who knocked is gone again, or there are no file descriptors left: others may still come
            return
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client = _Client(connection)
        self._clients.add(client)
        self._selector.register(connection, selectors.EVENT_READ, client)

    def _attend(self, client: _Client, events: int) -> bool:
        """Do what a client asks, send what it waits for; return False if it is gone, or talks nonsense."""
        try:
            if events & selectors.EVENT_WRITE:
                self._send(client)
            return not events & selectors.EVENT_READ or self._hear(client)
        except (OSError, ValueError, struct.error):
            return False

    def _hear(self, client: _Client) -> bool:
        try:
            data = client.connection.recv(1 << 16)
        except BlockingIOError:
            return True
        client.received += data
        while (body := _take_frame(client.received)) is not None:
            self._do(client, _unpack(body))
        return bool(data)

    def _do(self, client: _Client, request: list[bytes]) -> None:
        match request:
            case [b"set", key, value]:
                self._values[key] = (value, client)
                for other in self._clients:
                    with contextlib.suppress(OSError):  # one that is gone is parted from when it is heard
                        self._answer(other)
            case [b"get", *keys]:
                client.wanted = keys
                self._answer(client)
            case [b"done"]:
                self._values |= {key: (value, None) for key, (value, by) in self._values.items() if by is client}
            case _:
                raise ValueError(f"a request {request[:1]}")

    def _answer(self, client: _Client) -> None:
        if client.wanted is not None and all(key in self._values for key in client.wanted):
            values = [self._values[key][0] for key in client.wanted]
            client.wanted = None
            client.unsent += _pack(values)
            self._send(client)

    def _send(self, client: _Client) -> None:
        """Send as much as fits into the connection; the rest follows when it does."""
        with contextlib.suppress(BlockingIOError):
            del client.unsent[: client.connection.send(client.unsent)]
        more = selectors.EVENT_WRITE if client.unsent else 0
        self._selector.modify(client.connection, selectors.EVENT_READ | more, client)

    def _part(self, client: _Client) -> None:
        client.connection.close()
        self._clients.discard(client)
        self._values = {key: held for key, held in self._values.items() if held[1] is not client}


class Meeting:
    """My connection with a rendezvous, for one try of one group.

    Args:
        address: host and port of the rendezvous.
        prefix: names the group; the same in all its members.
        timeout_s: for everything that is asked here, together.
        given_up: asked a few times a second; when it says True every wait ends.

    Raises:
        GenerationLost: nobody listens there, or nobody answers.
    """

    def __init__(
        self, address: tuple[str, int], *, prefix: str, timeout_s: float, given_up: Callable[[], bool]
    ) -> None:
        self._where = f"[{address[0]}]:{address[1]}" if ":" in address[0] else f"{address[0]}:{address[1]}"
        self._prefix = prefix
        self._timeout_s = timeout_s
        self._deadline = monotonic() + timeout_s
        self._given_up = given_up
        self._received = bytearray()
        self._connection = self._connect(address)

    def __enter__(self) -> "Meeting":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._connection, contextlib.suppress(OSError):  # a rendezvous that is gone has nobody left to tell
            if kind is None:
                self._connection.sendall(_pack([b"done"]))

    def set(self, key: str, value: bytes) -> None:
        """Tell the others a value."""
        try:
            self._connection.sendall(_pack([b"set", self._full(key), value]))
        except OSError as error:
            raise self._gone(error) from None

    def get(self, *keys: str) -> list[bytes]:
        """Return the values of keys once all of them are there.

        Raises:
            GenerationLost: the rendezvous is gone, somebody did not come in time, or the group was given up.
        """
        try:
            self._connection.sendall(_pack([b"get", *map(self._full, keys)]))
            while (body := _take_frame(self._received)) is None:
                self._wait_for(selectors.EVENT_READ, "some members of the generation did not come to it")
                data = self._connection.recv(1 << 16)
                if not data:
                    raise ConnectionResetError
                self._received += data
        except (OSError, ValueError) as error:
            raise self._gone(error) from None
        return _unpack(body)

    def _full(self, key: str) -> bytes:
        return f"{self._prefix}/{key}".encode()

    def _connect(self, address: tuple[str, int]) -> socket.socket:
        try:
            family, kind, protocol, _, target = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
        except OSError as error:
            raise self._gone(error) from None
        self._connection = connection = socket.socket(family, kind, protocol)
        try:
            connection.setblocking(False)
            number = connection.connect_ex(target)
            if number == EINPROGRESS:
                self._wait_for(selectors.EVENT_WRITE, "this machine cannot reach it, or its process stands still")
                number = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if number:
                raise OSError(number, "")
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            connection.close()
            raise self._gone(error) from None
        except GenerationLost:
            connection.close()
            raise
        return connection

    def _wait_for(self, event: int, missing: str) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._connection, event)
            while not selector.select(_LOOK_S):
                if self._given_up():
                    raise GenerationLost("the coordinator gave this generation up")
                if monotonic() > self._deadline:
                    raise GenerationLost(
                        f"{missing} within {self._timeout_s:g} s (rendezvous at {self._where}, the PLIANT_HOST of the "
                        f"first member: all machines of a job must reach it, and each other)"
                    )

    def _gone(self, error: OSError | ValueError) -> GenerationLost:
        why: object = error
        if isinstance(error, ConnectionResetError | BrokenPipeError):  # which one depends on what was on its way
            why = "it closed the connection"
        elif isinstance(error, OSError) and error.errno:
            why = error.strerror or os.strerror(error.errno)
        return GenerationLost(f"the rendezvous at {self._where} is gone: {why}")
