"""Where the members of a generation find each other: values by key, kept by a server in the first member's process.

Not c10d's TCPStore: its client asks the name server for the name of every address it connects to (five seconds each
where none answers), tries again for its whole time-out where nobody listens, and waits without end for a server that
accepts and is silent. Here a server that is gone is an error at once, and a wait ends as soon as it is cancelled.

Theory of operation
-------------------
A client sets values and gets values; a `get` waits until all its keys are there. That is enough for every member to
learn the addresses of all others. Generation 2 of job-1, with the members 0 and 1:

    member 0                                    member 1
    set member/0  "10.0.0.4:4100"
    get member/0, member/1                      (waits)
                                                set member/1  "10.0.0.5:4200"
    -> "10.0.0.4:4100", "10.0.0.5:4200"         get member/0, member/1
                                                -> "10.0.0.4:4100", "10.0.0.5:4200", at once
    done                                        done

Without `done` the server forgets the values of a connection when it ends: addresses of an attempt that failed must not
mislead the next attempt of the same generation. After `done` they stay, for members that are slower.

Only tasks of the job are served: a connection begins with `pliant.train.group.handshake`, which names the generation
too, and a client reads and sets values of that generation alone. Requests are `set`, key, value (no answer); `get`,
key… (answered with the values once all are there); `done` (no answer). There is one request at a time on a connection,
and all values of a frame together have at most a megabyte: they are addresses.

Knows nothing of torch. The client is in `pliant.train.group.rendezvous_client`.
"""

import contextlib
import selectors
import socket
import threading
import weakref
from dataclasses import dataclass, field
from errno import EADDRNOTAVAIL
from typing import Final

from pliant.train.errors import TrainingError
from pliant.train.group.applicants import BACKLOG, Admitted, Applicant, Applicants
from pliant.train.group.frames import take_frame
from pliant.train.group.handshake import ServerHandshake, Session

PURPOSE: Final = "rendezvous"
"""What both ends of a connection with a rendezvous say that it is for."""


class RendezvousServer:
    """Serves in a thread of this process, from its construction until it is closed or garbage-collected.

    Args:
        host: this task's own address, at which the other tasks reach it.
        key: the job's; who does not prove that it holds it is told nothing.

    Raises:
        TrainingError: this machine has no such address.
    """

    def __init__(self, host: str, *, key: bytes) -> None:
        assert key, "a task that others meet at has the key of its job"
        self.host = host
        listener = _listen(host)
        self.port: int = listener.getsockname()[1]
        closed, close = socket.socketpair()
        server = _Server(listener, closed, key)
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
        return socket.create_server((address[0], 0), family=family, backlog=BACKLOG)
    except OSError as error:
        why = "this machine has no such address" if error.errno == EADDRNOTAVAIL else error.strerror
        raise TrainingError(
            f"this task cannot listen at {host}: {why}; the machine's agent sets PLIANT_HOST, which must be an "
            f"address of this machine that the others reach"
        ) from None


@dataclass(slots=True, eq=False)
class _Client:
    connection: socket.socket
    generation: str
    session: Session
    received: bytearray
    unsent: bytearray = field(default_factory=bytearray)
    waits_for: list[bytes] | None = None


_Key = tuple[str, bytes]
"""The generation, and the key that its members use."""


class _Server:
    """One thread that serves all connections."""

    def __init__(self, listener: socket.socket, closed: socket.socket, key: bytes) -> None:
        self._listener = listener
        self._closed = closed
        self._key = key
        self._values: dict[_Key, tuple[bytes, _Client | None]] = {}
        self._clients: set[_Client] = set()
        self._selector = selectors.DefaultSelector()

    def serve(self) -> None:
        self._listener.setblocking(False)
        with self._selector as selector, self._closed:
            applicants = Applicants(selector, self._listener, self._handshake)
            selector.register(self._closed, selectors.EVENT_READ)
            while self._serve_once(applicants):
                applicants.drop_late()
            applicants.close()
            for client in self._clients:
                client.connection.close()

    def _handshake(self) -> ServerHandshake:
        return ServerHandshake(key=self._key, purpose=PURPOSE)

    def _serve_once(self, applicants: Applicants) -> bool:
        """Serve whoever has something to say; return False once this was closed."""
        for key, events in self._selector.select(applicants.wait_s()):
            if key.fileobj is self._closed:
                return False
            if key.fileobj is self._listener:
                applicants.accept()
            elif isinstance(key.data, Applicant):
                if (admitted := applicants.hear(key.data)) is not None:
                    self._admit(admitted)
            elif not self._handle(key.data, events):
                self._forget(key.data)
        return True

    def _admit(self, admitted: Admitted) -> None:
        client = _Client(admitted.connection, admitted.name.group, admitted.session, admitted.received)
        self._clients.add(client)
        self._selector.register(client.connection, selectors.EVENT_READ, client)
        try:
            self._execute_received(client)
        except (OSError, ValueError):
            self._forget(client)

    def _handle(self, client: _Client, events: int) -> bool:
        """Do what a client requests, send what it waits for; return False if it is gone or sends nonsense."""
        try:
            if events & selectors.EVENT_WRITE:
                self._send(client)
            return not events & selectors.EVENT_READ or self._receive(client)
        except (OSError, ValueError):
            return False

    def _receive(self, client: _Client) -> bool:
        try:
            data = client.connection.recv(1 << 16)
        except BlockingIOError:
            return True
        client.received += data
        self._execute_received(client)
        return bool(data)

    def _execute_received(self, client: _Client) -> None:
        while (body := take_frame(client.received)) is not None:
            self._execute(client, client.session.unseal(body))

    def _execute(self, client: _Client, request: list[bytes]) -> None:
        match request:
            case [b"set", key, value]:
                self._values[client.generation, key] = (value, client)
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
        wanted = [(client.generation, key) for key in client.waits_for or ()]
        if client.waits_for is not None and all(key in self._values for key in wanted):
            client.waits_for = None
            client.unsent += client.session.seal(*(self._values[key][0] for key in wanted))
            self._send(client)

    def _send(self, client: _Client) -> None:
        """Send as much as fits into the connection; the rest follows when it does."""
        with contextlib.suppress(BlockingIOError):
            del client.unsent[: client.connection.send(client.unsent)]
        more = selectors.EVENT_WRITE if client.unsent else 0
        self._selector.modify(client.connection, selectors.EVENT_READ | more, client)

    def _forget(self, client: _Client) -> None:
        self._selector.unregister(client.connection)
        client.connection.close()
        self._clients.discard(client)
        self._values = {key: held for key, held in self._values.items() if held[1] is not client}
