"""A kernel that several gateways give requests, over their sockets."""

import itertools
import select
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.serve.runner.fake_gateway import FakeGateway, Heard
from tests.serve.runner.served import Function, echo, served, served_to, take_all

from pliant.serve.protocol.frames import MAX_PARTS_AHEAD, KernelFrameKind
from pliant.serve.runner import links
from pliant.serve.runner.request import BatchOfRequests, KernelResult

Kind = KernelFrameKind
WAIT_S = 30.0


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Steps:
    """A model that computes a batch whenever a test lets it, and writes down what was in it."""

    def __init__(self) -> None:
        self.batches: list[list[bytes]] = []
        self.began = threading.Semaphore(0)
        self.may_end = threading.Semaphore(0)
        self.model = Function(self._act)

    def _act(self, batch: BatchOfRequests) -> None:
        requests = take_all(batch)
        self.batches.append([request.body for request in requests])
        self.began.release()
        assert self.may_end.acquire(timeout=WAIT_S)
        batch.answer([(request, KernelResult(body=request.body)) for request in requests])

    def wait(self) -> None:
        """Return when the next batch has begun."""
        assert self.began.acquire(timeout=WAIT_S)

    def end(self, num: int = 1) -> None:
        """Let so many batches end."""
        for _ in range(num):
            self.may_end.release()


def large(batch: BatchOfRequests) -> None:
    """Answer with more than the buffers of a socket take, if that is asked for."""
    for request in take_all(batch):
        body = bytes(400_000) if request.body == b"large" else request.body
        batch.answer([(request, KernelResult(body=body))])


def bodies(heard: list[Heard]) -> list[bytes]:
    return [one.body for one in heard]


def test_a_batch_takes_requests_of_all_gateways_in_turns_and_each_gets_its_own_answers(tmp_path: Path) -> None:
    steps = Steps()
    with served_to(3, tmp_path, steps.model) as kernel:
        first, second, third = kernel.ready()
        (begun,) = first.ask("begun")
        steps.wait()
        a, b = first.ask("a0", "a1", "a2"), second.ask("b0", "b1")
        c = third.ask("c0")
        steps.end(2)
        heard = [first.answers(begun, *a), second.answers(*b), third.answers(*c)]

    assert [sorted(batch) for batch in (steps.batches[1][:3], steps.batches[1][3:5], steps.batches[1][5:])] == [
        [b"a0", b"b0", b"c0"],
        [b"a1", b"b1"],
        [b"a2"],
    ]
    assert [bodies(one) for one in heard] == [[b"begun", b"a0", b"a1", b"a2"], [b"b0", b"b1"], [b"c0"]]
    costs = [one.header["batch"] for all_of_one in heard for one in all_of_one if "batch" in one.header]
    assert sorted(costs) == [1, 6]


def test_one_request_does_not_wait_for_all_that_another_gateway_has_given(tmp_path: Path) -> None:
    steps = Steps()
    with served_to(2, tmp_path, steps.model) as kernel:
        (many, few) = (listener.accept(batch_size=1) for listener in kernel.listeners)
        many.ready()
        few.ready()
        of_many = many.ask(*["many"] * 9)
        steps.wait()
        of_few = few.ask("few")
        steps.end(10)
        few.answers(*of_few)
        many.answers(*of_many)

    assert steps.batches.index([b"few"]) <= 2


def test_the_requests_of_a_gateway_that_dies_are_dropped_and_the_others_answered_and_it_is_found_again(
    tmp_path: Path,
) -> None:
    steps = Steps()
    with served_to(2, tmp_path, steps.model) as kernel:
        dying, living = kernel.ready()
        dying.ask("a")
        steps.wait()
        dying.ask("b", "c")
        (number,) = living.ask("d")
        dying.close()
        steps.end()
        steps.wait()
        steps.end()
        assert bodies(living.answers(number)) == [b"d"]
        back = kernel.listeners[0].accept()
        back.ready()
        (number,) = back.ask("e")
        steps.wait()
        steps.end()
        assert bodies(back.answers(number)) == [b"e"]

    assert steps.batches == [[b"a"], [b"d"], [b"e"]]


def test_a_gateway_that_is_there_and_does_nothing_holds_nobody_up(tmp_path: Path) -> None:
    with served_to(2, tmp_path, Function(echo)) as kernel:
        stopped, other = (listener.accept() for listener in kernel.listeners)
        other.ready()
        assert bodies(other.exchange("a", "b")) == [b"a", b"b"]

        stopped.ready()  # it goes on
        assert bodies(stopped.exchange("c")) == [b"c"]


def test_a_gateway_that_takes_no_connection_holds_nobody_up(tmp_path: Path) -> None:
    with served_to(2, tmp_path, Function(echo)) as kernel:
        other = kernel.listeners[1].accept()
        other.ready()
        assert bodies(other.exchange("a")) == [b"a"]


