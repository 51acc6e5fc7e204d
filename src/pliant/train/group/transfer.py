"""Tensors from one member of a generation to another: over connections of our own.

Not gloo's send and receive: a send whose peer goes away in the middle of it waits for ever. Here an abort ends
everything at once, and so does the end of the peer.

A connection is made by the sender when it first sends to a member. It begins with `pliant.train.group.handshake`: both
prove the job's key for this very channel, whose name the members learn from each other at the rendezvous. So nobody
else can send anything into a training, or be sent anything. The receiver says one byte when it has taken the sender in.
Then come tensors, each as its number of bytes and the bytes; the receiver answers each with one byte. All of that is
encrypted between hosts if the generation's announcement says so (`pliant.train.group.encryption`), but not between
tasks with the same address, whose bytes leave no machine. Otherwise it does not carry a code either: who can change
packets on the way between two hosts can change it.

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
from dataclasses import dataclass
from typing import Final

import torch

from pliant.train.errors import GenerationLost
from pliant.train.group.applicants import BACKLOG, Admitted, Applicant, Applicants
from pliant.train.group.encryption import PinnedCertificate, Pipe, PlainPipe, begin_tls
from pliant.train.group.frames import take_frame
from pliant.train.group.handshake import MAX_HANDSHAKE_BYTES, ClientHandshake, PeerName, ServerHandshake, Session

_PURPOSE: Final = "transfer"
_LENGTH: Final = struct.Struct("!Q")
_TAKEN: Final = b"\x06"
_CONNECT_TIMEOUT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class _Peer:
    """What a member has announced."""

    host: str
    port: int
    name: str
    pin: str = ""
    """Of its certificate; empty if it encrypts nothing."""


@dataclass(slots=True)
class _Line:
    """A connection, of which one end sends tensors and the other receives them."""

    connection: socket.socket
    session: Session | None = None
    pipe: Pipe | None = None
    """None until both ends know each other."""


class Channels:
    """One member's end of the connections of its generation. One thread uses it, any thread may abort it.

    Args:
        host: this task's own address.
        key: the job's.
        encrypts: what goes to and comes from other hosts is encrypted; the same in all members.

    Raises:
        GenerationLost: this machine has no such address, or cannot encrypt.
    """

    def __init__(self, *, rank: int, host: str, key: bytes, encrypts: bool = False) -> None:
        assert key, "a task that others send to has the key of its job"
        self._rank = rank
        self._key = key
        self._certificate = PinnedCertificate() if encrypts else None
        self._name = secrets.token_hex(16)
        """Names this end of this attempt of this generation, so that nobody can mean another one."""
        self._aborted = threading.Event()
        self._changed = threading.Condition()
        self._to: dict[int, _Line] = {}
        self._from: dict[int, _Line] = {}
        self._peers: Sequence[_Peer] = ()
        try:
            family, _, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
            listener = socket.create_server((address[0], 0), family=family, backlog=BACKLOG)
        except OSError as error:
            raise GenerationLost(
                f"this task cannot use its address {host}: {error.strerror or error}; the machine's agent sets "
                f"PLIANT_HOST, and it must be an address of this machine that the others reach"
            ) from None
        own_host, port = listener.getsockname()[:2]
        self._own = _Peer(own_host, port, self._name, self._certificate.pin if self._certificate is not None else "")
        self.address = json.dumps([own_host, port, self._name, *filter(None, [self._own.pin])])
        """What the other members need to connect; nothing of it is secret."""
        closed, self._close_listener = socket.socketpair()
        self._thread = threading.Thread(
            target=self._serve, args=(listener, closed), name=f"pliant-transfer-{rank}", daemon=True
        )
        self._thread.start()

    def set_peers(self, peers: Sequence[str]) -> None:
        """Set the addresses of all members, in rank order.

        Raises:
            GenerationLost: not all of them were told the same of whether state is encrypted.
        """
        self._peers = [_Peer(*json.loads(peer)) for peer in peers]
        differing = [rank for rank, peer in enumerate(self._peers) if bool(peer.pin) != bool(self._own.pin)]
        if differing:
            those = f"members {', '.join(map(str, differing))}"
            mine, theirs = (f"member {self._rank}", those) if self._own.pin else (those, f"member {self._rank}")
            raise GenerationLost(
                f"{mine} may send state encrypted only, and {theirs} in the clear only: they were told so before and "
                f"after the server was started with another --encrypt-state; the next generation will agree"
            )

    def send(self, tensor: torch.Tensor, to: int) -> None:
        """Send a contiguous CPU tensor; returns when the peer has taken it.

        Raises:
            GenerationLost: the peer is gone, or this was aborted.
        """
        data = _bytes(tensor)
        try:
            pipe = self._pipe_to(to)
            pipe.send(memoryview(_LENGTH.pack(len(data))))
            pipe.send(data)
            pipe.fill(memoryview(bytearray(1)))
        except (OSError, ValueError) as error:
            raise self._peer_error(to, error) from None

    def receive(self, tensor: torch.Tensor, source: int) -> None:
        """Fill a contiguous CPU tensor with what `source` sends.

        Raises:
            GenerationLost: the peer is gone, or this was aborted.
        """
        data, length = _bytes(tensor), memoryview(bytearray(_LENGTH.size))
        try:
            pipe = self._pipe_from(source)
            pipe.fill(length)
            if _LENGTH.unpack(length) != (len(data),):
                raise ConnectionError(f"it sent {_LENGTH.unpack(length)[0]} bytes, not {len(data)}")
            pipe.fill(data)
            pipe.send(memoryview(_TAKEN))
        except OSError as error:
            raise self._peer_error(source, error) from None

    def _pipe_to(self, to: int) -> Pipe:
        line = self._to.get(to)
        return line.pipe if line is not None and line.pipe is not None else self._connect(to)

    def _connect(self, to: int) -> Pipe:
        peer = self._peers[to]
        connection = socket.create_connection((peer.host, peer.port), timeout=_CONNECT_TIMEOUT_S)
        line = _Line(connection)
        try:
            self._store(self._to, to, line)  # from now on an abort ends it
            me = PeerName(group=peer.name, member=str(self._rank))
            session = self._prove(connection, ClientHandshake(key=self._key, purpose=_PURPOSE, name=me))
            line.pipe = begin_tls(connection, session, peer.pin) if self._leaves_host(peer) else PlainPipe(connection)
        except (OSError, ValueError):
            with self._changed:
                self._to.pop(to, None)
            connection.close()
            raise
        return line.pipe

    def _leaves_host(self, peer: _Peer) -> bool:
        """Tell whether what goes to or comes from a member is encrypted: between hosts, if it is at all."""
        return self._certificate is not None and peer.host != self._own.host

    def _prove(self, connection: socket.socket, handshake: ClientHandshake) -> Session:
        connection.sendall(handshake.hello)
        received = bytearray()
        while (answer := take_frame(received, MAX_HANDSHAKE_BYTES)) is None:
            data = connection.recv(MAX_HANDSHAKE_BYTES)
            if not data:
                raise ConnectionError("it closed the connection")
            received += data
        proof, session = handshake.prove(answer)
        connection.sendall(proof)
        PlainPipe(connection).fill(memoryview(bytearray(1)))
        return session

    def _pipe_from(self, source: int) -> Pipe:
        """Return what a member sends by, once it is there. A new one is encrypted here, where others need not wait."""
        line = self._wait_for(source)
        if line.pipe is None and self._certificate is not None and self._leaves_host(self._peers[source]):
            assert line.session is not None, "who is taken in has proved the key"
            line.pipe = self._certificate.accept(line.connection, line.session)
        elif line.pipe is None:
            line.pipe = PlainPipe(line.connection)
        return line.pipe

    def _wait_for(self, source: int) -> _Line:
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
            self._store(self._from, int(admitted.name.member), _Line(connection, admitted.session))
            connection.sendall(_TAKEN)
        except (OSError, ValueError):
            connection.close()

    def _store(self, among: dict[int, _Line], rank: int, line: _Line) -> None:
        line.connection.settimeout(None)
        line.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._changed:
            if self._aborted.is_set():
                raise ConnectionError("aborted")
            if rank in among:
                raise ConnectionError("it is connected already")
            among[rank] = line
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
            for line in (*self._to.values(), *self._from.values()):
                with contextlib.suppress(OSError):  # the peer was faster
                    line.connection.shutdown(socket.SHUT_RDWR)
            self._changed.notify_all()

    def close(self) -> None:
        """Close all connections; whatever was sent has been received."""
        self.abort()
        self._close_listener.close()
        self._thread.join()
        with self._changed:
            for line in (*self._to.values(), *self._from.values()):
                line.connection.close()


def _bytes(tensor: torch.Tensor) -> memoryview:
    return tensor.detach().reshape(-1).view(torch.uint8).numpy().data
