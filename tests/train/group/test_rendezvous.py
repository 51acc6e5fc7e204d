"""Members find each other, and what is gone is noticed."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from pliant.train.errors import GenerationLost, TrainingError
from pliant.train.group.handshake import PeerName
from pliant.train.group.rendezvous import RendezvousServer
from pliant.train.group.rendezvous_client import RendezvousClient

KEY = b"the key of job-1"
NAME = PeerName(group="g1", member="0")
PROMPT_S = 5.0
"""Generous for a busy machine; what it replaces took 20 s and more."""


@pytest.fixture
def rendezvous() -> Iterator[RendezvousServer]:
    made = RendezvousServer("127.0.0.1", key=KEY)
    yield made
    made.close()


def connect(
    at: RendezvousServer,
    *,
    name: PeerName = NAME,
    timeout_s: float = 30.0,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> RendezvousClient:
    return RendezvousClient((at.host, at.port), key=KEY, name=name, timeout_s=timeout_s, is_cancelled=is_cancelled)


def lost_in(action: Callable[[], object]) -> tuple[str, float]:
    """Return the message of the loss, and how long it took."""
    began = time.monotonic()
    with pytest.raises(GenerationLost) as lost:
        action()
    return str(lost.value), time.monotonic() - began


def in_thread(action: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    results: list[object] = []

    def run() -> None:
        try:
            results.append(action())
        except GenerationLost as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, results


def test_a_value_is_waited_for_until_somebody_sets_it(rendezvous: RendezvousServer) -> None:
    with (
        connect(rendezvous) as first,
        connect(rendezvous) as second,
        connect(rendezvous, name=PeerName(group="g2", member="0")) as other,
    ):
        other.set("b", b"of another generation")
        second.set("a", b"\x00\xff" * 1000)
        thread, results = in_thread(lambda: first.get("a", "b"))
        second.set("b", b"")
        thread.join(PROMPT_S)

        assert results == [[b"\x00\xff" * 1000, b""]]


def test_an_answer_that_does_not_fit_into_the_connection_at_once_comes_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The addresses of a few hundred members are more than a network takes at once."""

    def narrow(host: str) -> socket.socket:
        listener = socket.create_server((host, 0))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 14)  # those that it accepts have it, too
        return listener

    monkeypatch.setattr("pliant.train.group.rendezvous._listen", narrow)
    keys = [f"member {number}" for number in range(40)]
    rendezvous = RendezvousServer("127.0.0.1", key=KEY)
    with connect(rendezvous) as waiting, connect(rendezvous) as client:
        thread, results = in_thread(lambda: waiting.get(*keys))
        for number, key in enumerate(keys):
            client.set(key, bytes([number]) * 25_000)
        results.append(client.get(*keys))
        thread.join(30)

        assert results == [[bytes([number]) * 25_000 for number in range(40)]] * 2
    rendezvous.close()


def test_a_rendezvous_that_nobody_listens_at_is_an_error_at_once() -> None:
    gone = RendezvousServer("127.0.0.1", key=KEY)
    gone.close()

    message, took_s = lost_in(lambda: connect(gone))

    assert message == f"the rendezvous at 127.0.0.1:{gone.port} is gone: Connection refused"
    assert took_s < PROMPT_S


def test_a_rendezvous_of_another_job_is_told_from_ones_own(rendezvous: RendezvousServer) -> None:
    address = (rendezvous.host, rendezvous.port)

    message, took_s = lost_in(
        lambda: RendezvousClient(address, key=b"of job-2", name=NAME, timeout_s=30, is_cancelled=lambda: False)
    )

    assert f"what listens at 127.0.0.1:{rendezvous.port} is not the rendezvous of this job" in message
    assert took_s < PROMPT_S


def test_who_waits_notices_that_the_rendezvous_ends(rendezvous: RendezvousServer) -> None:
    with connect(rendezvous) as client:
        client.set("a", b"1")
        assert client.get("a") == [b"1"]  # it is connected now, and not only in the kernel's queue
        thread, results = in_thread(lambda: client.get("never"))
        rendezvous.close()
        thread.join(PROMPT_S)

        assert [str(result) for result in results] == [
            f"the rendezvous at 127.0.0.1:{rendezvous.port} is gone: it closed the connection"
        ]


def test_one_that_is_forgotten_stops_listening() -> None:
    forgotten = RendezvousServer("127.0.0.1", key=KEY)
    port = forgotten.port
    thread = next(t for t in threading.enumerate() if t.name == f"pliant-rendezvous-{port}")

    del forgotten

    thread.join(PROMPT_S)
    assert not thread.is_alive()


def test_one_that_listens_and_says_nothing_is_given_up_when_the_generation_is() -> None:
    is_cancelled = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = silent.getsockname()
        thread, results = in_thread(
            lambda: RendezvousClient(address, key=KEY, name=NAME, timeout_s=60, is_cancelled=is_cancelled.is_set)
        )
        is_cancelled.set()
        thread.join(PROMPT_S)

    assert [str(result) for result in results] == ["the coordinator gave this generation up"]


def test_a_member_that_does_not_come_is_told_with_the_address_and_what_to_check(rendezvous: RendezvousServer) -> None:
    with connect(rendezvous, timeout_s=0.2) as client:
        message, _ = lost_in(lambda: client.get("a"))

    assert "did not come to it within 0.2 s" in message
    assert f"127.0.0.1:{rendezvous.port}" in message
    assert "PLIANT_HOST" in message


def test_what_a_failed_try_set_is_forgotten_and_what_a_successful_one_set_is_kept(rendezvous: RendezvousServer) -> None:
    with connect(rendezvous) as client:
        client.set("kept", b"1")
    with contextlib.suppress(ConnectionError), connect(rendezvous) as client:
        client.set("forgotten", b"2")
        raise ConnectionError
    with connect(rendezvous) as client:
        assert client.get("kept") == [b"1"]
    with connect(rendezvous, timeout_s=0.3) as client:
        message, _ = lost_in(lambda: client.get("forgotten"))
    assert "did not come" in message


@pytest.mark.parametrize(
    "nonsense",
    [
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff" * 64,
        b"\x00\x00\x00\x08\x00\x00\x00\x04what",
        b"\x00\x00\x00\x02\x00\x00",
    ],
    ids=["nothing", "HTTP", "a huge frame", "an unknown request", "half a length"],
)
def test_strangers_that_knock_disturb_nobody(rendezvous: RendezvousServer, nonsense: bytes) -> None:
    with socket.create_connection((rendezvous.host, rendezvous.port), timeout=PROMPT_S) as stranger:
        stranger.sendall(nonsense)
        with connect(rendezvous) as client:
            client.set("a", b"1")
            assert client.get("a") == [b"1"]


def test_the_address_of_another_machine_cannot_be_listened_at() -> None:
    with pytest.raises(
        TrainingError, match=r"cannot listen at 192\.0\.2\.7: this machine has no such address.*PLIANT_HOST"
    ):
        RendezvousServer("192.0.2.7", key=KEY)


def test_a_name_that_means_nothing_cannot_be_listened_at() -> None:
    with pytest.raises(TrainingError, match=r"cannot listen at no host at all: .*PLIANT_HOST"):
        RendezvousServer("no host at all", key=KEY)