def test_a_gateway_that_reads_nothing_is_lost_so_that_it_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "HELD_UP_S", 0.05)
    with served_to(2, tmp_path, Function(large)) as kernel:
        stopped, other = kernel.ready()
        stopped.ask(*["large"] * 8)
        assert bodies(other.exchange("a")) == [b"a"]

        back = kernel.listeners[0].accept()
        back.ready()
        assert bodies(back.exchange("b")) == [b"b"]


def test_the_only_gateway_may_read_as_late_as_it_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "HELD_UP_S", 0.01)
    with served(lambda session: session.serve(Function(large)), batch_size=1) as kernel:
        gateway = kernel.gateway
        gateway.ready()
        ids = gateway.ask(*["large"] * 8)
        assert not select.select([], [], [], 0.2)[0]  # far longer than a gateway that holds others up has
        heard = gateway.answers(*ids)

    assert [len(one.body) for one in heard] == [400_000] * 8


def test_a_gateway_that_the_others_know_of_is_connected_as_soon_as_it_is_there(tmp_path: Path) -> None:
    with served_to(1, tmp_path, Function(echo)) as kernel:
        first = kernel.listeners[0].accept()
        first.welcome(num_gateways=3)
        first.expect(Kind.READY)
        for number in (2, 1):
            later = kernel.open(number).accept()
            later.ready()
            assert bodies(later.exchange("a")) == [b"a"]
        assert bodies(first.exchange("b")) == [b"b"]


def test_after_a_restart_there_may_be_more_gateways_or_fewer(tmp_path: Path) -> None:
    with served_to(1, tmp_path, Function(echo)) as kernel:
        (alone,) = kernel.ready()
        kernel.listeners[0].close()
        second, first = kernel.open(1), kernel.open(0)
        assert alone.channel.fileno() == -1
        kernel.listeners = [first, second]
        for gateway in kernel.ready():
            assert bodies(gateway.exchange("a")) == [b"a"]
        for listener in (first, second):
            listener.close()
        again = kernel.open(0).accept()
        again.ready()
        assert bodies(again.exchange("b")) == [b"b"]


def test_each_gateway_is_handed_back_its_own_requests(tmp_path: Path) -> None:
    steps = Steps()
    with served_to(2, tmp_path, steps.model) as kernel:
        first, second = (listener.accept(batch_size=1) for listener in kernel.listeners)
        first.ready()
        second.ready()
        begun, *rest = first.ask("a", "b", "c")
        steps.wait()
        others = second.ask("d", "e")
        kernel.leave.ask()
        steps.end()
        frames = [first.receive() for _ in range(3)]
        drain, back = second.receive(), second.receive()

    said = {frame.kind: frame.header for frame in frames}
    assert said[Kind.RESULT]["id"] == begun
    assert said[Kind.RETURN]["ids"] == rest
    assert Kind.DRAIN in said
    assert (drain.kind, back.kind, back.header["ids"]) == (Kind.DRAIN, Kind.RETURN, others)
    assert steps.batches == [[b"a"]]


def test_a_gateway_that_does_nothing_does_not_keep_a_kernel_that_has_to_go(tmp_path: Path) -> None:
    with served_to(2, tmp_path, Function(echo)) as kernel:
        _, other = (listener.accept() for listener in kernel.listeners)
        other.ready()
        kernel.leave.ask()
        other.expect(Kind.DRAIN)
        assert other.is_closed()


# -- streams ----------------------------------------------------------------------------------------------------------


def counting(started: Callable[[bytes], None] = lambda _: None) -> Function:
    """A model whose answers in parts never end: the body of the request, and a number."""

    def parts(body: bytes) -> Iterator[KernelResult]:
        started(body)
        for number in itertools.count():
            yield KernelResult(body=body + b"%d" % number)

    def act(batch: BatchOfRequests) -> None:
        for request in take_all(batch):
            if request.takes_parts:
                batch.stream(request, parts(request.body))
            else:
                batch.answer([(request, KernelResult(body=request.body))])

    return Function(act)


def parts_of(gateway: FakeGateway, num: int) -> list[bytes]:
    return [bytes(gateway.expect(Kind.PART).body) for _ in range(num)]


def test_streams_of_two_gateways_with_one_number_do_not_mix(tmp_path: Path) -> None:
    with served_to(2, tmp_path, counting(), Clock()) as kernel:
        first, second = kernel.ready()
        assert first.ask("a", parts=True) == second.ask("b", parts=True) == [1]

        of_first, of_second = parts_of(first, MAX_PARTS_AHEAD), parts_of(second, MAX_PARTS_AHEAD)
        assert of_first == [b"a%d" % number for number in range(MAX_PARTS_AHEAD)]
        assert of_second == [b"b%d" % number for number in range(MAX_PARTS_AHEAD)]

        second.send(Kind.TAKEN, {"id": 1, "num": 2})
        assert parts_of(second, 2) == [b"b%d" % (MAX_PARTS_AHEAD + number) for number in range(2)]
        first.send(Kind.PING, {})
        assert first.receive().kind is Kind.PONG  # and no part of its stream

        second.send(Kind.CANCEL, {"ids": [1]})
        first.send(Kind.TAKEN, {"id": 1, "num": 1})
        assert parts_of(first, 1) == [b"a%d" % MAX_PARTS_AHEAD]
        second.send(Kind.TAKEN, {"id": 1, "num": 1})
        second.send(Kind.PING, {})
        assert second.receive().kind is Kind.PONG
        second.close()
        first.send(Kind.TAKEN, {"id": 1, "num": 1})
        assert parts_of(first, 1) == [b"a%d" % (MAX_PARTS_AHEAD + 1)]
        first.send(Kind.CANCEL, {"ids": [1]})


