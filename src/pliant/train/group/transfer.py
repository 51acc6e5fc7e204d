"""Tensors from one member of a generation to another: over connections of our own.

Not gloo's send and receive: a send whose peer goes away in the middle of it waits for ever. Here an abort ends
everything at once, and so does the end of the peer.

A connection is made by the sender when it first sends to a member. It begins with `pliant.train.group.handshake`: both
prove the job's key for this very channel, whose name the members learn from each other at the rendezvous. So nobody
else can send anything into a training, or be sent anything. The receiver says one byte when it has taken the sender in.
Then come tensors, each as its number of bytes and the bytes; the receiver answers each with one byte. What is sent is
neither encrypted nor does it carry a code: who can change packets on the way between two hosts can change it.

A thread takes connections in for as long as the channels are open, so that strangers fill no queue while nobody
receives.
"""

import contextlib
import json
import secrets
import selectors
import socket
import struct
import threading
from collections.abc import Sequence
from typing import Final

import torch

from pliant.train.errors import GenerationLost
from pliant.train.group.applicants import BACKLOG, Admitted, Applicant, Applicants
from pliant.train.group.frames import take_frame
from pliant.train.group.handshake import MAX_HANDSHAKE_BYTES, ClientHandshake, PeerName, ServerHandshake

_PURPOSE: Final = "transfer"
_LENGTH: Final = struct.Struct("!Q")
_TAKEN: Final = b"\x06"
_CONNECT_TIMEOUT_S: Final = 10.0


