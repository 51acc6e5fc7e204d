"""Tensors from one member of a generation to another: over connections of our own.

Not gloo's send and receive: a send whose peer goes away in the middle of it waits for ever. Here an abort ends
everything at once, and so does the end of the peer.

A connection is made by the sender when it first sends to a member. It begins with the receiver's token (which members
learn from each other at the rendezvous, so that nobody else can send anything into a training) and the sender's rank.
Then come tensors, each as its number of bytes and the bytes; the receiver answers each with one byte.
"""

import contextlib
import hmac
import json
import secrets
import socket
import struct
import threading
from collections.abc import Sequence
from typing import Final

import torch

from pliant.train.errors import GenerationLost

_HELLO: Final = struct.Struct("!16sI")
_LENGTH: Final = struct.Struct("!Q")
_TAKEN: Final = b"\x06"
_LOOK_S: Final = 0.1
_HELLO_TIMEOUT_S: Final = 10.0


class Channels:
    """One member's end of the connections of its generation. One thread uses it, any thread may abort it.

    Args:
        host: this task's own address.
    """

    def __init__(self, *, rank: int, host: str) -> None:
        self._rank = rank
        self._token = secrets.token_bytes(16)
        self._aborted = threading.Event()
        self._lock = threading.Lock()
        self._to: dict[int, socket.socket] = {}
        self._from: dict[int, socket.socket] = {}
        self._peers: Sequence[str] = ()
        try:
            family, _, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
            self._listener = socket.create_server((address[0], 0), family=family)
        except OSError as error:
            raise GenerationLost(
                f"this task cannot use its address {host}: {error.strerror or error}; the machine's agent sets "
                f"PLIANT_HOST, and it must be an address of this machine that the others reach"
            ) from None
        self._listener.settimeout(_LOOK_S)
        self.address = json.dumps([*self._listener.getsockname()[:2], self._token.hex()])
        """What the other members need to connect."""

    def set_peers(self, peers: Sequence[str]) -> None:
        """Set the addresses of all members, in rank order."""
        self._peers = peers

    def send(self, tensor: torch.Tensor, to: int) -> None:
        """Send a contiguous CPU tensor; returns when the peer has taken it.

        Raises:
            GenerationLost: the peer is gone, or this was aborted.
        """
        data = _bytes(tensor)
        try:
            connection = self._to.get(to) or self._connect(to)
            connection.sendall(_LENGTH.pack(len(data)))
            connection.sendall(data)
            _fill(connection, memoryview(bytearray(1)))
        except OSError as error:
            raise self._peer_error(to, error) from None

    def receive(self, tensor: torch.Tensor, source: int) -> None:
        """Fill a contiguous CPU tensor with what `source` sends.

        Raises:
            GenerationLost: the peer is gone, or this was aborted.
        """
        data, length = _bytes(tensor), memoryview(bytearray(_LENGTH.size))
        try:
            while (connection := self._from.get(source)) is None:
                self._accept()
            _fill(connection, length)
            if _LENGTH.unpack(length) != (len(data),):
                raise ConnectionError(f"it sent {_LENGTH.unpack(length)[0]} bytes, not {len(data)}")
            _fill(connection, data)
            connection.sendall(_TAKEN)
        except OSError as error:
            raise self._peer_error(source, error) from None

    def _connect(self, to: int) -> socket.socket:
        host, port, token = json.loads(self._peers[to])
        connection = socket.create_connection((host, port), timeout=_HELLO_TIMEOUT_S)
        self._store(self._to, to, connection)
        connection.sendall(_HELLO.pack(bytes.fromhex(token), self._rank))
        return connection

    def _accept(self) -> None:
        """Accept the next connection, if one comes within a moment."""
        if self._aborted.is_set():
            raise ConnectionError("aborted")
        try:
            connection, _ = self._listener.accept()
        except TimeoutError:
            return
        connection.settimeout(_HELLO_TIMEOUT_S)
        hello = memoryview(bytearray(_HELLO.size))
        try:
            _fill(connection, hello)
        except OSError:
            connection.close()
            return
        token, rank = _HELLO.unpack(hello)
        if not hmac.compare_digest(token, self._token):
            connection.close()
            return
        self._store(self._from, rank, connection)

    def _store(self, among: dict[int, socket.socket], rank: int, connection: socket.socket) -> None:
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            among[rank] = connection
            if self._aborted.is_set():
                raise ConnectionError("aborted")

    def _peer_error(self, peer: int, error: OSError) -> GenerationLost:
        if self._aborted.is_set():
            return GenerationLost("the coordinator gave this generation up")
        return GenerationLost(f"member {peer} is gone: {error.strerror or error}")

    def abort(self) -> None:
        """End every transfer with an error; nothing can be sent after it."""
        with self._lock:
            self._aborted.set()
            for connection in (*self._to.values(), *self._from.values()):
                with contextlib.suppress(OSError):  # the peer was faster
                    connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close all connections; whatever was sent has been received."""
        self.abort()
        with self._lock:
            for connection in (self._listener, *self._to.values(), *self._from.values()):
                connection.close()


def _bytes(tensor: torch.Tensor) -> memoryview:
    return tensor.detach().reshape(-1).view(torch.uint8).numpy().data


def _fill(connection: socket.socket, data: memoryview) -> None:
    while data:
        num = connection.recv_into(data)
        if not num:
            raise ConnectionError("it closed the connection")
        data = data[num:]
