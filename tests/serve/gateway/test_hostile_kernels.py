"""Kernels run people's code: what they send, and what they do not read, harms nobody but their own endpoint."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.serve.gateway.played import (
    METADATA,
    DirectCall,
    FakeKernel,
    Played,
    endpoint,
    in_loop,
    played,
    version,
)

from pliant.core.job import TaskId
from pliant.core.serving import KernelReady
from pliant.serve.gateway import endpoint_table, kernel_link
from pliant.serve.gateway.admission import Admission
from pliant.serve.gateway.gateway_share import GatewayShare
from pliant.serve.gateway.kernel_link import MAX_UNASKED
from pliant.serve.gateway.kernel_listener import HELLO_WITHIN_S
from pliant.serve.gateway.link_memory import LinkMemory
from pliant.serve.protocol.frames import MAX_ANSWER_BYTES, MAX_HELLO_BYTES, KernelFrameKind, encode_frame, encode_head


async def is_cut(kernel: FakeKernel) -> None:
    """Wait until a kernel was cut off, whatever it was given before."""
    while await kernel.next() is not None:
        pass


async def answers(world: Played, kernel: FakeKernel) -> None:
    """Show that an endpoint still answers by this kernel."""
    posted = world.post(b"still here")
    kernel.answer(await kernel.request())
    assert (await posted).content == b"still here"


@pytest.mark.parametrize(
    ("kind", "header", "num_bytes"),
    [
        (KernelFrameKind.RESULT, {"id": 1}, MAX_ANSWER_BYTES),
        (KernelFrameKind.RESULT, {"id": 1}, (1 << 31) - 100),
        (KernelFrameKind.READY, {}, 1),
        (KernelFrameKind.DRAIN, {}, 100),
        (KernelFrameKind.REQUEST, {"id": 1, "api": "v2"}, 0),
        (KernelFrameKind.WELCOME, {}, 0),
        (KernelFrameKind.RETURN, {"ids": [1]}, 0),
        (KernelFrameKind.RETURN, {"ids": "all"}, 0),
        (KernelFrameKind.RESULT, {"id": "1"}, 0),
    ],
)
@in_loop
async def test_a_frame_that_no_kernel_sends_cuts_it_off_before_its_body_has_come(
    kind: KernelFrameKind, header: dict[str, Any], num_bytes: int
) -> None:
    async with played(endpoint(version())) as world:
        mad, other = await world.kernel("job-9.0"), await world.kernel("job-9.1")
        mad.write(encode_head(kind, header, num_bytes))
        await is_cut(mad)

        await answers(world, other)


@in_loop
async def test_a_stranger_may_send_a_short_frame_and_no_more() -> None:
    async with played(endpoint(version())) as world:
        stranger = await world.connect()
        stranger.write(encode_head(KernelFrameKind.HELLO, {"task": "job-9.0", "token": "x" * MAX_HELLO_BYTES}, 0)[:9])

        await is_cut(stranger)


def num_unasked(world: Played) -> int:
    """Return how many frames of the first kernel nobody has asked for."""
    (service,) = world.gateway._table
    return service.versions[1].links[TaskId("job-9.0")]._num_unasked


async def _answer_unknown(kernel: FakeKernel) -> None:
    kernel.send(KernelFrameKind.RESULT, b"x", id=77, status=200)


async def _part_unknown(kernel: FakeKernel) -> None:
    kernel.send(KernelFrameKind.PART, b"x", id=77)


async def _pong(kernel: FakeKernel) -> None:
    kernel.send(KernelFrameKind.PONG)


async def _ready(kernel: FakeKernel) -> None:
    kernel.send(KernelFrameKind.READY, metadata={"platform": "another"})


async def _progress(kernel: FakeKernel) -> None:
    kernel.send(KernelFrameKind.PROGRESS)


@pytest.mark.parametrize("num_gateways", [1, 2])
@pytest.mark.parametrize("send", [_answer_unknown, _part_unknown, _pong, _ready, _progress])
@in_loop
async def test_what_nobody_has_asked_for_is_passed_over_a_thousand_times(
    send: Callable[[FakeKernel], Awaitable[None]], num_gateways: int
) -> None:
    async with played(endpoint(version()), share=GatewayShare(of=num_gateways)) as world:
        mad, other = await world.kernel("job-9.0"), await world.kernel("job-9.1")
        for _ in range(MAX_UNASKED):
            await send(mad)
        await world.until(lambda: num_unasked(world) == MAX_UNASKED)
        posted = [world.post(b"a"), world.post(b"b")]
        other.answer(await other.request())
        mad.answer(await mad.request())
        assert sorted([(await one).content for one in posted]) == [b"a", b"b"]
        assert [note.metadata for note in world.notes if isinstance(note, KernelReady)] == [METADATA, METADATA]

        await send(mad)

        await is_cut(mad)
        await answers(world, other)


@in_loop
async def test_the_kernel_of_the_only_gateway_gets_no_time_for_others() -> None:
    async with played(endpoint(version(), execution_timeout_s=10)) as world:
        mad = await world.kernel()
        posted = world.post()
        await mad.request()
        world.advance(9)
        mad.send(KernelFrameKind.PROGRESS)
        await world.until(lambda: num_unasked(world) == 1)
        world.advance(2)

        assert (await posted).status_code == 504


@in_loop
async def test_a_kernel_answers_no_request_of_another_endpoint_nor_of_another_kernel() -> None:
    served = endpoint(version()), endpoint(version(job="job-10"), name="other")
    async with played(*served) as world:
        mine, sibling = await world.kernel("job-9.0"), await world.kernel("job-9.1")
        foreign = await world.kernel("job-10.0")
        posted = [world.post(b"1"), world.post(b"2", "/v2/models/other/infer")]
        held, theirs = await mine.request(), await foreign.request()
        for kind in (KernelFrameKind.PART, KernelFrameKind.RESULT):
            foreign.send(kind, b"a lie", id=held.header["id"], status=200)
            sibling.send(kind, b"a lie", id=held.header["id"], status=200)
        mine.answer(held, b"first")
        mine.answer(held, b"again")
        foreign.answer(theirs, b"theirs")

        assert [(await one).content for one in posted] == [b"first", b"theirs"]
        assert world.load() == (0, 0)


@in_loop
async def test_a_token_opens_no_place_in_another_job_and_a_place_of_its_own_job_alone_is_taken_over() -> None:
    served = endpoint(version()), endpoint(version(job="job-10"), name="other")
    async with played(*served) as world:
        honest = await world.kernel("job-10.0")
        thief = await world.connect()
        thief.send(KernelFrameKind.HELLO, task="job-10.0", token="token of job-9")
        await kernel_of_strangers_is_read(world)
        posted = world.post(b"x", "/v2/models/other/infer")
        honest.answer(await honest.request())

        assert (await posted).content == b"x"
        assert world.gateway.ready() == ("job-10.0",)


async def kernel_of_strangers_is_read(world: Played) -> None:
    """Return when what strangers have sent was read: one who comes later has been let in."""
    await world.kernel("job-9.7")
    late = world.kernels.pop()
    late.close()
    await world.until(lambda: "job-9.7" not in world.gateway.ready())


@in_loop
async def test_a_kernel_that_does_not_read_is_given_no_more_and_others_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_link, "MAX_UNREAD_BYTES", 1 << 20)
    async with played(endpoint(version(), batch_size=64, pipe_size=1)) as world:
        deaf = await world.kernel("job-9.0")
        deaf._reader._transport.pause_reading()  # type: ignore[attr-defined]
        posts = [world.post(bytes(400_000)) for _ in range(12)]
        await world.until(lambda: sum(world.load()) == 12)
        queued, held = world.load()
        assert 0 < held < 12

        other = world.spawn((await world.kernel("job-9.1")).echo())
        await world.until(lambda: sum(post.done() for post in posts) == queued)
        assert world.load() == (0, held)
        deaf._reader._transport.resume_reading()  # type: ignore[attr-defined]
        world.spawn(deaf.echo())

        assert [len((await post).content) for post in posts] == [400_000] * 12
        assert not other.done()


@in_loop
async def test_who_fills_the_memory_with_half_frames_is_cut_off_and_others_are_not() -> None:
    served = endpoint(version()), replace(endpoint(version(job="job-10"), name="other"), owner="bob")
    async with played(*served, memory=LinkMemory(3_500_000)) as world:
        honest = await world.kernel("job-10.0")
        half = encode_head(KernelFrameKind.RESULT, {"id": 1}, 100_000_000) + bytes(1_000_000)
        honest.write(encode_head(KernelFrameKind.RESULT, {"id": 77}, 1_000_000) + bytes(999_999))
        mad = [await world.kernel(f"job-9.{number}") for number in range(3)]
        for kernel in mad:
            kernel.write(half)
        await world.until(lambda: len(world.gateway.ready()) < 4)

        assert "job-10.0" in world.gateway.ready()
        assert len(world.gateway.ready()) == 3
        honest.write(b"x")
        posted = world.post(b"x", "/v2/models/other/infer", token="bob")
        honest.answer(await honest.request())
        assert (await posted).content == b"x"


@pytest.mark.parametrize(
    "kind", ["text/plain\n", "text/plain\r\nSet-Cookie: a=b", "text/plain; a=b\n", "x" * 1000, "/"]
)
@in_loop
async def test_the_type_of_an_answer_is_one_or_none(kind: str) -> None:
    async with played(endpoint(version())) as world:
        kernel = await world.kernel()
        posted = world.post()
        kernel.answer(await kernel.request(), b"{}", type=kind)
        response = await posted

        assert (response.status_code, response.content) == (200, b"{}")
        assert response.headers["content-type"] == "application/json"
        assert "set-cookie" not in response.headers


@pytest.mark.parametrize("status", [-1, 0, 100, 101, 204, 302, 304, 399, 600, 10**4000, True, 200.0, [[["deep"]]], {}])
@in_loop
async def test_a_status_that_answers_have_not_is_a_fault_of_the_kernel_in_short_words(status: object) -> None:
    async with played(endpoint(version())) as world:
        kernel = await world.kernel()
        posted = world.post()
        kernel.answer(await kernel.request(), b"", status=status)
        response = await posted

        assert response.status_code == 502
        assert len(response.json()["error"]) < 120


@in_loop
async def test_a_header_so_deep_that_it_cannot_be_shown_does_no_harm() -> None:
    async with played(endpoint(version())) as world:
        for depth in (100, 300, 480, 600, 900, 990, 5000):
            kernel = await world.kernel(f"job-9.{depth}")
            posted = world.post(b"x")
            number = (await kernel.request()).header["id"]
            text = b'{"id":%d,"status":%s}' % (number, b"[" * depth + b"]" * depth)
            head = bytearray(encode_head(KernelFrameKind.RESULT, {}, 0)[:9])
            head[0:4] = head[5:9] = len(text).to_bytes(4, "big")
            kernel.write(bytes(head) + text)
            if depth < 900:
                assert (await posted).status_code == 502
                kernel.close()
                continue
            done, _ = await asyncio.wait([posted, closed := world.spawn(is_cut(kernel))], return_when="FIRST_COMPLETED")
            if closed in done and not posted.done():  # it is asked again: another one answers
                other = await world.kernel()
                other.answer(await other.request())
                other.close()
            assert (await posted).status_code in (200, 502)
            kernel.close()
            await world.until(lambda: world.gateway.ready() == ())


@in_loop
async def test_empty_parts_without_end_end_with_the_patience_of_nobody() -> None:
    async with played(endpoint(version())) as world:
        kernel = await world.kernel()
        call = DirectCall(world)
        gate = asyncio.Event()

        async def never_sent(_message: dict[str, Any]) -> None:
            await gate.wait()

        call.task.cancel()
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/v2/models/digits/infer",
            "headers": [(b"x-auth-token", b"ada"), (b"accept", b"text/event-stream")],
        }
        call.feed(b"{}")
        stuck = world.spawn(world.gateway.app(scope, call.messages.get, never_sent))
        number = (await kernel.request()).header["id"]
        kernel.write(encode_frame(KernelFrameKind.PART, {"id": number}, b"") * 70_000)
        await kernel.take(KernelFrameKind.CANCEL)

        gate.set()
        await stuck


@pytest.mark.parametrize(
    "metadata",
    [
        {"platform": "one\nline", "inputs": [{"name": "a\r\nb", "datatype": "FP32", "shape": []}]},
        {"platform": "\x1b[2J", "inputs": [{"name": "x", "datatype": "\u202e", "shape": [1]}]},
        {"platform": ["x"], "inputs": {"name": "x"}},
        {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1] * 33}]},
        {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2**63]}], "max_batch_size": 2**40},
        [],
        "text",
    ],
)
@in_loop
async def test_what_a_model_says_of_itself_is_shown_only_if_it_is_a_line_of_text(metadata: object) -> None:
    async with played(endpoint(version())) as world:
        kernel = await world.connect()
        kernel.send(KernelFrameKind.HELLO, task="job-9.0", token="token of job-9")
        await kernel.take(KernelFrameKind.WELCOME)
        kernel.send(KernelFrameKind.READY, metadata=metadata)
        await world.until(lambda: world.gateway.ready())
        shown = (await world.get("/v2/models/digits")).json()

        assert (shown["platform"], shown["inputs"]) == ("", [])
        (note,) = world.notes
        assert isinstance(note, KernelReady)
        assert not {"platform", "max_batch_size"} & note.metadata.keys()


@in_loop
async def test_a_model_that_says_too_much_of_its_tensors_says_nothing_of_them() -> None:
    async with played(endpoint(version())) as world:
        kernel = await world.connect()
        kernel.send(KernelFrameKind.HELLO, task="job-9.0", token="token of job-9")
        await kernel.take(KernelFrameKind.WELCOME)
        one = {"name": "x" * 200, "datatype": "y" * 200, "shape": [1] * 32}
        kernel.send(KernelFrameKind.READY, metadata={"platform": "p", "inputs": [one] * 900, "max_batch_size": 4})
        await world.until(lambda: world.gateway.ready())

        (note,) = world.notes
        assert isinstance(note, KernelReady)
        assert note.metadata == {"platform": "p", "max_batch_size": 4}


@in_loop
async def test_answers_count_until_their_clients_have_them_and_one_that_finds_no_room_is_refused() -> None:
    admission = Admission(max_bytes=1000)
    async with played(endpoint(version(), batch_size=4), admission=admission) as world:
        kernel = await world.kernel()
        posts = [world.post(b"%d" % number) for number in range(3)]
        requests = [await kernel.request() for _ in posts]
        result = KernelFrameKind.RESULT
        kernel.write(
            b"".join(encode_frame(result, {"id": one.header["id"], "status": 200}, bytes(600)) for one in requests)
        )
        statuses = sorted([(await post).status_code for post in posts])
        assert statuses[-1] == 503
        assert statuses[0] == 200
        assert admission.num_bytes == 0

        await answers(world, kernel)


@in_loop
async def test_a_stream_that_finds_no_room_is_ended_and_its_kernel_told() -> None:
    admission = Admission(max_bytes=100_000)
    async with played(endpoint(version()), admission=admission) as world:
        kernel = await world.kernel()
        posts = [world.post(b"1", Accept="text/event-stream"), world.post(b"2")]
        first, _ = await kernel.request(), await kernel.request()
        kernel.send(KernelFrameKind.PART, bytes(200_000), id=first.header["id"])
        assert (await kernel.take(KernelFrameKind.CANCEL)).header == {"ids": [first.header["id"]]}

        done, _ = await asyncio.wait(posts, return_when="FIRST_COMPLETED")
        assert [one.result().status_code for one in done] == [502]


@in_loop
async def test_one_owners_kernels_leave_connections_for_those_of_others_whatever_their_endpoints_may_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(endpoint_table, "MAX_OWNER_LINKS", 4)
    monkeypatch.setattr(endpoint_table, "MAX_LINKS", 5)
    monkeypatch.setattr(endpoint_table, "_SURE_LINKS", 2)
    mine = [endpoint(version(job=f"job-{number}"), name=f"mine-{number}", kernel_max=4096) for number in (1, 2)]
    theirs = replace(endpoint(version(job="job-3"), name="theirs", kernel_max=4096), owner="bob")
    async with played(*mine, theirs) as world:
        for task in ("job-1.0", "job-1.1", "job-2.0", "job-2.1", "job-3.0", "job-3.1"):
            await world.kernel(task)
        await world.kernel("job-2.1")  # the same kernel again
        taken = ["job-1.0", "job-1.1", "job-2.0", "job-2.1", "job-3.0", "job-3.1"]
        assert sorted(world.gateway.ready()) == taken

        more = [await world.connect() for _ in range(3)]
        for number, kernel in enumerate(more, start=1):
            kernel.send(KernelFrameKind.HELLO, task=f"job-{number}.2", token=f"token of job-{number}")
        await strangers_are_read(world)
        assert sorted(world.gateway.ready()) == taken
        world.advance(HELLO_WITHIN_S + 1)
        assert [await kernel.next() for kernel in more] == [None, None, None]


async def strangers_are_read(world: Played) -> None:
    """Return when what strangers have sent was read: what a later one sends that is no frame has closed its own."""
    late = await world.connect()
    late.write(bytes(64))
    assert await late.next() is None