class Channels:
    """One member's end of the connections of its generation. One thread uses it, any thread may abort it.

    Args:
        host: this task's own address.
        key: the job's.
    """

    def __init__(self, *, rank: int, host: str, key: bytes) -> None:
        assert key, "a task that others send to has the key of its job"
        self._rank = rank
        self._key = key
        self._name = secrets.token_hex(16)
        """Names this end of this attempt of this generation, so that nobody can mean another one."""
        self._aborted = threading.Event()
        self._changed = threading.Condition()
        self._to: dict[int, socket.socket] = {}
        self._from: dict[int, socket.socket] = {}
        self._peers: Sequence[str] = ()
        try:
            family, _, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
            listener = socket.create_server((address[0], 0), family=family, backlog=BACKLOG)
        except OSError as error:
            raise GenerationLost(
                f"this task cannot use its address {host}: {error.strerror or error}; the machine's agent sets "
                f"PLIANT_HOST, and it must be an address of this machine that the others reach"
            ) from None
        self.address = json.dumps([*listener.getsockname()[:2], self._name])
        """What the other members need to connect; nothing of it is secret."""
        closed, self._close_listener = socket.socketpair()
        self._thread = threading.Thread(
            target=self._serve, args=(listener, closed), name=f"pliant-transfer-{rank}", daemon=True
        )
        self._thread.start()

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
        except (OSError, ValueError) as error:
            raise self._peer_error(to, error) from None

    def receive(self, tensor: torch.Tensor, source: int) -> None:
        """Fill a contiguous CPU tensor with what `source` sends.

        Raises:
            GenerationLost: the peer is gone, or this was aborted.
        """
        data, length = _bytes(tensor), memoryview(bytearray(_LENGTH.size))
        try:
            connection = self._wait_for(source)
            _fill(connection, length)
            if _LENGTH.unpack(length) != (len(data),):
                raise ConnectionError(f"it sent {_LENGTH.unpack(length)[0]} bytes, not {len(data)}")
            _fill(connection, data)
            connection.sendall(_TAKEN)
        except OSError as error:
            raise self._peer_error(source, error) from None

    def _connect(self, to: int) -> socket.socket:
        host, port, name = json.loads(self._peers[to])
        connection = socket.create_connection((host, port), timeout=_CONNECT_TIMEOUT_S)
        try:
            self._store(self._to, to, connection)  # from now on an abort ends it
            me = PeerName(group=name, member=str(self._rank))
            self._prove(connection, ClientHandshake(key=self._key, purpose=_PURPOSE, name=me))
        except (OSError, ValueError):
            with self._changed:
                self._to.pop(to, None)
            connection.close()
            raise
        return connection

    def _prove(self, connection: socket.socket, handshake: ClientHandshake) -> None:
        connection.sendall(handshake.hello)
        received = bytearray()
        while (answer := take_frame(received, MAX_HANDSHAKE_BYTES)) is None:
            data = connection.recv(MAX_HANDSHAKE_BYTES)
            if not data:
                raise ConnectionError("it closed the connection")
            received += data
        proof, _ = handshake.prove(answer)
        connection.sendall(proof)
        _fill(connection, memoryview(bytearray(1)))

    def _wait_for(self, source: int) -> socket.socket:
        """Return the connection of a member that sends, once it is there."""
        with self._changed:
            self._changed.wait_for(lambda: source in self._from or self._aborted.is_set())
            if self._aborted.is_set():
                raise ConnectionError("aborted")
            return self._from[source]

    def _serve(self, listener: socket.socket, closed: socket.socket) -> None:
        """Take connections in until the other end of `closed` is closed."""
        listener.setblocking(False)
        with selectors.DefaultSelector() as selector, closed:
            applicants = Applicants(selector, listener, lambda: ServerHandshake(key=self._key, purpose=_PURPOSE))
            selector.register(closed, selectors.EVENT_READ)
            while self._serve_once(selector, applicants, closed):
                applicants.drop_late()
            applicants.close()

    def _serve_once(self, selector: selectors.BaseSelector, applicants: Applicants, closed: socket.socket) -> bool:
        for key, _ in selector.select(applicants.wait_s()):
            if key.fileobj is closed:
                return False
            if not isinstance(key.data, Applicant):
                applicants.accept()
            elif (admitted := applicants.hear(key.data)) is not None:
                self._take_in(admitted)
        return True

    def _take_in(self, admitted: Admitted) -> None:
        """Keep the connection of a member that will send."""
        connection = admitted.connection
        try:
            if admitted.name.group != self._name or admitted.received:
                raise ConnectionError("it is meant for another channel")
            self._store(self._from, int(admitted.name.member), connection)
            connection.sendall(_TAKEN)
        except (OSError, ValueError):
            connection.close()

    def _store(self, among: dict[int, socket.socket], rank: int, connection: socket.socket) -> None:
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._changed:
            if self._aborted.is_set():
                raise ConnectionError("aborted")
            if rank in among:
                raise ConnectionError("it is connected already")
            among[rank] = connection
            self._changed.notify_all()

    def _peer_error(self, peer: int, error: OSError | ValueError) -> GenerationLost:
        if self._aborted.is_set():
            return GenerationLost("the coordinator gave this generation up")
        why = error.strerror if isinstance(error, OSError) else None
        return GenerationLost(f"member {peer} is gone: {why or error}")

    def abort(self) -> None:
        """End every transfer with an error; nothing can be sent after it."""
        with self._changed:
            self._aborted.set()
            for connection in (*self._to.values(), *self._from.values()):
                with contextlib.suppress(OSError):  # the peer was faster
                    connection.shutdown(socket.SHUT_RDWR)
            self._changed.notify_all()

    def close(self) -> None:
        """Close all connections; whatever was sent has been received."""
        self.abort()
        self._close_listener.close()
        self._thread.join()
        with self._changed:
            for connection in (*self._to.values(), *self._from.values()):
                connection.close()


def _bytes(tensor: torch.Tensor) -> memoryview:
    return tensor.detach().reshape(-1).view(torch.uint8).numpy().data


def _fill(connection: socket.socket, data: memoryview) -> None:
    while data:
        num = connection.recv_into(data)
        if not num:
            raise ConnectionError("it closed the connection")
        data = data[num:]
