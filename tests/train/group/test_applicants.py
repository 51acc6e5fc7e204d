"""Connections that prove nothing: they are few, they last for seconds, and members come in beside them."""

import selectors
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from pliant.train.group.applicants import MAX_APPLICANTS, PROOF_S, Admitted, Applicant, Applicants
from pliant.train.group.frames import take_frame
from pliant.train.group.handshake import ClientHandshake, PeerName, ServerHandshake

KEY, NAME = b"the key", PeerName(group="job-1/1", member="0")
PATIENCE_S = 20.0


class Port:
    """A listener with its applicants, served by the test itself; its time is moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0
        self.admitted: list[Admitted] = []
        self._stack = ExitStack()
        self._selector = self._stack.enter_context(selectors.DefaultSelector())
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self._listener.setblocking(False)
        self.applicants = Applicants(
            self._selector, self._listener, lambda: ServerHandshake(key=KEY, purpose="test"), now=lambda: self.now
        )

    def connect(self) -> socket.socket:
        return self._stack.enter_context(socket.create_connection(self._listener.getsockname(), timeout=PATIENCE_S))

    def serve(self) -> None:
        """Do all that there is to do."""
        while events := self._selector.select(0.02):
            for key, _ in events:
                if not isinstance(key.data, Applicant):
                    self.applicants.accept()
                elif (admitted := self.applicants.hear(key.data)) is not None:
                    self.admitted.append(admitted)
        self.applicants.drop_late()

    def close(self) -> None:
        for admitted in self.admitted:
            admitted.connection.close()
        self.applicants.close()
        self._stack.close()


@pytest.fixture
def port() -> Iterator[Port]:
    made = Port()
    yield made
    made.close()


def is_cut_off(connection: socket.socket) -> bool:
    """Tell whether the other end has closed it, after whatever it said."""
    connection.setblocking(False)
    try:
        while connection.recv(4096):
            pass
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
    return True


def prove(connection: socket.socket, serve: Callable[[], None]) -> None:
    """Do a member's part of the handshake."""
    handshake = ClientHandshake(key=KEY, purpose="test", name=NAME)
    connection.sendall(handshake.hello)
    serve()
    answer = take_frame(bytearray(connection.recv(4096)))
    assert answer is not None
    proof, session = handshake.prove(answer)
    connection.sendall(proof + session.seal(b"first"))
    serve()


def test_a_member_is_admitted_with_what_it_said_after_its_proof(port: Port) -> None:
    prove(port.connect(), port.serve)

    (admitted,) = port.admitted
    body = take_frame(admitted.received)
    assert body is not None
    assert (admitted.name, admitted.session.unseal(body)) == (NAME, [b"first"])
    assert (len(port.applicants), port.applicants.wait_s()) == (0, None)


@pytest.mark.parametrize(
    "nonsense",
    [b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, b"\0\0\0\x04what", b"\0\0\4\1" + bytes(1025), bytes(1 << 20)],
    ids=["HTTP", "a huge frame", "no hello", "a frame over the limit", "a megabyte"],
)
def test_nonsense_is_answered_with_the_end(port: Port, nonsense: bytes) -> None:
    stranger = port.connect()
    stranger.setblocking(False)
    stranger.send(nonsense)
    port.serve()

    assert is_cut_off(stranger)
    assert port.admitted == []


def test_who_is_silent_is_dropped_after_its_time_and_nobody_before(port: Port) -> None:
    early = port.connect()
    port.serve()
    port.now += PROOF_S / 2
    late, member = port.connect(), port.connect()
    port.serve()
    assert port.applicants.wait_s() == PROOF_S / 2

    port.now += PROOF_S / 2
    port.serve()

    assert [is_cut_off(one) for one in (early, late)] == [True, False]
    prove(member, port.serve)
    assert len(port.admitted) == 1


def test_who_says_hello_and_no_more_is_dropped_too(port: Port) -> None:
    stranger = port.connect()
    stranger.sendall(ClientHandshake(key=b"another", purpose="test", name=NAME).hello)
    port.serve()
    port.now += PROOF_S
    port.serve()

    assert is_cut_off(stranger)


def test_of_too_many_the_oldest_are_dropped_and_a_member_comes_in(port: Port) -> None:
    strangers = [port.connect() for _ in range(MAX_APPLICANTS + 40)]
    port.serve()
    assert len(port.applicants) == MAX_APPLICANTS
    assert [is_cut_off(one) for one in strangers] == [True] * 40 + [False] * MAX_APPLICANTS

    prove(port.connect(), port.serve)

    assert [admitted.name for admitted in port.admitted] == [NAME]
