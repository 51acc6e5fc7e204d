"""Where the members of a generation find each other: values by key, kept by a server in the first member's process.

Not c10d's TCPStore: its client asks the name server for the name of every address it connects to (five seconds each
where none answers), tries again for its whole time-out where nobody listens, and waits without end for a server that
accepts and is silent. Here a server that is gone is an error at once, and a wait ends as soon as it is cancelled.

Theory of operation
-------------------
A client sets values and gets values; a `get` waits until all its keys are there. That is enough for every member to
learn the addresses of all others. Generation 2 of job-1, with the members 0 and 1 (the client adds the prefix):

    member 0                                    member 1
    set job-1/2/member/0  "10.0.0.4:4100"
    get job-1/2/member/0, job-1/2/member/1      (waits)
                                                set job-1/2/member/1  "10.0.0.5:4200"
    -> "10.0.0.4:4100", "10.0.0.5:4200"         get job-1/2/member/0, job-1/2/member/1
                                                -> "10.0.0.4:4100", "10.0.0.5:4200", at once
    done                                        done

Without `done` the server forgets the values of a connection when it ends: addresses of an attempt that failed must not
mislead the next attempt of the same generation. After `done` they stay, for members that are slower.

A frame is its length (4 bytes, big-endian) and its parts, each after its own length. `set a xy` is 22 bytes: 18, then
3 "set", 1 "a" and 2 "xy". Requests are `set`, key, value (no answer); `get`, key… (answered with the values once all
are there); `done` (no answer). There is one request at a time on a connection, and all values of a frame together have
at most a megabyte: they are addresses.

Knows nothing of torch. The client is in `pliant.train.group.rendezvous_client`.
"""

import contextlib
import selectors
import socket
import struct
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from errno import EADDRNOTAVAIL
from typing import Final

from pliant.train.errors import TrainingError

_LENGTH: Final = struct.Struct("!I")
_MAX_BYTES: Final = 1 << 20


def pack(parts: Sequence[bytes]) -> bytes:
    """Return a frame."""
    body = b"".join(_LENGTH.pack(len(part)) + part for part in parts)
    return _LENGTH.pack(len(body)) + body


def unpack(body: bytes) -> list[bytes]:
    """Return the parts of a frame without its length."""
    parts, at = [], 0
    while at < len(body):
        (length,) = _LENGTH.unpack_from(body, at)
        at += _LENGTH.size + length
        parts.append(body[at - length : at])
    return parts


def take_frame(buffer: bytearray) -> bytes | None:
    """Take the first whole frame out of a buffer and return it without its length; None if there is none yet."""
    if len(buffer) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack_from(buffer)
    if length > _MAX_BYTES:
        raise ValueError(f"a frame of {length} bytes")
    end = _LENGTH.size + length
    if len(buffer) < end:
        return None
    body = bytes(buffer[_LENGTH.size : end])
    del buffer[:end]
    return body


class RendezvousServer:
    """Serves in a thread of this process, from its construction until it is closed or garbage-collected.

    Args:
        host: this task's own address, at which the other tasks reach it.

    Raises:
        TrainingError: this machine has no such address.
    """

    def __init__(self, host: str) -> None:
        self.host = host
        listener = _listen(host)
        self.port: int = listener.getsockname()[1]
        closed, close = socket.socketpair()
        server = _Server(listener, closed)
        self._thread = threading.Thread(target=server.serve, name=f"pliant-rendezvous-{self.port}", daemon=True)
        self._thread.start()
        self._close = weakref.finalize(self, close.close)  # then the thread sees its end of the pair close

    def close(self) -> None:
        """Stop serving and end every connection; return when that is done."""
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
    waits_for: list[bytes] | None = None


class _Server:
    """One thread that serves all connections."""

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
                    elif not self._handle(key.data, events):
                        selector.unregister(key.fileobj)
                        self._forget(key.data)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # the client is gone again, or no file descriptor is left: later clients may have more luck
            return
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client = _Client(connection)
        self._clients.add(client)
        self._selector.register(connection, selectors.EVENT_READ, client)

    def _handle(self, client: _Client, events: int) -> bool:
        """Do what a client requests, send what it waits for; return False if it is gone or sends nonsense."""
        try:
            if events & selectors.EVENT_WRITE:
                self._send(client)
            return not events & selectors.EVENT_READ or self._receive(client)
        except (OSError, ValueError, struct.error):
            return False

    def _receive(self, client: _Client) -> bool:
        try:
            data = client.connection.recv(1 << 16)
        except BlockingIOError:
            return True
        client.received += data
        while (body := take_frame(client.received)) is not None:
            self._execute(client, unpack(body))
        return bool(data)

    def _execute(self, client: _Client, request: list[bytes]) -> None:
        match request:
            case [b"set", key, value]:
                self._values[key] = (value, client)
                for other in self._clients:
                    with contextlib.suppress(OSError):  # one that is gone is forgotten when its end is read
                        self._answer(other)
            case [b"get", *keys]:
                client.waits_for = keys
                self._answer(client)
            case [b"done"]:
                self._values |= {key: (value, None) for key, (value, by) in self._values.items() if by is client}
            case _:
                raise ValueError(f"a request {request[:1]}")

    def _answer(self, client: _Client) -> None:
        if client.waits_for is not None and all(key in self._values for key in client.waits_for):
            values = [self._values[key][0] for key in client.waits_for]
            client.waits_for = None
            client.unsent += pack(values)
            self._send(client)

    def _send(self, client: _Client) -> None:
        """Send as much as fits into the connection; the rest follows when it does."""
        with contextlib.suppress(BlockingIOError):
            del client.unsent[: client.connection.send(client.unsent)]
        more = selectors.EVENT_WRITE if client.unsent else 0
        self._selector.modify(client.connection, selectors.EVENT_READ | more, client)

    def _forget(self, client: _Client) -> None:
        client.connection.close()
        self._clients.discard(client)
        self._values = {key: held for key, held in self._values.items() if held[1] is not client}
