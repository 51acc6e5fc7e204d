"""Answers in parts: in turns, no faster than they are taken, and stopped when nobody waits."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.serve.runner.calls import answer_of, call
from tests.serve.runner.fake_gateway import FakeGateway
from tests.serve.runner.folders import deployed, own_process_state
from tests.serve.runner.served import Batch, Function, a_request, served, serving, take_all

from pliant.serve.protocol.frames import MAX_BYTES_AHEAD, MAX_PARTS_AHEAD, KernelFrame, KernelFrameKind
from pliant.serve.runner.errors import KernelBroken
from pliant.serve.runner.failures import FailuresInRow
from pliant.serve.runner.python_class import PythonModel, load
from pliant.serve.runner.request import BatchOfRequests, KernelRequest, KernelResult
from pliant.serve.runner.streams import PartStreams

Kind = KernelFrameKind
WAIT_S = 30.0


@pytest.fixture(autouse=True)
def _own_process_state() -> Iterator[None]:
    with own_process_state():
        yield


def results(parts: Iterator[bytes]) -> Iterator[KernelResult]:
    with closing(parts):  # type: ignore[type-var]
        for part in parts:
            yield KernelResult(body=part)


def streaming(parts_of: Callable[[bytes], Iterator[bytes]]) -> Function:
    """A model that answers in parts whoever takes them, and others with their own body."""

    def act(batch: BatchOfRequests) -> None:
        for request in take_all(batch):
            if request.takes_parts:
                batch.stream(request, results(parts_of(request.body)))
            else:
                batch.answer([(request, KernelResult(body=request.body))])

    return Function(act)


def whole(gateway: FakeGateway, number: int) -> tuple[list[bytes], KernelFrame]:
    """Return the parts of an answer, taken one by one, and its end."""
    parts = []
    while (frame := gateway.receive()).kind is Kind.PART:
        assert frame.header["id"] == number
        parts.append(bytes(frame.body))
        gateway.send(Kind.TAKEN, {"id": number, "num": 1})
    assert (frame.kind, frame.header["id"]) == (Kind.RESULT, number)
    return parts, frame


def python(folder: Path, text: str) -> PythonModel:
    return load(deployed(folder, "serve.py", f"import numpy as np\nclass Model:\n{text}"))


COUNT = "    def stream(self, one):\n        for n in range(one): yield {'n': n}\n"


def test_parts_come_as_they_are_yielded_and_then_the_end_with_what_they_cost(tmp_path: Path) -> None:
    with serving(python(tmp_path, COUNT)) as gateway:
        (number,) = gateway.ask("3", parts=True)
        parts, end = whole(gateway, number)

    assert [json.loads(part) for part in parts] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert (end.header["status"], bytes(end.body), end.header["batch"]) == (200, b"", 1)
    assert end.header["busy_s"] >= 0


def test_a_part_leaves_before_the_next_one_is_computed() -> None:
    go_on = threading.Event()

    def parts(_body: bytes) -> Iterator[bytes]:
        yield b"first"
        assert go_on.wait(WAIT_S)
        yield b"second"

    with serving(streaming(parts)) as gateway:
        gateway.ask("", parts=True)
        assert bytes(gateway.expect(Kind.PART).body) == b"first"
        go_on.set()
        assert bytes(gateway.expect(Kind.PART).body) == b"second"
        gateway.expect(Kind.RESULT)


def test_streams_go_on_in_turns_and_requests_are_answered_between_them() -> None:
    turns = threading.Semaphore(0)

    def parts(body: bytes) -> Iterator[bytes]:
        for number in range(3):
            assert turns.acquire(timeout=WAIT_S)
            yield body + b"%d" % number

    with serving(streaming(parts)) as gateway:
        gateway.ask("a", "b", parts=True)
        gateway.ask("alone")
        for _ in range(6):
            turns.release()
        frames = [gateway.receive() for _ in range(9)]

    sent = [bytes(frame.body).decode() for frame in frames if frame.kind is Kind.PART]
    assert sent == ["a0", "b0", "a1", "b1", "a2", "b2"]
    alone = next(at for at, frame in enumerate(frames) if frame.body == b"alone")
    assert alone <= 4


@pytest.mark.parametrize(("size", "num"), [(0, MAX_PARTS_AHEAD), (MAX_BYTES_AHEAD // 4, 4), (MAX_BYTES_AHEAD, 1)])
def test_a_stream_waits_for_its_client_and_others_do_not_wait_for_it(size: int, num: int) -> None:
    computed: list[int] = []

    def parts(_body: bytes) -> Iterator[bytes]:
        for number in range(num + 1):
            computed.append(number)
            yield bytes(size)

    with serving(streaming(parts)) as gateway:
        (number,) = gateway.ask("", parts=True)
        for _ in range(num):
            gateway.expect(Kind.PART)
        assert [one.body for one in gateway.exchange("other")] == [b"other"]
        assert len(computed) == num
        gateway.send(Kind.TAKEN, {"id": number, "num": num})
        parts_left, _ = whole(gateway, number)
    assert parts_left == [bytes(size)]


def endless(closed: threading.Event) -> Callable[[bytes], Iterator[bytes]]:
    """Return a model whose answers never end by themselves; it says when one is closed."""

    def parts(_body: bytes) -> Iterator[bytes]:
        try:
            while True:
                yield b"x"
        finally:
            closed.set()

    return parts


def test_a_cancelled_stream_is_closed_at_its_next_part_and_not_answered() -> None:
    closed = threading.Event()
    with serving(streaming(endless(closed))) as gateway:
        (number,) = gateway.ask("", parts=True)
        gateway.expect(Kind.PART)
        gateway.send(Kind.CANCEL, {"ids": [number]})
        assert closed.wait(WAIT_S)
        gateway.send(Kind.PING, {})
        while (frame := gateway.receive()).kind is Kind.PART:
            pass
        assert frame.kind is Kind.PONG


def test_the_generator_of_a_class_is_closed_with_its_stream(tmp_path: Path) -> None:
    text = (
        "    def stream(self, one):\n        try:\n            while True: yield one\n"
        "        finally: open(one, 'w').close()\n"
    )
    request = a_request(body=json.dumps(str(tmp_path / "closed")).encode(), takes_parts=True)
    batch = Batch.of(request)
    python(tmp_path, text).serve(batch)
    parts: Any = batch.streams[request.id]
    next(parts)
    assert not (tmp_path / "closed").exists()

    parts.close()

    assert (tmp_path / "closed").exists()


def test_a_stream_that_cannot_be_closed_hurts_nobody() -> None:
    def parts(_body: bytes) -> Iterator[bytes]:
        try:
            while True:
                yield b"one"
        finally:
            raise OSError("no")

    with serving(streaming(parts)) as gateway:
        (number,) = gateway.ask("", parts=True)
        gateway.expect(Kind.PART)
        gateway.send(Kind.CANCEL, {"ids": [number]})
        (other,) = gateway.ask("x")
        while (frame := gateway.receive()).kind is Kind.PART:
            pass
    assert (frame.header["id"], bytes(frame.body)) == (other, b"x")


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [("ValueError('too long')", 400, "too long"), ("KeyError('x')", 500, "KeyError: 'x'")],
)
def test_an_error_in_the_middle_is_the_end(tmp_path: Path, error: str, status: int, message: str) -> None:
    text = f"    def stream(self, one):\n        yield 1\n        raise {error}\n"
    with serving(python(tmp_path, text)) as gateway:
        (number,) = gateway.ask("1", parts=True)
        parts, end = whole(gateway, number)

    assert parts == [b"1"]
    assert (end.header["status"], json.loads(bytes(end.body))) == (status, {"error": message})


def test_a_kernel_whose_streams_fail_one_after_the_other_ends(tmp_path: Path) -> None:
    model = python(tmp_path, "    def stream(self, one):\n        raise KeyError(one)\n        yield\n")
    with served(lambda session: session.serve(model)) as kernel:
        kernel.gateway.ready()
        ids = kernel.gateway.ask("1", "2", "3", parts=True)
        assert [one.status for one in kernel.gateway.answers(*ids)] == [500] * 3
        kernel.gateway.expect(Kind.DRAIN)
        assert kernel.gateway.is_closed()
    assert isinstance(kernel.error, KernelBroken)


def test_what_is_no_stream_is_said(tmp_path: Path) -> None:
    for body, name in (("1", "int"), ('"text"', "str"), ("{}", "dict")):
        with serving(python(tmp_path, "    def stream(self, one): return one\n")) as gateway:
            (number,) = gateway.ask(body, parts=True)
            _, end = whole(gateway, number)
        assert f"stream returned {name}" in json.loads(bytes(end.body))["error"]


def test_who_takes_no_parts_gets_the_answer_of_predict_or_the_only_part(tmp_path: Path) -> None:
    both = "    def predict(self, batch): return ['whole' for _ in batch]\n" + COUNT
    with serving(python(tmp_path, both)) as gateway:
        (whole_one,) = gateway.exchange("3")
    with serving(python(tmp_path, COUNT)) as gateway:
        none, one, three = (gateway.exchange(text)[0] for text in ("0", "1", "3"))

    assert whole_one.body == b'"whole"'
    assert (one.status, json.loads(one.body)) == (200, {"n": 0})
    assert three.status == 400
    assert "/generate_stream" in json.loads(three.body)["error"]
    assert none.status == 500
    assert "gave no answer" in json.loads(none.body)["error"]


def test_a_model_without_streams_answers_who_takes_parts_in_one(tmp_path: Path) -> None:
    with serving(python(tmp_path, "    def predict(self, batch): return batch\n")) as gateway:
        (answer,) = gateway.exchange("5", parts=True)
    assert answer.body == b"5"


def test_a_model_that_answers_in_parts_says_so(tmp_path: Path) -> None:
    assert python(tmp_path, COUNT).metadata.to_json()["decoupled"] is True


def test_parts_are_tensors_over_the_open_inference_protocol_by_json_and_grpc(tmp_path: Path) -> None:
    text = "    def stream(self, one):\n        for x in one['x']: yield {'y': np.array([x])}\n"
    asked = {"id": "7", "inputs": [{"name": "x", "datatype": "INT64", "shape": [2], "data": [4, 5]}]}
    with serving(python(tmp_path, text)) as gateway:
        (number,) = gateway.ask(json.dumps(asked), api="v2", parts=True)
        parts, _ = whole(gateway, number)
        (number,) = gateway.ask(call([4, 5]), api="grpc", parts=True)
        raw, _ = whole(gateway, number)

    said = [json.loads(part) for part in parts]
    assert [(one["id"], one["outputs"][0]["data"]) for one in said] == [("7", [4]), ("7", [5])]
    assert [answer_of(part) for part in raw] == [{"y": [4]}, {"y": [5]}]


def test_bytes_among_parts_over_http_are_an_error_that_names_grpc(tmp_path: Path) -> None:
    text = "    def stream(self, one):\n        yield 1\n        yield b'\\0'\n"
    with serving(python(tmp_path, text)) as gateway:
        (number,) = gateway.ask("1", parts=True)
        parts, end = whole(gateway, number)
    assert (len(parts), end.header["status"]) == (1, 400)
    assert "over gRPC" in json.loads(bytes(end.body))["error"]


def test_a_kernel_that_has_to_go_ends_what_has_begun_and_hands_the_rest_back() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def parts(body: bytes) -> Iterator[bytes]:
        yield body
        begun.set()
        assert go_on.wait(WAIT_S)
        yield body

    with served(lambda session: session.serve(streaming(parts)), batch_size=1) as kernel:
        gateway = kernel.gateway
        gateway.ready()
        (first,) = gateway.ask("a", parts=True)
        gateway.expect(Kind.PART)
        assert begun.wait(WAIT_S)
        (second,) = gateway.ask("b", parts=True)
        kernel.leave.ask()
        go_on.set()
        frames = [gateway.receive() for _ in range(4)]

    assert [(frame.kind, frame.header.get("ids", frame.header.get("id"))) for frame in frames] == [
        (Kind.PART, first),
        (Kind.DRAIN, None),
        (Kind.RETURN, [second]),
        (Kind.RESULT, first),
    ]


def test_streams_end_with_the_connection_that_they_came_by() -> None:
    closed = threading.Event()
    with served(lambda session: session.serve(streaming(endless(closed)))) as kernel:
        kernel.gateway.ready()
        kernel.gateway.ask("", parts=True)
        kernel.gateway.expect(Kind.PART)
        kernel.gateway.close()
        assert closed.wait(WAIT_S)


class Sent:
    """What streams have sent."""

    def __init__(self) -> None:
        self.ahead: dict[int, list[int]] = {}
        self.ended: list[int] = []

    def __call__(self, request: KernelRequest, _header: dict[str, Any], body: bytes, kind: Kind) -> None:
        assert request.id not in self.ended
        if kind is Kind.PART:
            self.ahead.setdefault(request.id, []).append(len(body))
        else:
            self.ended.append(request.id)


@given(st.data())
def test_every_stream_ends_once_and_none_is_further_ahead_than_it_may_be(data: st.DataObject) -> None:
    sent = Sent()
    streams = PartStreams(sent, FailuresInRow(lambda: 0.0), lambda: 0.0)
    sizes = st.lists(st.sampled_from([0, 1, MAX_BYTES_AHEAD // 3, MAX_BYTES_AHEAD]), max_size=80)
    num_added, gone = 0, set[int]()
    acts = st.sampled_from(["add", "turn", "turn", "turn", "take", "cancel", "back"])
    for act in data.draw(st.lists(acts, max_size=60)):
        under_way = list(range(num_added))
        if act == "add":
            parts = [KernelResult(body=bytes(size)) for size in data.draw(sizes)]
            streams.add(a_request(num_added, takes_parts=True), iter(parts))
            num_added += 1
        elif act == "turn":
            for number in streams.turn():
                streams.step(number)
        elif act == "back":
            gone |= set(streams.give_back())
        elif under_way:
            number = data.draw(st.sampled_from(under_way))
            if act == "take":
                streams.take_note(number, 1)
                sent.ahead[number] = sent.ahead.get(number, [])[1:]
            elif number not in sent.ended:
                streams.cancel([number])
                gone.add(number)
        for number, ahead in sent.ahead.items():
            assert len(ahead) <= MAX_PARTS_AHEAD, number
            assert sum(ahead[:-1]) < MAX_BYTES_AHEAD
    for _ in range(200):
        for number in streams.turn():
            streams.step(number)
        for number in range(num_added):
            streams.take_note(number, MAX_PARTS_AHEAD)
    assert not len(streams)
    assert set(sent.ended) | gone == set(range(num_added))
    assert not set(sent.ended) & gone


def test_nonsense_about_what_was_taken_is_passed_over() -> None:
    streams = PartStreams(Sent(), FailuresInRow(lambda: 0.0), lambda: 0.0)
    streams.add(a_request(1, takes_parts=True), iter([KernelResult(body=b"x")]))
    nonsense: tuple[tuple[Any, Any], ...] = ((1, 10**12), (1, -1), (1, "x"), (None, 1), ([], 1), (2, 1))
    for number, num in nonsense:
        streams.take_note(number, num)
    assert streams.turn() == [1]
