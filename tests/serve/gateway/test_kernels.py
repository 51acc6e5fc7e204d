"""Kernels that come, answer, leave, die, hang and lie, and what becomes of the requests that they hold."""

import asyncio
from typing import Any

import pytest
from tests.serve.gateway.played import METADATA, DirectCall, FakeKernel, Played, endpoint, in_loop, played, version

from pliant.core.job import TaskId
from pliant.core.serving import KernelHung, KernelReady
from pliant.serve.gateway.gateway_share import GatewayShare
from pliant.serve.gateway.kernel_health import MOST_PROGRESS, PONG_WITHIN_S
from pliant.serve.protocol.frames import KernelFrameKind

ONE_OF_TWO = GatewayShare(of=2)


@in_loop
async def test_a_request_goes_to_a_kernel_as_it_came_and_the_answer_back() -> None:
    async with played(endpoint(version(3))) as world:
        kernel = await world.kernel("job-9.2")
        posted = world.post(b'{"inputs":[]}1234', Inference_Header_Content_Length="13")
        request = await kernel.request()
        kernel.answer(request, b'{"a":1}xyz', json=7, type="application/octet-stream", busy_s=0.5, batch=1)
        response = await posted

        assert request.header == {"id": 1, "api": "v2", "json": 13}
        assert request.body == b'{"inputs":[]}1234'
        assert (response.status_code, response.content) == (200, b'{"a":1}xyz')
        assert response.headers["inference-header-content-length"] == "7"
        assert (response.headers["pliant-version"], response.headers["pliant-kernel"]) == ("3", "job-9.2")
        assert world.notes == [KernelReady(task_id=TaskId("job-9.2"), metadata=METADATA)]
        (load,) = world.gateway.loads()
        assert (load.completed, load.num_batches, load.busy_s, load.num_ready) == (1, 1, 0.5, 1)


@in_loop
async def test_what_a_kernel_said_is_forgotten_when_it_is_gone() -> None:
    async with played(endpoint(version())) as world:
        first = await world.kernel("job-9.0")
        again = await world.connect()
        again.send(KernelFrameKind.HELLO, task="job-9.0", token="token of job-9")
        await again.take(KernelFrameKind.WELCOME)
        assert await first.next() is None
        assert world.forgotten == ["job-9.0"], "before it says it again"
        again.send(KernelFrameKind.READY, metadata=METADATA)
        await world.until(lambda: len(world.notes) == 2)
        assert len(world.forgotten) == 1

        again.close()
        await world.until(lambda: len(world.forgotten) == 2)


@in_loop
async def test_a_request_waits_for_the_first_kernel_and_somebody_is_urged_once() -> None:
    async with played(endpoint(version())) as world:
        posts = [world.post(b"%d" % number) for number in range(3)]
        await world.until(lambda: world.load() == (3, 0))
        assert len(world.num_urged) == 1

        kernel = await world.kernel()
        world.spawn(kernel.echo())

        assert [(await post).content for post in posts] == [b"0", b"1", b"2"]


@in_loop
async def test_a_kernel_is_given_no_more_than_its_credits_and_the_emptier_one_goes_first() -> None:
    async with played(endpoint(version(), batch_size=2, pipe_size=1)) as world:
        first, second = await world.kernel("job-9.0"), await world.kernel("job-9.1")
        for number in range(5):
            world.post(b"%d" % number)
        await world.until(lambda: world.load() == (1, 4))

        assert [(await first.request()).body, (await first.request()).body] == [b"0", b"2"]
        held = await second.request()
        second.answer(held)
        assert (await second.request()).body == b"3"
        assert (await second.request()).body == b"4"


@in_loop
async def test_what_a_leaving_kernel_did_not_begin_is_answered_by_another_before_what_came_later() -> None:
    async with played(endpoint(version())) as world:
        leaving = await world.kernel("job-9.0")
        posts = [world.post(b"%d" % number) for number in range(3)]
        kept, back = await leaving.request(), await leaving.request()
        leaving.send(KernelFrameKind.DRAIN)
        leaving.send(KernelFrameKind.RETURN, ids=[back.header["id"]])
        await world.until(lambda: world.load() == (2, 1))
        assert world.gateway.ready() == ()

        other = await world.kernel("job-9.1")
        assert [(await other.request()).body, (await other.request()).body] == [b"1", b"2"]
        leaving.answer(kept, b"kept")
        assert (await posts[0]).content == b"kept"


