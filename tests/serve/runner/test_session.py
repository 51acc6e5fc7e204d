"""A kernel's conversation with its gateway, over a socket pair."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.serve.runner.fake_gateway import listening
from tests.serve.runner.served import Function, echo, served, serving, session_over, take_all

from pliant.serve.protocol.frames import KernelFrameKind
from pliant.serve.runner.channel import GatewayChannel
from pliant.serve.runner.connection import GatewayFinder
from pliant.serve.runner.errors import KernelBroken, NoGateway
from pliant.serve.runner.request import BatchOfRequests, KernelResult, failure
from pliant.serve.runner.session import KernelSession

Kind = KernelFrameKind


def begin_and_serve(session: KernelSession, model: Function) -> None:
    session.begin()
    session.serve(model)


def error_of(body: bytes) -> str:
    text = json.loads(body)["error"]
    assert isinstance(text, str)
    return text


def test_kernel_introduces_itself_and_says_what_it_serves() -> None:
    with served(lambda session: session.serve(Function(echo, max_batch_size=3))) as kernel:
        hello = kernel.gateway.welcome()
        ready = kernel.gateway.expect(Kind.READY).header

    assert hello == {"task": "job-1.1", "token": "secret"}
    assert ready["metadata"] == {"platform": "test", "inputs": [], "outputs": [], "max_batch_size": 3}


def test_kernel_says_hello_before_its_model_is_loaded() -> None:
    loaded = threading.Event()

    def load_and_serve(session: Any) -> None:
        assert loaded.wait(30)
        session.serve(Function(echo))

    with served(load_and_serve) as kernel:
        kernel.gateway.welcome()
        loaded.set()
        kernel.gateway.expect(Kind.READY)


def test_requests_that_are_there_are_one_batch_and_the_first_answer_says_what_it_cost() -> None:
    with serving(Function(echo), batch_size=3) as gateway:
        heard = gateway.exchange("a", "b", "c", "d")

    assert [one.body for one in heard] == [b"a", b"b", b"c", b"d"]
    assert [one.header.get("batch") for one in heard] == [3, None, None, 1]
    assert [one.header.get("busy_s", -1.0) >= 0 for one in heard] == [True, False, False, True]


def test_model_is_never_given_more_than_it_wants() -> None:
    with serving(Function(echo, max_batch_size=2), batch_size=8) as gateway:
        heard = gateway.exchange("a", "b", "c")

    assert [one.header.get("batch") for one in heard] == [2, None, 1]


def test_slow_model_gets_smaller_batches() -> None:
    done = threading.Event()

    def slow(batch: BatchOfRequests) -> None:
        requests = take_all(batch)
        done.wait(0.02 * len(requests))
        batch.answer([(request, KernelResult(body=b"1")) for request in requests])

    with serving(Function(slow), batch_size=8, latency_objective_s=0.04) as gateway:
        for _ in range(3):
            heard = gateway.exchange(*["x"] * 8)

    assert max(one.header.get("batch", 0) for one in heard) < 8


def test_settings_may_change_while_it_serves() -> None:
    with serving(Function(echo), batch_size=1) as gateway:
        first = gateway.exchange("a", "b")
        gateway.send(Kind.WELCOME, {"batch_size": 4, "latency_objective_s": "nonsense"})
        second = gateway.exchange("a", "b")

    assert [one.header.get("batch") for one in first + second] == [1, 1, 2, None]


def test_batch_that_is_open_takes_what_comes_meanwhile() -> None:
    taken, go_on = threading.Event(), threading.Event()

    def act(batch: BatchOfRequests) -> None:
        first = batch.take()
        taken.set()
        assert go_on.wait(30)
        requests = [first, *take_all(batch)]
        batch.answer([(request, KernelResult(body=b"%d" % len(requests))) for request in requests if request])

    with serving(Function(act)) as gateway:
        (first,) = gateway.ask("a")
        assert taken.wait(30)
        (second,) = gateway.ask("b")
        go_on.set()
        heard = gateway.answers(first, second)

    assert [one.body for one in heard] == [b"2", b"2"]


def test_ping_is_answered_between_batches() -> None:
    with serving(Function(echo)) as gateway:
        gateway.send(Kind.PING, {})
        gateway.expect(Kind.PONG)


def test_cancelled_and_expired_requests_are_not_computed() -> None:
    computed: list[bytes] = []
    go_on = threading.Event()

    def act(batch: BatchOfRequests) -> None:
        requests = take_all(batch)
        computed.extend(request.body for request in requests)
        assert go_on.wait(30)
        batch.answer([(request, KernelResult(body=b"1")) for request in requests])

    with serving(Function(act), batch_size=1) as gateway:
        first, second = gateway.ask("first", "cancelled")
        (third,) = gateway.ask("expired", timeout_s=0.0)
        (fourth,) = gateway.ask("fourth", timeout_s=60)
        gateway.send(Kind.CANCEL, {"ids": [second, 999]})
        go_on.set()
        heard = gateway.answers(first, third, fourth)

    assert [one.status for one in heard] == [200, 504, 200]
    assert computed == [b"first", b"fourth"]


def test_error_of_a_model_is_said_to_all_that_have_no_answer_and_the_kernel_survives(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def act(batch: BatchOfRequests) -> None:
        requests = take_all(batch)
        batch.answer([(requests[0], KernelResult(body=b"1"))])
        raise KeyError("no\nsuch\x00key \udcff")

    with serving(Function(act)) as gateway:
        heard = gateway.exchange("a", "b", "c") + gateway.exchange("d")

    assert [one.status for one in heard] == [200, 500, 500, 200]
    assert error_of(heard[1].body) == r"KeyError: 'no\nsuch\x00key \udcff'"
    assert 'raise KeyError("no' in capsys.readouterr().err


def test_kernel_that_fails_three_batches_in_a_row_hands_back_the_rest_and_ends() -> None:
    def act(batch: BatchOfRequests) -> None:
        batch.take()
        raise RuntimeError("CUDA error")

    with served(lambda session: session.serve(Function(act)), batch_size=1) as kernel:
        gateway = kernel.gateway
        gateway.ready()
        *failed, fourth = gateway.ask("a", "b", "c", "d")
        heard = gateway.answers(*failed)
        gateway.expect(Kind.DRAIN)
        returned = gateway.expect(Kind.RETURN).header["ids"]
        assert gateway.is_closed()

    assert [one.status for one in heard] == [500] * 3
    assert returned == [fourth]
    assert isinstance(kernel.error, KernelBroken)
    assert "3 batches in a row have failed, the last one with RuntimeError: CUDA error" in str(kernel.error)


def test_success_between_failures_keeps_a_kernel_alive() -> None:
    def act(batch: BatchOfRequests) -> None:
        for request in take_all(batch):
            if request.body == b"bad":
                raise RuntimeError("bad")
            batch.answer([(request, KernelResult(body=b"1"))])

    with serving(Function(act), batch_size=1) as gateway:
        heard = gateway.exchange(*["bad", "bad", "good"] * 3)

    assert [one.status for one in heard] == [500, 500, 200] * 3


def test_request_that_a_model_forgets_gets_an_error() -> None:
    def forget(batch: BatchOfRequests) -> None:
        take_all(batch)

    with serving(Function(forget)) as gateway:
        heard = gateway.exchange("a", "b") * 4

    assert {(one.status, error_of(one.body)) for one in heard} == {(500, "the kernel returned no output")}


def test_model_that_ends_the_process_answers_first() -> None:
    def act(batch: BatchOfRequests) -> None:
        batch.take()
        raise SystemExit(3)

    with served(lambda session: session.serve(Function(act)), batch_size=1) as kernel:
        gateway = kernel.gateway
        gateway.ready()
        first, second = gateway.ask("a", "b")
        (heard,) = gateway.answers(first)
        gateway.expect(Kind.DRAIN)
        assert gateway.expect(Kind.RETURN).header["ids"] == [second]

    assert (heard.status, error_of(heard.body)) == (500, "the kernel has ended itself: SystemExit: 3")
    assert isinstance(kernel.error, SystemExit)


def test_kernel_that_has_to_go_answers_what_it_has_begun_and_hands_back_the_rest() -> None:
    began, go_on = threading.Event(), threading.Event()

    def act(batch: BatchOfRequests) -> None:
        requests = [batch.take(), batch.take()]
        began.set()
        assert go_on.wait(30)
        assert batch.take() is None
        batch.answer([(request, KernelResult(body=b"1")) for request in requests if request])

    with served(lambda session: session.serve(Function(act))) as kernel:
        gateway = kernel.gateway
        gateway.ready()
        ids = gateway.ask("a", "b", "c", "d")
        assert began.wait(30)
        late = gateway.ask("e")
        kernel.leave.ask()
        go_on.set()
        frames = [gateway.receive() for _ in range(5)]

    assert [frame.kind for frame in frames].count(Kind.DRAIN) == 1
    assert [frame.header["id"] for frame in frames if frame.kind is Kind.RESULT] == ids[:2]
    returned = [number for frame in frames if frame.kind is Kind.RETURN for number in frame.header["ids"]]
    assert returned == [*ids[2:], *late]
    assert kernel.error is None


def test_idle_kernel_that_has_to_go_drains_and_closes() -> None:
    with served(lambda session: session.serve(Function(echo))) as kernel:
        kernel.gateway.ready()
        kernel.leave.ask()
        kernel.gateway.expect(Kind.DRAIN)
        assert kernel.gateway.is_closed()

    assert kernel.error is None


def test_gateway_that_comes_back_finds_the_model_loaded_and_gets_no_old_answers(tmp_path: Path) -> None:
    began, go_on = threading.Event(), threading.Event()

    def act(batch: BatchOfRequests) -> None:
        requests = take_all(batch)
        began.set()
        assert go_on.wait(30)
        batch.answer([(request, KernelResult(body=request.body)) for request in requests])

    with (
        listening(tmp_path) as listener,
        session_over(GatewayFinder(listener.path).connect) as (session, leave),
    ):
        thread = threading.Thread(target=begin_and_serve, args=(session, Function(act)), daemon=True)
        thread.start()
        old = listener.accept()
        old.ready()
        old.ask("old", "older")
        assert began.wait(30)
        old.close()
        go_on.set()
        new = listener.accept()
        metadata = new.ready()
        heard = new.exchange("new")
        leave.ask()
        new.expect(Kind.DRAIN)
        new.close()
        thread.join(30)

    assert metadata["platform"] == "test"
    assert [one.body for one in heard] == [b"new"]
    assert not thread.is_alive()


def test_kernel_waits_for_a_gateway_that_is_not_there_yet(tmp_path: Path) -> None:
    attempts: list[int] = []
    third = threading.Event()

    def connect(number: int) -> GatewayChannel:
        attempts.append(number)
        if attempts.count(0) == 3:
            third.set()
        return GatewayFinder(tmp_path / "gateway").connect(number)

    with session_over(connect) as (session, leave):
        thread = threading.Thread(target=begin_and_serve, args=(session, Function(echo)), daemon=True)
        thread.start()
        assert third.wait(30)
        with listening(tmp_path) as listener:
            gateway = listener.accept()
            gateway.ready()
            assert gateway.exchange("a")[0].body == b"a"
            leave.ask()
            gateway.close()
            thread.join(30)

    assert not thread.is_alive()


def test_kernel_gives_up_when_no_gateway_takes_it() -> None:
    def refuse(number: int) -> GatewayChannel:
        if number:
            raise FileNotFoundError("there is one gateway")
        raise ConnectionRefusedError("nobody listens")

    with session_over(refuse, patience_s=0.05) as (session, _):
        session.begin()
        with pytest.raises(NoGateway, match=r"for 0.05 s; the last attempt: ConnectionRefusedError: nobody listens"):
            session.serve(Function(echo))


@pytest.mark.parametrize("sent", [b"\xff" * 9, b"\0\0\0\x02\x11\0\0\0\x02{}", b"\0\0\0\x02\x01\0\0\0\x02{}"])
def test_gateway_that_sends_nonsense_is_left(sent: bytes) -> None:
    with served(lambda session: session.serve(Function(echo))) as kernel:
        kernel.gateway.ready()
        kernel.gateway.channel.sendall(sent)
        assert kernel.gateway.is_closed()


def test_path_of_the_socket_may_be_long(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 40)
    folder.mkdir()
    descriptor = Path(f"/proc/self/fd/{os.open(folder, 0)}")
    with listening(descriptor) as listener:
        channel = GatewayFinder(folder / "gateway").connect()
        gateway = listener.accept()
        channel.send(b"x")
        assert gateway.channel.recv(1) == b"x"
        channel.close()
        gateway.close()


def test_large_bodies_go_both_ways() -> None:
    with serving(Function(echo)) as gateway:
        body = bytes(range(256)) * (20 << 10)
        (number,) = gateway.ask(body)
        (heard,) = gateway.answers(number)

    assert heard.body == body


def test_failure_is_json() -> None:
    assert failure(400, "x").body == b'{"error": "x"}'
