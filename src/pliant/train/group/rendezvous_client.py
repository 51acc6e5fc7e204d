"""A member's connection with the rendezvous of its generation; see `pliant.train.group.rendezvous`."""

import contextlib
import os
import selectors
import socket
from collections.abc import Callable
from errno import EINPROGRESS
from time import monotonic
from typing import Final

from pliant.train.errors import GenerationLost
from pliant.train.group.frames import take_frame
from pliant.train.group.handshake import ClientHandshake, NotProven, PeerName, Session
from pliant.train.group.rendezvous import PURPOSE

_LOOK_S: Final = 0.1
"""Seconds between two looks at whether a wait was cancelled."""


class RendezvousClient:
    """A connection with a rendezvous, for one attempt to form one group.

    Args:
        address: host and port of the rendezvous.
        key: the job's; who listens there has to prove that it holds it, as this client does.
        name: the group, the same in all its members, and which of them this is.
        timeout_s: for all that is requested over this connection, together.
        is_cancelled: called a few times a second; when it returns True every wait ends.

    Raises:
        GenerationLost: nobody listens there, nobody answers, or it is not a task of this job.
    """

    def __init__(
        self,
        address: tuple[str, int],
        *,
        key: bytes,
        name: PeerName,
        timeout_s: float,
        is_cancelled: Callable[[], bool],
    ) -> None:
        self._where = f"[{address[0]}]:{address[1]}" if ":" in address[0] else f"{address[0]}:{address[1]}"
        self._timeout_s = timeout_s
        self._deadline = monotonic() + timeout_s
        self._is_cancelled = is_cancelled
        self._received = bytearray()
        self._connection = self._connect(address)
        try:
            self._session = self._prove(ClientHandshake(key=key, purpose=PURPOSE, name=name))
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> "RendezvousClient":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._connection, contextlib.suppress(OSError):  # a rendezvous that is gone needs to know nothing
            if kind is None:
                self._connection.sendall(self._session.seal(b"done"))

    def set(self, key: str, value: bytes) -> None:
        """Make a value known to the other members."""
        try:
            self._connection.sendall(self._session.seal(b"set", key.encode(), value))
        except OSError as error:
            raise self._rendezvous_error(error) from None

    def get(self, *keys: str) -> list[bytes]:
        """Return the values of keys once all of them are there.

        Raises:
            GenerationLost: the rendezvous is gone, somebody did not come in time, or the group was given up.
        """
        try:
            self._connection.sendall(self._session.seal(b"get", *(key.encode() for key in keys)))
            return self._session.unseal(self._next_frame("some members of the generation did not come to it"))
        except (OSError, ValueError) as error:
            raise self._rendezvous_error(error) from None

    def _prove(self, handshake: ClientHandshake) -> Session:
        """Prove the key, and have the rendezvous prove it."""
        try:
            self._connection.sendall(handshake.hello)
            proof, session = handshake.prove(self._next_frame("it accepts connections but does not answer"))
            self._connection.sendall(proof)
        except (OSError, ValueError) as error:
            raise self._rendezvous_error(error) from None
        return session

    def _next_frame(self, missing: str) -> bytes:
        while (body := take_frame(self._received)) is None:
            self._wait_for(selectors.EVENT_READ, missing)
            data = self._connection.recv(1 << 16)
            if not data:
                raise ConnectionResetError
            self._received += data
        return body

    def _connect(self, address: tuple[str, int]) -> socket.socket:
        try:
            family, kind, protocol, _, target = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
        except OSError as error:
            raise self._rendezvous_error(error) from None
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
            raise self._rendezvous_error(error) from None
        except GenerationLost:
            connection.close()
            raise
        return connection

    def _wait_for(self, event: int, missing: str) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._connection, event)
            while not selector.select(_LOOK_S):
                if self._is_cancelled():
                    raise GenerationLost("the coordinator gave this generation up")
                if monotonic() > self._deadline:
                    raise GenerationLost(
                        f"{missing} within {self._timeout_s:g} s (rendezvous at {self._where}, the PLIANT_HOST of the "
                        f"first member: all machines of a job must reach it, and each other)"
                    )

    def _rendezvous_error(self, error: OSError | ValueError) -> GenerationLost:
        if isinstance(error, NotProven):
            return GenerationLost(
                f"what listens at {self._where} is not the rendezvous of this job: {error} (another program has the "
                f"port of a task that ended, or the network lets others in between)"
            )
        why: object = error
        if isinstance(error, ConnectionResetError | BrokenPipeError):  # which of the two depends on what was under way
            why = "it closed the connection"
        elif isinstance(error, OSError) and error.errno:
            why = error.strerror or os.strerror(error.errno)
        return GenerationLost(f"the rendezvous at {self._where} is gone: {why}")