@in_loop
async def test_requests_of_a_kernel_that_dies_are_asked_again_three_times_at_most() -> None:
    async with played(endpoint(version(), batch_size=1)) as world:
        posted = world.post()
        for number in range(3):
            kernel = await world.kernel(f"job-9.{number}")
            await kernel.request()
            kernel.close()
        response = await posted

        assert response.status_code == 502
        assert "3 kernels have ended" in response.json()["error"]
        assert world.load() == (0, 0)


@in_loop
async def test_a_request_that_may_not_be_asked_twice_fails_with_its_kernel() -> None:
    async with played(endpoint(version(), idempotent=False)) as world:
        kernel = await world.kernel()
        posted = world.post()
        await kernel.request()
        kernel.close()
        response = await posted

        assert (response.status_code, response.headers["retry-after"]) == (503, "1")
        assert sum(load.failed for load in world.gateway.loads()) == 1


@in_loop
async def test_a_kernel_that_computes_for_too_long_is_given_up() -> None:
    async with played(endpoint(version(), execution_timeout_s=10)) as world:
        kernel = await world.kernel()
        posts = [world.post(), world.post()]
        request, _ = await kernel.request(), await kernel.request()
        world.advance(9)
        kernel.answer(request)
        assert (await posts[0]).status_code == 200

        world.advance(9)  # its clock began again with the answer
        assert not posts[1].done()
        world.advance(2)

        assert (await posts[1]).status_code == 504
        hung = world.notes[-1]
        assert isinstance(hung, KernelHung)
        assert "more than 10 s" in hung.why
        assert world.gateway.ready() == ()


@in_loop
async def test_a_kernel_that_holds_nothing_and_is_silent_is_asked_and_given_up() -> None:
    async with played(endpoint(version())) as world:
        kernel = await world.kernel()
        world.advance(6)
        await kernel.take(KernelFrameKind.PING)
        kernel.send(KernelFrameKind.PONG)
        await kernel_is_read(world, kernel)
        world.advance(9)
        await kernel.take(KernelFrameKind.PING)
        assert world.gateway.ready() != ()
        world.advance(11)

        assert world.gateway.ready() == ()
        assert isinstance(world.notes[-1], KernelHung)
        assert await kernel.next() is None


async def kernel_is_read(world: Played, kernel: FakeKernel) -> None:
    """Return when the gateway has read all that this kernel has sent: what comes later has come."""
    kernel.send(KernelFrameKind.RESULT, id=0, batch=1, busy_s=0)
    await world.until(lambda: any(load.num_batches for load in world.gateway.loads()))


@in_loop
async def test_no_kernel_is_given_up_because_the_gateway_itself_stood_still() -> None:
    async with played(endpoint(version(), execution_timeout_s=10)) as world:
        kernel = await world.kernel()
        posted = world.post()
        request = await kernel.request()
        world.now[0] += 100
        world.gateway.tick()
        world.advance(9)

        kernel.answer(request, b"late")
        assert (await posted).content == b"late"


@in_loop
async def test_a_client_that_leaves_takes_its_request_out_of_the_queue() -> None:
    async with played(endpoint(version())) as world:
        call = DirectCall(world)
        call.feed(b"{}")
        await world.until(lambda: world.load() == (1, 0))
        call.disconnect()
        world.gateway.tick()
        await call.task

        assert call.sent == []
        assert world.load() == (0, 0)


