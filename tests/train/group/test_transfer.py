"""Tensors go from member to member, from nobody else, and no end of a peer is waited for."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import torch

from pliant.train.errors import GenerationLost
from pliant.train.group.transfer import Channels

PATIENCE_S = 30.0
KEY = b"the key of job-1"


@pytest.fixture(params=[False, True], ids=["in the clear", "encrypted"])
def encrypts(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def pair(encrypts: bool) -> Iterator[tuple[Channels, Channels]]:
    """Members on two hosts, as far as they know."""
    hosts = ("127.0.0.1", "127.0.0.2")
    first, second = (Channels(rank=rank, host=host, key=KEY, encrypts=encrypts) for rank, host in enumerate(hosts))
    for one in (first, second):
        one.set_peers([first.address, second.address])
    yield first, second
    first.close()
    second.close()


def start(action: Callable[[], None]) -> tuple[threading.Thread, list[str]]:
    """Run it in a thread; return that and, once it is over, what it was told of a loss."""
    told: list[str] = []

    def run() -> None:
        try:
            action()
        except GenerationLost as error:
            told.append(str(error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, told


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(7, dtype=torch.int64),
        torch.tensor(1.5),
        torch.zeros(0),
        torch.randn(3, 4, 5).bfloat16(),
        torch.arange(100_000_000 >> 3, dtype=torch.int64),
    ],
    ids=["int64", "of no dimension", "empty", "bfloat16", "100 MB"],
)
def test_what_is_sent_arrives_bit_for_bit(pair: tuple[Channels, Channels], tensor: torch.Tensor) -> None:
    arrived = torch.empty_like(tensor)
    thread, told = start(lambda: pair[0].send(tensor, 1))

    pair[1].receive(arrived, 0)

    thread.join(PATIENCE_S)
    assert torch.equal(arrived, tensor)
    assert told == []


def test_tensors_arrive_in_order_and_both_ways(pair: tuple[Channels, Channels]) -> None:
    def first() -> None:
        for number in range(20):
            pair[0].send(torch.tensor([number]), 1)
            pair[0].receive(echo := torch.zeros(1, dtype=torch.int64), 1)
            assert echo.item() == 10 * number

    thread, told = start(first)
    for number in range(20):
        pair[1].receive(came := torch.zeros(1, dtype=torch.int64), 0)
        assert came.item() == number
        pair[1].send(came * 10, 0)
    thread.join(PATIENCE_S)

    assert (told, thread.is_alive()) == ([], False)


@pytest.mark.parametrize("which", ["abort", "close"])
@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda one: one.receive(torch.ones(1), 1), id="receive"),
        pytest.param(lambda one: one.send(torch.ones(1 << 24), 1), id="send"),
    ],
)
def test_my_own_end_and_that_of_the_peer_end_a_transfer(
    pair: tuple[Channels, Channels], use: Callable[[Channels], None], which: str
) -> None:
    mine, theirs = pair
    thread, told = start(lambda: use(mine))
    thread.join(0.2)  # the condition is that it waits
    assert thread.is_alive()

    getattr(mine, which)()

    thread.join(PATIENCE_S)
    assert told == ["the coordinator gave this generation up"]
    thread, told = start(lambda: theirs.receive(torch.ones(1 << 20), 0))
    theirs.abort()
    thread.join(PATIENCE_S)
    assert len(told) == 1


def test_a_peer_that_goes_away_in_the_middle_is_noticed(pair: tuple[Channels, Channels]) -> None:
    thread, told = start(lambda: pair[0].send(torch.ones(1 << 24), 1))
    small, small_told = start(lambda: pair[1].receive(torch.ones(1), 0))
    small.join(PATIENCE_S)
    assert small_told == [f"member 0 is gone: it sent {4 << 24} bytes, not 4"]

    pair[1].close()

    thread.join(PATIENCE_S)
    assert len(told) == 1
    assert told[0].startswith("member 1 is gone: ")


HALF_A_CLIENT_HELLO = bytes.fromhex("16030100f8010000f40303")


@pytest.mark.parametrize(
    "hello",
    [b"", b"nonsense", bytes(20), HALF_A_CLIENT_HELLO],
    ids=["silence", "half a hello", "a wrong token", "half a hello of TLS"],
)
def test_a_stranger_can_put_nothing_into_a_training(pair: tuple[Channels, Channels], hello: bytes) -> None:
    host, port, *_ = json.loads(pair[1].address)
    with socket.create_connection((host, port)) as stranger:
        stranger.sendall(hello)
        stranger.shutdown(socket.SHUT_WR)
        arrived = torch.zeros(3)
        thread, told = start(lambda: pair[0].send(torch.ones(3), 1))
        pair[1].receive(arrived, 0)
        thread.join(PATIENCE_S)

    assert arrived.tolist() == [1.0, 1.0, 1.0]
    assert told == []


def test_strangers_that_stay_and_say_nothing_hold_no_transfer_up(pair: tuple[Channels, Channels]) -> None:
    host, port, *_ = json.loads(pair[1].address)
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(socket.create_connection((host, port)))
        began = time.monotonic()
        thread, told = start(lambda: pair[0].send(torch.ones(3), 1))
        pair[1].receive(arrived := torch.zeros(3), 0)
        took_s = time.monotonic() - began
        thread.join(PATIENCE_S)

    assert (arrived.tolist(), told) == ([1.0, 1.0, 1.0], [])
    assert took_s < 5.0, "a stranger is not waited for"


def test_a_task_of_another_job_sends_nothing_and_holds_nobody_up(
    pair: tuple[Channels, Channels], encrypts: bool
) -> None:
    other = Channels(rank=0, host="127.0.0.1", key=b"the key of job-2", encrypts=encrypts)
    other.set_peers([pair[0].address, pair[1].address])

    thread, told = start(lambda: other.send(torch.full((3,), 9.0), 1))
    thread.join(PATIENCE_S)
    sending, _ = start(lambda: pair[0].send(torch.ones(3), 1))
    pair[1].receive(arrived := torch.zeros(3), 0)
    sending.join(PATIENCE_S)
    other.close()

    assert told == ["member 1 is gone: it does not prove the job's key"]
    assert arrived.tolist() == [1.0, 1.0, 1.0]


def test_a_sender_that_means_an_earlier_attempt_is_refused(pair: tuple[Channels, Channels], encrypts: bool) -> None:
    host, port, _, *pin = json.loads(pair[1].address)
    late = Channels(rank=0, host="127.0.0.1", key=KEY, encrypts=encrypts)
    late.set_peers([pair[0].address, json.dumps([host, port, "of an earlier attempt", *pin])])

    thread, told = start(lambda: late.send(torch.ones(3), 1))
    thread.join(PATIENCE_S)
    late.close()

    assert told == ["member 1 is gone: it closed the connection"]