def test_a_request_of_one_gateway_is_not_cancelled_by_another(tmp_path: Path) -> None:
    steps = Steps()
    with served_to(2, tmp_path, steps.model) as kernel:
        first, second = kernel.ready()
        first.ask("begun")
        steps.wait()
        first.ask("a")
        second.ask("b", "c")
        second.send(Kind.CANCEL, {"ids": [2]})
        steps.end(2)
        assert bodies(first.answers(1, 2)) == [b"begun", b"a"]
        assert bodies(second.answers(1)) == [b"b"]

    assert sorted(steps.batches[1]) == [b"a", b"b"]


# -- PROGRESS ---------------------------------------------------------------------------------------------------------


def test_a_gateway_whose_requests_wait_for_a_batch_of_another_hears_that_the_kernel_works(tmp_path: Path) -> None:
    steps, clock = Steps(), Clock()
    with served_to(3, tmp_path, steps.model, clock) as kernel:
        first, second, idle = (listener.accept(batch_size=1) for listener in kernel.listeners)
        for gateway in (first, second, idle):
            gateway.ready()
        first.ask("a0", "a1")
        steps.wait()
        second.ask("b")
        clock.now += 1
        steps.end()
        second.expect(Kind.PROGRESS)  # b waited for a0
        first.expect(Kind.RESULT)
        steps.wait()
        clock.now += 1
        steps.end()
        second.expect(Kind.RESULT)
        first.expect(Kind.PROGRESS)  # a1 waited for b
        steps.wait()
        clock.now += 1
        steps.end()
        first.expect(Kind.RESULT)
        second.send(Kind.PING, {})
        second.expect(Kind.PONG)
        idle.send(Kind.PING, {})
        idle.expect(Kind.PONG)  # and nothing before it


@pytest.mark.parametrize("why", ["it was sent something just now", "its requests were cancelled", "it was answered"])
def test_a_gateway_does_not_hear_so_without_need(tmp_path: Path, why: str) -> None:
    steps, clock = Steps(), Clock()
    with served_to(2, tmp_path, steps.model, clock) as kernel:
        first, second = (listener.accept(batch_size=1) for listener in kernel.listeners)
        first.ready()
        second.ready()
        first.ask("a0")
        steps.wait()
        (number,) = second.ask("b")
        if why == "its requests were cancelled":
            second.send(Kind.CANCEL, {"ids": [number]})
            clock.now += 1
        elif why == "it was answered":
            second.ask("c")
            steps.end()
            first.expect(Kind.RESULT)
            steps.wait()
            clock.now += 1
        steps.end(3)
        second.send(Kind.PING, {})
        kinds = set[Kind]()
        while Kind.PONG not in kinds:
            kinds.add(second.receive().kind)

    assert Kind.PROGRESS not in kinds


def test_the_only_gateway_never_hears_so() -> None:
    done = threading.Event()

    def slow(batch: BatchOfRequests) -> None:
        done.wait(2 * 0.1)
        echo(batch)

    with served(lambda session: session.serve(Function(slow)), batch_size=1) as kernel:
        kernel.gateway.ready()
        kernel.gateway.exchange("a", "b", "c")
        assert set(kernel.gateway.log) == {"HELLO", "READY", "RESULT"}


def test_a_gateway_whose_requests_wait_for_parts_of_another_hears_that_the_kernel_works(tmp_path: Path) -> None:
    clock, took = Clock(), threading.Semaphore(0)

    def parts(_body: bytes) -> Iterator[KernelResult]:
        while True:
            assert took.acquire(timeout=WAIT_S)
            clock.now += 1
            yield KernelResult(body=b"x")

    def act(batch: BatchOfRequests) -> None:
        for request in take_all(batch):
            batch.stream(request, parts(request.body))

    with served_to(2, tmp_path, Function(act), clock) as kernel:
        first, second = kernel.ready()
        first.ask("a", "b", parts=True)
        took.release()
        first.expect(Kind.PART)
        second.ask("c", parts=True)
        took.release()
        took.release()
        second.expect(Kind.PROGRESS)
        for _ in range(3):
            took.release()
        while second.receive().kind is not Kind.PART:
            pass
        for gateway in (first, second):
            gateway.send(Kind.CANCEL, {"ids": [1, 2]})
        for _ in range(3):
            took.release()