@in_loop
async def test_a_kernel_hears_that_nobody_waits_and_its_room_is_free_when_it_is_done() -> None:
    async with played(endpoint(version(), batch_size=1)) as world:
        kernel = await world.kernel()
        call = DirectCall(world)
        call.feed(b"{}")
        request = await kernel.request()
        call.disconnect()
        world.gateway.tick()
        assert (await kernel.take(KernelFrameKind.CANCEL)).header == {"ids": [request.header["id"]]}
        await kernel.take(KernelFrameKind.PING)
        posted = world.post(b"next")
        await world.until(lambda: world.load() == (1, 1))

        kernel.send(KernelFrameKind.PONG)

        kernel.answer(await kernel.request())
        assert (await posted).content == b"next"
        assert world.load() == (0, 0)


@in_loop
async def test_a_late_answer_to_a_cancelled_request_frees_its_room_and_goes_nowhere() -> None:
    async with played(endpoint(version(), batch_size=1)) as world:
        kernel = await world.kernel()
        posted = world.post(X_Request_Timeout_S="5")
        request = await kernel.request()
        assert request.header["timeout_s"] == 5.0
        world.advance(5)
        assert (await posted).status_code == 504
        await kernel.take(KernelFrameKind.CANCEL)
        kernel.answer(request)
        kernel.answer(request)

        await world.until(lambda: world.load() == (0, 0))
        assert sum(load.completed for load in world.gateway.loads()) == 0


@in_loop
async def test_a_first_kernel_that_does_not_come_is_waited_for_only_so_long() -> None:
    served = endpoint(version(why="it waits for 2 slots of queue 'gpu'"), cold_start_timeout_s=30)
    async with played(served) as world:
        posted = world.post()
        await world.until(lambda: world.load() == (1, 0))
        world.advance(29)
        assert not posted.done()
        world.advance(2)
        response = await posted

        assert response.status_code == 503
        assert "it waits for 2 slots" in response.json()["error"]
        assert int(response.headers["retry-after"]) > 0


@pytest.mark.parametrize(
    ("kind", "header"),
    [
        (KernelFrameKind.HELLO, {"task": "job-9.0", "token": "wrong"}),
        (KernelFrameKind.HELLO, {"task": "job-8.0", "token": "token of job-9"}),
        (KernelFrameKind.HELLO, {"task": "job-9.0", "token": "töken \ud800"}),
        (KernelFrameKind.HELLO, {"task": 7}),
        (KernelFrameKind.HELLO, {"task": "job-9.1\r\nSet-Cookie: a=b", "token": "token of job-9"}),
        (KernelFrameKind.READY, {}),
        (KernelFrameKind.RESULT, {"id": 1}),
    ],
)
@in_loop
async def test_who_shows_no_token_of_a_job_gets_no_welcome(kind: KernelFrameKind, header: dict[str, Any]) -> None:
    async with played(endpoint(version())) as world:
        stranger = await world.connect()
        stranger.send(kind, **header)
        closed = world.spawn(stranger.next())
        for _ in range(3):
            await asyncio.sleep(0)
        while not closed.done():
            world.advance(2)
            await asyncio.sleep(0.01)

        assert await closed is None
        assert world.gateway.ready() == ()


@in_loop
async def test_one_token_does_not_open_more_links_than_its_endpoint_can_have_kernels() -> None:
    async with played(endpoint(version(), kernel_max=1)) as world:
        welcome = []
        for number in range(18):
            kernel = await world.connect()
            kernel.send(KernelFrameKind.HELLO, task=f"job-9.{number}", token="token of job-9")
            welcome.append(await kernel.take(KernelFrameKind.WELCOME))
        one_more = await world.connect()
        one_more.send(KernelFrameKind.HELLO, task="job-9.99", token="token of job-9")
        refused = world.spawn(one_more.next())
        await asyncio.sleep(0.01)
        while not refused.done():
            world.advance(2)
            await asyncio.sleep(0.01)

        assert len(welcome) == 18
        assert await refused is None


@in_loop
async def test_a_kernel_may_come_before_the_server_has_said_that_there_is_its_job() -> None:
    async with played() as world:
        kernel = await world.connect()
        kernel.send(KernelFrameKind.HELLO, task="job-9.0", token="token of job-9")
        await asyncio.sleep(0.01)
        world.apply(endpoint(version()))

        welcome = await kernel.take(KernelFrameKind.WELCOME)
        assert (welcome.header["batch_size"], welcome.header["pipe_size"]) == (2, 1)


