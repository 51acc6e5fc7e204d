"""Connections that have not proved the job's key yet, at a port that anybody on the network can connect to.

None of them can hold up anything: all are served side by side by a thread that waits for no single one. Who has not
proved the key `PROOF_S` after it came, or after its hello was answered, is dropped; of more than `MAX_APPLICANTS` at a
time the oldest is. A member needs a few milliseconds, so whoever fills the places has to do it within those to keep it
out. Nobody is told why: what a stranger sends is answered with the end of the connection.
"""

import selectors
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from errno import EMFILE, ENFILE
from time import monotonic
from typing import Final

from pliant.train.group.frames import take_frame
from pliant.train.group.handshake import MAX_HANDSHAKE_BYTES, PeerName, ServerHandshake, Session

PROOF_S: Final = 5.0
MAX_APPLICANTS: Final = 256
BACKLOG: Final = 1024
"""Connections that the kernel keeps until they are accepted; a flood must not fill it between two looks."""


@dataclass(slots=True, eq=False)
class Applicant:
    """A connection that has proved nothing yet."""

    connection: socket.socket
    handshake: ServerHandshake
    deadline: float
    received: bytearray = field(default_factory=bytearray)


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A connection that has proved the key."""

    connection: socket.socket
    name: PeerName
    session: Session
    received: bytearray
    """What came after the proof."""


class Applicants:
    """The applicants at one listener, served by the thread that runs the selector.

    Args:
        selector: where the listener and the applicants are waited for; an applicant's `data` is the `Applicant`.
        listener: not blocking.
        handshake: makes this end's part of a handshake.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        listener: socket.socket,
        handshake: Callable[[], ServerHandshake],
        now: Callable[[], float] = monotonic,
    ) -> None:
        self._selector = selector
        self._listener = listener
        self._handshake = handshake
        self._now = now
        self._waiting: dict[Applicant, None] = {}  # in the order of their deadlines
        selector.register(listener, selectors.EVENT_READ)

    def __len__(self) -> int:
        return len(self._waiting)

    def wait_s(self) -> float | None:
        """Return the seconds until somebody has to be dropped; None while nobody waits."""
        return max(0.0, next(iter(self._waiting)).deadline - self._now()) if self._waiting else None

    def accept(self) -> None:
        """Accept one connection, and drop the oldest if there are too many."""
        try:
            connection, _ = self._listener.accept()
        except OSError as error:  # it is gone again, or no descriptor is left
            if error.errno in (EMFILE, ENFILE) and self._waiting:
                self._drop(next(iter(self._waiting)))
            return
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        applicant = Applicant(connection, self._handshake(), self._now() + PROOF_S)
        self._waiting[applicant] = None
        self._selector.register(connection, selectors.EVENT_READ, applicant)
        if len(self._waiting) > MAX_APPLICANTS:
            self._drop(next(iter(self._waiting)))

    def hear(self, applicant: Applicant) -> Admitted | None:
        """Read what an applicant says; return it once it has proved the key. It is in no selector then."""
        if applicant not in self._waiting:  # dropped since the selector saw it
            return None
        try:
            session = self._advance(applicant)
        except BlockingIOError:
            return None
        except (OSError, ValueError):
            self._drop(applicant)
            return None
        name = applicant.handshake.name
        if session is None or name is None:
            return None
        self._forget(applicant)
        return Admitted(connection=applicant.connection, name=name, session=session, received=applicant.received)

    def _advance(self, applicant: Applicant) -> Session | None:
        data = applicant.connection.recv(2 * MAX_HANDSHAKE_BYTES)
        if not data:
            raise ConnectionResetError
        applicant.received += data
        if applicant.handshake.name is None:
            hello = take_frame(applicant.received, MAX_HANDSHAKE_BYTES)
            if hello is not None:
                applicant.connection.send(applicant.handshake.answer(hello))  # the first bytes of a connection fit
                applicant.deadline = self._now() + PROOF_S
                self._waiting[applicant] = self._waiting.pop(applicant)
            return None
        proof = take_frame(applicant.received, MAX_HANDSHAKE_BYTES)
        return None if proof is None else applicant.handshake.verify(proof)

    def drop_late(self) -> None:
        """Drop who did not prove the key in time."""
        while self._waiting and (oldest := next(iter(self._waiting))).deadline <= self._now():
            self._drop(oldest)

    def close(self) -> None:
        """Drop everybody and stop listening."""
        for applicant in list(self._waiting):
            self._drop(applicant)
        self._selector.unregister(self._listener)
        self._listener.close()

    def _drop(self, applicant: Applicant) -> None:
        self._forget(applicant)
        applicant.connection.close()

    def _forget(self, applicant: Applicant) -> None:
        del self._waiting[applicant]
        self._selector.unregister(applicant.connection)
