"""What goes between hosts is encrypted for its receiver, and nobody between the two can read it or change it."""

import json
import multiprocessing
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Connection

import pytest
import torch
from tests.train.group.test_transfer import KEY, PATIENCE_S, start

from pliant.train.errors import GenerationLost
from pliant.train.group.encryption import PinnedCertificate, PlainPipe, begin_tls
from pliant.train.group.handshake import ClientHandshake, PeerName, Session
from pliant.train.group.transfer import Channels

MARKER = b"weights that nobody else may see"
BETWEEN = "127.0.0.3"
"""Another host than those of the members."""

Middle = Callable[[socket.socket, socket.socket], None]
"""What is done between the two ends of a connection: of who connects, and of who listens."""


def tensor_of(text: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(text), dtype=torch.uint8)


@contextmanager
def members(
    *, encrypts: bool, middle: Middle, hosts: tuple[str, str] = ("127.0.0.1", "127.0.0.2")
) -> Iterator[list[Channels]]:
    """Yield two members, with somebody between the first and the second one."""
    with ExitStack() as stack:
        made = [Channels(rank=rank, host=host, key=KEY, encrypts=encrypts) for rank, host in enumerate(hosts)]
        host, port, *rest = json.loads(made[1].address)
        listener = stack.enter_context(socket.create_server((hosts[0] if len(set(hosts)) == 1 else BETWEEN, 0)))
        thread = threading.Thread(target=_stand_between, args=(listener, (host, port), middle), daemon=True)
        thread.start()
        stack.callback(thread.join, PATIENCE_S)
        made[0].set_peers([made[0].address, json.dumps([*listener.getsockname()[:2], *rest])])
        made[1].set_peers([one.address for one in made])
        try:
            yield made
        finally:
            for one in made:
                one.close()


def _stand_between(listener: socket.socket, address: tuple[str, int], middle: Middle) -> None:
    with listener.accept()[0] as near, socket.create_connection(address) as far, suppress(OSError):
        middle(near, far)


def passes_on(seen: bytearray) -> Middle:
    """Return what passes everything on, and keeps it."""

    def run(near: socket.socket, far: socket.socket) -> None:
        back = threading.Thread(target=_pass_on, args=(far, near, bytearray()), daemon=True)
        back.start()
        _pass_on(near, far, seen)
        back.join(PATIENCE_S)

    return run


def _pass_on(source: socket.socket, target: socket.socket, seen: bytearray) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            seen += data
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def pass_proofs_on(near: socket.socket, far: socket.socket) -> None:
    """Pass on what two tasks say until they know each other."""
    for source, target in ((near, far), (far, near), (near, far), (far, near)):
        target.sendall(source.recv(1 << 16))


@pytest.mark.parametrize(
    ("encrypts", "hosts", "is_seen"),
    [
        (False, ("127.0.0.1", "127.0.0.2"), True),
        (True, ("127.0.0.1", "127.0.0.2"), False),
        (True, ("127.0.0.1", "127.0.0.1"), True),
    ],
    ids=["without the option", "with the option", "between tasks of one host"],
)
def test_what_is_sent_is_seen_on_the_way_unless_it_is_encrypted(
    encrypts: bool, hosts: tuple[str, str], is_seen: bool
) -> None:
    seen, arrived = bytearray(), torch.zeros(len(MARKER), dtype=torch.uint8)
    with members(encrypts=encrypts, middle=passes_on(seen), hosts=hosts) as (first, second):
        thread, told = start(lambda: first.send(tensor_of(MARKER), 1))
        second.receive(arrived, 0)
        thread.join(PATIENCE_S)

    assert (bytes(arrived.numpy()), told) == (MARKER, [])
    assert (MARKER in seen) == is_seen


def test_who_passes_proofs_on_and_shows_another_certificate_is_sent_nothing() -> None:
    heard: list[object] = []

    def middle(near: socket.socket, far: socket.socket) -> None:
        pass_proofs_on(near, far)
        session = Session(send_key=b"", receive_key=b"")
        try:
            heard.append(PinnedCertificate().accept(near, session))
        except OSError as error:
            heard.append(str(error))

    words = "another certificate than it has announced: somebody is between"
    with members(encrypts=True, middle=middle) as (first, _), pytest.raises(GenerationLost, match=words):
        first.send(tensor_of(MARKER), 1)

    assert heard == ["it closed the connection"]


def test_who_passes_proofs_on_and_speaks_tls_itself_puts_nothing_in() -> None:
    def middle(near: socket.socket, far: socket.socket) -> None:
        pass_proofs_on(near, far)
        pipe = begin_tls(far, Session(send_key=b"guessed", receive_key=b""), pins[0])
        pipe.send(memoryview(len(MARKER).to_bytes(8, "big") + MARKER))
        far.recv(1)

    pins: list[str] = []
    arrived = torch.zeros(len(MARKER), dtype=torch.uint8)
    with members(encrypts=True, middle=middle) as (first, second):
        pins.append(json.loads(second.address)[3])
        thread, _ = start(lambda: first.send(torch.zeros(1), 1))
        with pytest.raises(GenerationLost, match="member 0 is gone: what it sent was changed on the way"):
            second.receive(arrived, 0)
        second.abort()
        first.abort()
        thread.join(PATIENCE_S)

    assert not arrived.any()


def test_who_proves_the_key_and_goes_on_in_the_clear_puts_nothing_in() -> None:
    second = Channels(rank=1, host="127.0.0.2", key=KEY, encrypts=True)
    other = PinnedCertificate().pin
    host, port, name, _ = json.loads(second.address)
    second.set_peers([json.dumps(["127.0.0.1", 9, "", other]), second.address])
    arrived = torch.zeros(len(MARKER), dtype=torch.uint8)
    with socket.create_connection((host, port)) as connection:
        handshake = ClientHandshake(key=KEY, purpose="transfer", name=PeerName(group=name, member="0"))
        second._prove(connection, handshake)
        PlainPipe(connection).send(memoryview(len(MARKER).to_bytes(8, "big") + MARKER))
        for _ in range(3):  # nor is what comes after it taken as it is
            with pytest.raises(GenerationLost, match="member 0 is gone: "):
                second.receive(arrived, 0)
            with suppress(OSError):
                PlainPipe(connection).send(memoryview(len(MARKER).to_bytes(8, "big") + MARKER))
    second.close()

    assert not arrived.any()


@pytest.mark.parametrize("told", [(True, False), (False, True)], ids=["the first encrypts", "the second encrypts"])
def test_members_that_were_told_differently_form_no_generation(told: tuple[bool, bool]) -> None:
    made = [Channels(rank=rank, host=f"127.0.0.{rank + 1}", key=KEY, encrypts=one) for rank, one in enumerate(told)]
    first, second = (0, 1) if told[0] else (1, 0)
    for one in made:
        with pytest.raises(GenerationLost) as lost:
            one.set_peers([each.address for each in made])
        one.close()

        words = str(lost.value)
        assert words.index(f"{first} may send state encrypted only") < words.index(f"{second} in the clear only")


def _pin_of_a_child(answers: Connection) -> None:
    answers.send(PinnedCertificate().pin)


def test_forks_of_a_process_that_has_made_one_make_keys_of_their_own() -> None:
    pins, context = {PinnedCertificate().pin}, multiprocessing.get_context("fork")
    for _ in range(3):
        answers, theirs = context.Pipe(duplex=False)
        child = context.Process(target=_pin_of_a_child, args=(theirs,))
        child.start()
        pins.add(answers.recv())
        child.join(PATIENCE_S)

    assert len(pins) == 4