@pytest.mark.parametrize("data", [b"\xff" * 20, b"\x00\x00\x00\x02\x03\x00\x00\x00\x02{}", b"GET / HTTP/1.1\r\n\r\n"])
@in_loop
async def test_a_kernel_that_sends_nonsense_is_cut_off_and_its_requests_go_on(data: bytes) -> None:
    async with played(endpoint(version())) as world:
        mad = await world.kernel("job-9.0")
        posted = world.post(b"x")
        await mad.request()
        mad.write(data)
        assert await mad.next() is None

        world.spawn((await world.kernel("job-9.1")).echo())
        assert (await posted).content == b"x"


@pytest.mark.parametrize("header", [{"status": 99}, {"status": 204}, {"status": "200"}, {"json": 5}, {"json": "1"}])
@in_loop
async def test_an_answer_that_makes_no_sense_is_a_fault_of_the_kernel(header: dict[str, Any]) -> None:
    async with played(endpoint(version())) as world:
        kernel = await world.kernel()
        posted = world.post()
        kernel.answer(await kernel.request(), b"abc", **header)

        assert (await posted).status_code == 502
        world.spawn(kernel.echo())
        assert (await world.post(b"y")).content == b"y"


@in_loop
async def test_a_kernel_cannot_set_headers_of_its_own() -> None:
    async with played(endpoint(version())) as world:
        kernel = await world.kernel()
        posted = world.post()
        kernel.answer(await kernel.request(), b"{}", type="text/html\r\nSet-Cookie: a=b")
        response = await posted

        assert response.headers["content-type"] == "application/json"
        assert "set-cookie" not in response.headers


@in_loop
async def test_a_stream_of_parts_is_passed_on_and_ends_with_the_result() -> None:
    async with played(endpoint(version())) as world:
        kernel = await world.kernel()
        call = DirectCall(world, {"Accept": "text/event-stream"})
        call.feed(b"{}")
        number = (await kernel.request()).header["id"]
        kernel.send(KernelFrameKind.PART, b"one ", id=number, type="text/html")
        await world.until(lambda: len(call.sent) == 2)
        kernel.send(KernelFrameKind.PART, b"two ", id=number)
        kernel.send(KernelFrameKind.RESULT, b"three", id=number)
        await call.task

        assert (call.status, call.body) == (200, b"data: one \n\ndata: two \n\ndata: three\n\n")
        assert (b"content-type", b"text/event-stream; charset=utf-8") in call.sent[0]["headers"]
        assert not call.sent[-1].get("more_body")


@in_loop
async def test_a_stream_whose_kernel_dies_is_not_begun_again_and_ends_with_an_error() -> None:
    async with played(endpoint(version())) as world:
        kernel = await world.kernel()
        call = DirectCall(world, {"Accept": "text/event-stream"})
        call.feed(b"{}")
        number = (await kernel.request()).header["id"]
        kernel.send(KernelFrameKind.PART, b"one ", id=number)
        await world.until(lambda: len(call.sent) == 2)
        kernel.close()
        await call.task

        assert call.body == b'data: one \n\ndata: {"error": "kernel job-9.0 ended in the middle of its answer"}\n\n'
        assert world.load() == (0, 0)


@in_loop
async def test_a_change_of_the_profile_reaches_kernels_and_queue() -> None:
    async with played(endpoint(version(), batch_size=1)) as world:
        kernel = await world.kernel()
        for _ in range(2):
            world.post()
        await kernel.request()
        await world.until(lambda: world.load() == (1, 1))

        world.apply(endpoint(version(), batch_size=3))

        assert (await kernel.take(KernelFrameKind.WELCOME)).header["batch_size"] == 3
        await kernel.request()
        assert world.load() == (0, 2)


