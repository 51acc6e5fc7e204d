"""Answers in parts: routes and forms over HTTP, clients that read slowly or leave, time limits, and gRPC."""

import asyncio
import json
import socket
from functools import partial
from typing import Any

import pytest
from tests.serve.gateway.played import (
    PATIENCE_S,
    DirectCall,
    FakeKernel,
    Played,
    endpoint,
    in_loop,
    played,
    version,
)
from tests.serve.gateway.played_grpc import SERVICE, Spoken, infer_request, spoken
from tests.serve.gateway.test_wire import served

from pliant.core.serving import KernelHung
from pliant.serve.gateway import client_pace
from pliant.serve.protocol.frames import MAX_BYTES_AHEAD, MAX_PARTS_AHEAD, KernelFrame, KernelFrameKind
from pliant.serve.protocol.grpc import encode_message
from pliant.serve.protocol.grpc.messages import decode_message

Kind = KernelFrameKind
EVENTS = {"Accept": "text/event-stream"}
STREAM = "/v2/models/digits/generate_stream"
ASKED = (
    f"POST {STREAM} HTTP/1.1\r\nHost: a\r\nX-Auth-Token: ada\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{{}}"
).encode()


def part(kernel: FakeKernel, frame: KernelFrame, body: bytes = b"{}") -> None:
    kernel.send(Kind.PART, body, id=frame.header["id"])


@pytest.mark.parametrize(
    ("path", "accept", "api", "parts"),
    [
        ("/v2/models/digits/generate", "text/event-stream", "generate", None),
        ("/v2/models/digits/versions/1/generate_stream", "*/*", "generate", True),
        ("/v2/models/digits/infer", "*/*", "v2", None),
        ("/v2/models/digits/infer", "text/html, Text/Event-Stream;q=0.5", "v2", True),
        ("/dlim/v1/inference/digits", "application/x-ndjson", "dlim", True),
        ("/dlim/v1/inference/digits", "application/json", "dlim", None),
    ],
)
@in_loop
async def test_the_kernel_is_told_who_takes_parts(path: str, accept: str, api: str, parts: bool | None) -> None:
    async with played(endpoint(version())) as world:
        kernel = await world.kernel()
        posted = world.post(b"{}", path, Accept=accept)
        frame = await kernel.request()
        kernel.answer(frame)
        assert (await posted).status_code == 200
    assert (frame.header["api"], frame.header.get("parts")) == (api, parts)


@in_loop
async def test_an_answer_in_one_is_an_event_or_a_line_or_the_error_that_it_is() -> None:
    async with played(endpoint(version())) as world:
        kernel = await world.kernel()
        event = world.post(b"1", STREAM), world.post(b"2", Accept="application/x-ndjson")
        for _ in event:
            kernel.answer(await kernel.request(), b'{\n"y": 1}')
        assert [(await one).content for one in event] == [b'data: {\ndata: "y": 1}\n\n', b'{ "y": 1}\n']
        empty, failed = world.post(b"3", STREAM), world.post(b"4", STREAM)
        kernel.answer(await kernel.request(), b"")
        kernel.answer(await kernel.request(), b'{"error": "x is wrong"}', status=400)
        assert ((await empty).status_code, (await empty).content) == (200, b"")
        assert ((await failed).status_code, (await failed).json()) == (400, {"error": "x is wrong"})
        assert (await failed).headers["content-type"] == "application/json"
        binary, raw = world.post(b"5", STREAM), world.post(b"6", STREAM)
        kernel.answer(await kernel.request(), b"{}\0", json=2)
        kernel.answer(await kernel.request(), b"\xff", type="application/octet-stream")
        assert [(await one).status_code for one in (binary, raw)] == [400, 400]


@in_loop
async def test_an_error_in_the_middle_is_the_last_event() -> None:
    async with played(endpoint(version())) as world:
        kernel = await world.kernel()
        posted = world.post(b"1", STREAM)
        frame = await kernel.request()
        part(kernel, frame)
        kernel.answer(frame, b'{"error": "too hot"}', status=500)
        assert (await posted).text == 'data: {}\n\ndata: {"error": "too hot"}\n\n'
        (load,) = world.gateway.loads()
        assert (load.completed, load.failed) == (1, 1)


@in_loop
async def test_parts_for_who_has_asked_for_one_answer_are_refused() -> None:
    async with played(endpoint(version())) as world:
        kernel = await world.kernel()
        posted = world.post(b"1")
        frame = await kernel.request()
        part(kernel, frame)
        assert (await posted).status_code == 501
        assert (await kernel.take(Kind.CANCEL)).header["ids"] == [frame.header["id"]]


