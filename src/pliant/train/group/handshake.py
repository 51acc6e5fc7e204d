"""How two tasks of a job prove to each other that they hold its key, before either says anything else.

Theory of operation
-------------------
Every task of a job has its token, and nobody else has. The key is made of it (`job_key`) and never travels. Who
connects is the client, who listened is the server; N is 32 random bytes, new for every connection:

    client                                          server
    hello    version, N of the client, group, member
                                                    answer   N of the server, proof of the server
    proof    proof of the client
    all later frames carry a code of their content and their number

A proof is HMAC-SHA256 with the key over the word "server" or "client" and all that was said so far: purpose, version,
both N, group, member. So a proof that was seen is worth nothing on another connection (another N), in the other
direction (another word), for another group or member, or at the other port of a task (another purpose). The server
proves itself first: nothing but the hello is said to a stranger that listens where a task did. Proofs are compared in
constant time.

With the same key and text a session key is made for each direction. A frame of a session ends with HMAC-SHA256 over
its number and content: one that was changed, left out, repeated or put in by somebody on the way is refused.

Frames are not encrypted: they hold addresses, which the connections made after them show as well, and no secret.

Knows no sockets: takes and returns bytes.
"""

import hashlib
import hmac
import secrets
import struct
from dataclasses import dataclass
from typing import Final

from pliant.train.group.frames import enclose, pack, unpack

MAX_HANDSHAKE_BYTES: Final = 1 << 10
"""Longer than any hello or proof; who has proved nothing may send no more."""
_VERSION: Final = b"pliant 1"
_NONCE_BYTES: Final = 32
_CODE_BYTES: Final = 32
_NUMBER: Final = struct.Struct("!Q")


class NotProven(ConnectionError):
    """The other end did not prove the job's key, or what came was changed on the way."""


def job_key(token: str) -> bytes:
    """Return the key that the tasks of a job prove to each other, made of the job's token."""
    return _code(token.encode(), b"the tasks of a job among themselves")


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerName:
    """Who connects, and to what."""

    group: str
    """The generation, such as `job-1/2`, or whatever else the two ends must agree on."""
    member: str


class Session:
    """One end of a connection on which both ends have proved the key. Frames have numbers, counted from 0."""

    def __init__(self, *, send_key: bytes, receive_key: bytes) -> None:
        self._send_key, self._receive_key = send_key, receive_key
        self._num_sent = self._num_received = 0

    def seal(self, *parts: bytes) -> bytes:
        """Return a frame of these parts with its code."""
        body = pack(parts)[4:]
        code = _code(self._send_key, _NUMBER.pack(self._num_sent) + body)
        self._num_sent += 1
        return enclose(body + code)

    def unseal(self, sealed: bytes) -> list[bytes]:
        """Return the parts of a frame without its length.

        Raises:
            NotProven: its code is wrong.
        """
        body, code = sealed[:-_CODE_BYTES], sealed[-_CODE_BYTES:]
        if not hmac.compare_digest(code, _code(self._receive_key, _NUMBER.pack(self._num_received) + body)):
            raise NotProven("what it sent was changed on the way")
        self._num_received += 1
        return unpack(body)


class ClientHandshake:
    """The end that connects; `hello` is what it sends first.

    Args:
        key: the job's.
        purpose: what the other end listens for.
    """

    def __init__(self, *, key: bytes, purpose: str, name: PeerName) -> None:
        self._key = key
        parts = [_VERSION, secrets.token_bytes(_NONCE_BYTES), name.group.encode(), name.member.encode()]
        self.hello = pack(parts)
        self._said = [purpose.encode(), *parts]

    def prove(self, answer: bytes) -> tuple[bytes, Session]:
        """Check the server's answer; return the frame to send next, and the session that begins after it.

        Raises:
            NotProven: the server does not hold the key.
        """
        try:
            nonce, proof = unpack(answer)
        except ValueError:
            raise NotProven("it does not prove the job's key") from None
        said = pack([*self._said, nonce])
        if not hmac.compare_digest(proof, _code(self._key, b"server" + said)):
            raise NotProven("it does not prove the job's key")
        session = Session(
            send_key=_code(self._key, b"frames to the server" + said),
            receive_key=_code(self._key, b"frames to the client" + said),
        )
        return pack([_code(self._key, b"client" + said)]), session


class ServerHandshake:
    """The end that listened: takes a hello, then a proof."""

    def __init__(self, *, key: bytes, purpose: str) -> None:
        self._key = key
        self._purpose = purpose.encode()
        self._said = b""
        self.name: PeerName | None = None
        """Who says to connect; None before the hello. It is proven only when `verify` has returned."""

    def answer(self, hello: bytes) -> bytes:
        """Return what to answer a hello with.

        Raises:
            ValueError: it is none.
        """
        version, nonce, group, member = unpack(hello)
        if version != _VERSION or len(nonce) != _NONCE_BYTES:
            raise ValueError("no hello of this version")
        self.name = PeerName(group=group.decode(), member=member.decode())
        own = secrets.token_bytes(_NONCE_BYTES)
        self._said = pack([self._purpose, version, nonce, group, member, own])
        return pack([own, _code(self._key, b"server" + self._said)])

    def verify(self, proof: bytes) -> Session:
        """Check the client's proof and return the session that begins now.

        Raises:
            ValueError: it is not a proof.
            NotProven: the client does not hold the key.
        """
        (code,) = unpack(proof)
        if not hmac.compare_digest(code, _code(self._key, b"client" + self._said)):
            raise NotProven("it does not prove the job's key")
        return Session(
            send_key=_code(self._key, b"frames to the client" + self._said),
            receive_key=_code(self._key, b"frames to the server" + self._said),
        )


def _code(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, hashlib.sha256)