@in_loop
async def test_a_second_link_of_a_kernel_replaces_the_first() -> None:
    async with played(endpoint(version())) as world:
        first = await world.kernel()
        posted = world.post(b"x")
        await first.request()
        second = await world.connect()
        second.send(KernelFrameKind.HELLO, task="job-9.0", token="token of job-9")
        await second.take(KernelFrameKind.WELCOME)
        second.send(KernelFrameKind.READY)

        world.spawn(second.echo())
        assert (await posted).content == b"x"
        assert await first.next() is None
        assert world.gateway.ready() == ("job-9.0",)


# -- one of several gateways ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pipe_size", "num"), [(1, 2), (2, 2), (3, 4), (4, 4)])
@in_loop
async def test_one_of_two_gateways_gives_a_kernel_its_part_of_what_it_may_hold(pipe_size: int, num: int) -> None:
    async with played(endpoint(version(), batch_size=2, pipe_size=pipe_size), share=ONE_OF_TWO) as world:
        kernel = await world.kernel()
        for _ in range(9):
            world.post()
        await world.until(lambda: world.load() == (9 - num, num))
        kernel.answer(await kernel.request())
        await world.until(lambda: world.load() == (8 - num, num))


@pytest.mark.parametrize("num", [1, 3])
@in_loop
async def test_a_kernel_hears_how_many_gateways_there_are(num: int) -> None:
    async with played(endpoint(version(), pipe_size=2), share=GatewayShare(of=num)) as world:
        kernel = await world.connect()
        kernel.send(KernelFrameKind.HELLO, task="job-9.0", token="token of job-9")
        welcome = await kernel.take(KernelFrameKind.WELCOME)

        assert (welcome.header["num_gateways"], welcome.header["pipe_size"]) == (num, 2)


async def has_said_progress(world: Played, kernel: FakeKernel) -> None:
    """Have a kernel say that it works for others, and return when the gateway has taken note of that."""
    (link,) = (link for service in world.gateway._table for link in service.versions[1].links.values())
    kernel.send(KernelFrameKind.PROGRESS)
    await world.until(lambda: link.progress_at == world.now[0])


@in_loop
async def test_a_kernel_that_works_for_other_gateways_is_given_time_again_and_again_but_not_for_ever() -> None:
    async with played(endpoint(version(), execution_timeout_s=10), share=ONE_OF_TWO) as world:
        kernel = await world.kernel()
        posted = world.post()
        await kernel.request()
        for _ in range(2 * MOST_PROGRESS):
            world.advance(9.9)
            assert not posted.done()
            await has_said_progress(world, kernel)
        world.advance(9.9)

        assert (await posted).status_code == 504
        hung = world.notes[-1]
        assert isinstance(hung, KernelHung)
        assert hung.why == "has let requests wait for those of other gateways for more than 160 s"


@in_loop
async def test_a_kernel_that_works_for_other_gateways_and_falls_silent_is_given_up() -> None:
    async with played(endpoint(version(), execution_timeout_s=10), share=ONE_OF_TWO) as world:
        kernel = await world.kernel()
        posted = world.post()
        await kernel.request()
        world.advance(9)
        await has_said_progress(world, kernel)
        world.advance(9)
        assert not posted.done()
        world.advance(2)

        assert (await posted).status_code == 504
        assert isinstance(world.notes[-1], KernelHung)


@pytest.mark.parametrize(("num", "timeout_s", "most_s"), [(1, 60, PONG_WITHIN_S), (2, 60, 60), (2, 5, PONG_WITHIN_S)])
@in_loop
async def test_a_kernel_that_may_compute_for_another_gateway_has_as_long_for_a_sign_of_life_as_a_batch_may_take(
    num: int, timeout_s: float, most_s: float
) -> None:
    served = endpoint(version(), execution_timeout_s=timeout_s)
    async with played(served, share=GatewayShare(of=num)) as world:
        kernel = await world.kernel()
        world.advance(6)
        await kernel.take(KernelFrameKind.PING)
        world.advance(most_s - 0.5)
        assert world.gateway.ready() != ()
        world.advance(2)

        hung = world.notes[-1]
        assert isinstance(hung, KernelHung)
        assert hung.why == f"holds no request, and has given no sign of life for {most_s:g} s"