@in_loop
async def test_what_was_not_begun_goes_to_another_kernel_and_what_was_is_failed_and_not_repeated() -> None:
    async with played(endpoint(version())) as world:
        dying, other = await world.kernel("job-9.0"), await world.kernel("job-9.1")
        posts = [world.post(b"%d" % number, STREAM) for number in range(4)]
        begun, fresh = await dying.request(), await dying.request()
        held = [await other.request(), await other.request()]
        part(dying, begun)
        dying.close()
        for frame in held:
            other.answer(frame, b"{}")
        again = await other.request()
        other.answer(again, b"{}")
        texts = {int(one.request.content): one.text for one in [await post for post in posts]}

    assert bytes(again.body) == bytes(fresh.body)
    assert "ended in the middle" in texts.pop(int(bytes(begun.body)))
    assert set(texts.values()) == {"data: {}\n\n"}


@in_loop
async def test_a_stream_counts_once_for_the_token_as_long_as_it_lasts_and_its_latency_is_until_the_end() -> None:
    async with played(endpoint(version())) as world:
        kernel = await world.kernel()
        world.limit("one", max_concurrent=1)
        posted = world.post(b"1", STREAM, token="one")
        frame = await kernel.request()
        part(kernel, frame)
        refused = await world.post(b"2", STREAM, token="one")
        assert refused.status_code == 429
        world.now[0] += 3
        kernel.answer(frame, b"")
        assert (await posted).status_code == 200
        (load,) = world.gateway.loads()
        assert (load.completed, load.refused) == (1, 1)
        assert load.latency_s["p50"] == pytest.approx(3, rel=0.05)


@in_loop
async def test_a_stream_that_trickles_is_ended_and_its_kernel_is_not_blamed_between_parts() -> None:
    served_so = endpoint(version(), execution_timeout_s=5, stream_timeout_s=12)
    async with played(served_so) as world:
        kernel = await world.kernel()
        call = DirectCall(world, EVENTS)
        call.feed(b"{}")
        frame = await kernel.request()
        for num_sent in (2, 3, 4):
            part(kernel, frame)
            await world.until(partial(has_sent, call, num_sent))
            world.advance(4.0)
        part(kernel, frame)
        world.advance(1.0)
        await call.task
        assert b"was not whole after 12 s" in call.body
        assert (await kernel.take(Kind.CANCEL)).header["ids"] == [frame.header["id"]]
        await kernel.take(Kind.PING)
        assert world.notes[1:] == []

        for _ in range(3):  # nobody has asked for these: they are no sign that it computes what it should
            part(kernel, frame)
            world.advance(2.0)
        await world.until(lambda: any(isinstance(note, KernelHung) for note in world.notes))


@in_loop
async def test_a_kernel_that_computes_too_long_between_two_parts_is_replaced() -> None:
    async with played(endpoint(version(), execution_timeout_s=5)) as world:
        kernel = await world.kernel()
        call = DirectCall(world, EVENTS)
        call.feed(b"{}")
        part(kernel, await kernel.request())
        await world.until(lambda: len(call.sent) == 2)
        world.advance(6.0)
        await call.task
        assert b"has computed for more than 5 s" in call.body
        assert isinstance(world.notes[-1], KernelHung)


def has_sent(call: DirectCall, num: int) -> bool:
    return len(call.sent) == num


class Stuck(DirectCall):
    """A client that reads nothing until it is told to."""

    def __init__(self, world: Played) -> None:
        self.reads = asyncio.Event()
        super().__init__(world, EVENTS)

    async def _send(self, message: dict[str, Any]) -> None:
        await self.reads.wait()
        await super()._send(message)


