"""Encryption of what a connection between two tasks carries: TLS 1.3, by certificates of the tasks' own.

Theory of operation
-------------------
Each end that listens makes a key and a certificate that nobody has signed but itself, for one attempt to form one
generation. Its SHA-256 (`pin`) goes to the other members with its address, over the rendezvous, whose frames nobody can
change who lacks the job's key. TLS begins when both ends have proved that key (`pliant.train.group.handshake`):

    client                                          server
    TLS 1.3; it believes the pinned certificate     (which anybody may have connected with)
    a frame of the session, inside TLS
    tensors

So no stranger's bytes come to the library that speaks TLS. Who passes the proofs on between two tasks is not the one
whose certificate the client waits for, and cannot make the frame that the server waits for: the session's key comes of
the job's, and never travels. Names, times and authorities of certificates count for nothing.

A connection is held by its socket here, and encrypted in memory: another thread may shut the socket down at any time.
(`ssl.SSLSocket` goes on in the clear after a shutdown by another thread.)
"""

import hashlib
import hmac
import os
import socket
import ssl
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from pliant.train.errors import GenerationLost
from pliant.train.group.frames import take_frame
from pliant.train.group.handshake import MAX_HANDSHAKE_BYTES, NotProven, Session

_PIECE_BYTES: Final = 256 << 10
"""Small, so that one end decrypts a piece while the other encrypts the next."""
_RECORD_BYTES: Final = 16 << 10
_BEGINS, _ENDS = datetime(2020, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
"""Nobody looks at them, and clocks of machines differ."""
_WORD: Final = b"encrypted"


class Pipe(Protocol):
    """What carries bytes between two tasks. One thread uses it; another one may shut its socket down."""

    def send(self, data: memoryview) -> None:
        """Send all of it; raises OSError if the connection ends before."""

    def fill(self, data: memoryview) -> None:
        """Receive as many bytes; raises OSError if the connection ends before."""


class PlainPipe:
    """A connection as it is."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def send(self, data: memoryview) -> None:
        self._connection.sendall(data)

    def fill(self, data: memoryview) -> None:
        while data:
            num = self._connection.recv_into(data)
            if not num:
                raise ConnectionError("it closed the connection")
            data = data[num:]


class PinnedCertificate:
    """The certificate of an end that listens, and its key, which leaves this process nowhere.

    Raises:
        GenerationLost: this system cannot make one.
    """

    def __init__(self) -> None:
        try:
            from pliant.files.certificates import own_pair  # takes 50 ms, for who encrypts alone

            pem, der = own_pair("task", begins=_BEGINS, ends=_ENDS)
            self._context = _context(ssl.PROTOCOL_TLS_SERVER)
            self._context.num_tickets = 0
            self._load(pem)
        except (ImportError, OSError) as error:
            raise GenerationLost(f"this task cannot encrypt its state: {error}") from None
        self.pin = _pin(der)
        """By which the other end knows it: the SHA-256, in hex digits."""

    def _load(self, pem: bytes) -> None:
        """Hand the key to the library, which reads files alone: one that only this process has, and no disk."""
        number = os.memfd_create("pliant-certificate")
        with open(number, "wb", buffering=0) as file:
            file.write(pem)
            self._context.load_cert_chain(f"/proc/self/fd/{number}")

    def accept(self, connection: socket.socket, session: Session) -> "TlsPipe":
        """Return the pipe of a connection at which the other end begins TLS, whose key it has proved.

        Raises:
            OSError: it does not, or somebody is between the two.
        """
        pipe = TlsPipe(connection, self._context, is_server=True)
        received = bytearray()
        one = memoryview(bytearray(1))
        while (frame := take_frame(received, MAX_HANDSHAKE_BYTES)) is None:
            pipe.fill(one)
            received += one
        try:
            if session.unseal(frame) != [_WORD]:
                raise NotProven("it says something else than was agreed on")
        except ValueError as error:
            raise NotProven(str(error)) from None
        return pipe


def begin_tls(connection: socket.socket, session: Session, pin: str) -> "TlsPipe":
    """Return the pipe of a connection to an end that has a pinned certificate, and has proved the job's key.

    Raises:
        OSError: another certificate is shown, or the connection ends.
    """
    pipe = TlsPipe(connection, _context(ssl.PROTOCOL_TLS_CLIENT), is_server=False)
    if not hmac.compare_digest(_pin(pipe.certificate()), pin):
        raise NotProven("it shows another certificate than it has announced: somebody is between the two tasks")
    pipe.send(memoryview(session.seal(_WORD)))
    return pipe


class TlsPipe:
    """A connection in TLS, whose handshake is over when this is constructed.

    Raises:
        OSError: the other end does not speak TLS 1.3, or is gone.
    """

    def __init__(self, connection: socket.socket, context: ssl.SSLContext, *, is_server: bool) -> None:
        self._connection = connection
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=is_server)
        self._buffer = memoryview(bytearray(_PIECE_BYTES))
        while not self._shake():
            self._receive()

    def certificate(self) -> bytes:
        """Return what the server has shown, in DER form."""
        return self._tls.getpeercert(binary_form=True) or b""

    def send(self, data: memoryview) -> None:
        for begin in range(0, len(data), _PIECE_BYTES):
            piece = data[begin : begin + _PIECE_BYTES]
            while piece:
                piece = piece[self._tls.write(piece) :]
            self._connection.sendall(self._outgoing.read())

    def fill(self, data: memoryview) -> None:
        while data:
            try:  # into a buffer it reads a number of bytes
                num: Any = self._tls.read(min(len(data), _RECORD_BYTES), data)
            except ssl.SSLWantReadError:
                self._receive()
                continue
            if not num:
                raise ConnectionError("it closed the connection")
            data = data[num:]

    def _shake(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        finally:
            self._connection.sendall(self._outgoing.read())
        return True

    def _receive(self) -> None:
        num = self._connection.recv_into(self._buffer)
        if not num:
            raise ConnectionError("it closed the connection")
        self._incoming.write(self._buffer[:num])


def _context(protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # what counts of a certificate is its pin
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def _pin(der: bytes) -> str:
    return hashlib.sha256(der).hexdigest()