@pytest.mark.parametrize(("size", "num"), [(0, MAX_PARTS_AHEAD), (MAX_BYTES_AHEAD // 8, 9)])
@in_loop
async def test_a_kernel_hears_that_parts_were_taken_only_when_the_client_reads_and_is_not_blamed_for_it(
    size: int, num: int
) -> None:
    async with played(endpoint(version(), execution_timeout_s=5)) as world:
        kernel = await world.kernel()
        call = Stuck(world)
        call.feed(b"{}")
        frame = await kernel.request()
        for _ in range(num):
            part(kernel, frame, bytes(size))
        other = world.post(b"other")
        kernel.answer(await kernel.request())
        assert (await other).content == b"other"
        world.advance(30.0)
        assert len(world.notes) == 1

        call.reads.set()
        taken = (await kernel.take(Kind.TAKEN)).header
        assert taken["id"] == frame.header["id"]
        assert 0 < taken["num"] <= num
        kernel.answer(frame, b"")
        await call.task
        assert call.body.count(b"data: ") == num


@in_loop
async def test_a_client_that_does_not_read_at_all_counts_as_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_pace, "READ_WITHIN_S", 0.05)
    async with played(endpoint(version())) as world:
        kernel = await world.kernel()
        call = Stuck(world)
        call.reads.set()
        call.feed(b"{}")
        frame = await kernel.request()
        part(kernel, frame)
        await world.until(lambda: len(call.sent) == 2)
        call.reads.clear()
        part(kernel, frame)
        assert (await kernel.take(Kind.CANCEL)).header["ids"] == [frame.header["id"]]
        await call.task
        assert call.sent[-1]["more_body"] is True
        assert world.load()[0] == 0


@in_loop
async def test_a_slow_reader_stops_the_kernel_by_the_socket_and_gets_every_part_when_it_reads() -> None:
    async with played(endpoint(version())) as world, served(world) as port:
        kernel = await world.kernel()
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 16)
        sock: socket.socket = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        writer.write(ASKED)
        frame = await kernel.request()
        num_sent, num_ahead, most = 0, 0, 60
        size = MAX_BYTES_AHEAD // 4

        async def send_on() -> None:  # as a kernel does: no further ahead than it may be
            nonlocal num_sent, num_ahead
            while num_sent < most:
                while num_ahead < 4 and num_sent < most:
                    part(kernel, frame, b"x" * size)
                    num_sent, num_ahead = num_sent + 1, num_ahead + 1
                if num_sent < most:
                    num_ahead -= (await kernel.take(Kind.TAKEN)).header["num"]
            kernel.answer(frame, b"")

        sending = world.spawn(send_on())
        await reader.readuntil(b"\r\n\r\n")
        assert world.gateway._admission.num_bytes < 4 * MAX_BYTES_AHEAD
        assert num_sent < most
        num_read = 0
        async with asyncio.timeout(PATIENCE_S):
            while data := await reader.read(1 << 16):
                num_read += data.count(b"x")
        await sending
        assert num_read == most * size
        writer.close()


@in_loop
async def test_a_client_that_hangs_up_in_the_middle_ends_its_stream() -> None:
    async with played(endpoint(version())) as world, served(world) as port:
        kernel = await world.kernel()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(ASKED)
        frame = await kernel.request()
        part(kernel, frame)
        async with asyncio.timeout(PATIENCE_S):
            await reader.readuntil(b"data: {}\n\n")
        writer.close()
        assert (await kernel.take(Kind.CANCEL)).header["ids"] == [frame.header["id"]]


@in_loop
async def test_a_stream_ends_at_the_deadline_of_its_client() -> None:
    async with played(endpoint(version())) as world:
        kernel = await world.kernel()
        posted = world.post(b"1", STREAM, X_Request_Timeout_S="5")
        frame = await kernel.request()
        assert frame.header["timeout_s"] == 5
        part(kernel, frame)
        await world.until(lambda: world.load() == (0, 1))
        world.advance(6.0)
        assert (await kernel.take(Kind.CANCEL)).header["ids"] == [frame.header["id"]]
        assert "no answer within the 5 s" in json.loads((await posted).text.split("data: ")[-1])["error"]


class Stream:
    """A call of `ModelStreamInfer`."""

    def __init__(self, said: Spoken) -> None:
        self.call = said.channel.stream_stream(f"{SERVICE}ModelStreamInfer")(
            metadata=(("authorization", "Bearer ada"),), timeout=PATIENCE_S
        )

    async def next(self) -> Any:
        return decode_message("ModelStreamInferResponse", await self.call.read())


@in_loop
async def test_requests_of_one_stream_over_grpc_are_answered_side_by_side_by_a_model_that_answers_in_parts() -> None:
    async with spoken(endpoint(version(), batch_size=4)) as said:
        kernel = await said.world.kernel(decoupled=True)
        config = await said.ask("ModelConfig", name="digits")
        assert config["config"]["model_transaction_policy"] == {"decoupled": True}
        stream = Stream(said)
        frames = {}
        for name in ("long", "short", "none"):
            await stream.call.write(infer_request(id=name))
            frames[name] = await kernel.request()
            assert frames[name].header["parts"] is True

        def send(name: str) -> None:
            part(kernel, frames[name], encode_message("ModelInferResponse", {"id": name}))

        send("long")
        assert (await stream.next())["infer_response"]["id"] == "long"
        kernel.answer(frames["none"], b"")
        send("short")
        assert (await stream.next())["infer_response"]["id"] == "short"
        kernel.answer(frames["short"], b'{"error": "broken"}', status=500)
        failed = await stream.next()
        assert (failed["error_message"], failed["infer_response"]["id"]) == ("broken", "short")
        send("long")
        assert (await stream.next())["infer_response"]["id"] == "long"
        stream.call.cancel()
        cancelled = await kernel.take(Kind.CANCEL)
        assert cancelled.header["ids"] == [frames["long"].header["id"]]


@in_loop
async def test_a_stream_over_grpc_whose_client_does_not_read_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_pace, "READ_WITHIN_S", 0.2)
    async with spoken(endpoint(version())) as said:
        kernel = await said.world.kernel(decoupled=True)
        stream = Stream(said)
        await stream.call.write(infer_request(id="a"))
        frame = await kernel.request()
        for _ in range(30):
            part(kernel, frame, encode_message("ModelInferResponse", {"id": "x" * 1_000_000}))
        while (heard := await kernel.next()) is not None and heard.kind is not Kind.CANCEL:
            assert heard.kind is Kind.TAKEN
        assert heard is not None
        assert heard.header["ids"] == [frame.header["id"]]
        stream.call.cancel()
