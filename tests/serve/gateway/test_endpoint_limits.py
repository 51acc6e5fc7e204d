"""The limits of an endpoint: they hold for all who ask it, by whatever protocol, and can be changed while it serves."""

import zlib
from typing import Any

import pytest
from tests.serve.gateway.played import DirectCall, Played, endpoint, in_loop, played, version
from tests.serve.gateway.played_grpc import Refusal, infer_request, spoken

from pliant.serve.protocol.frames import KernelFrameKind

BOB = (("authorization", "Bearer bob"),)
DLIM = "/dlim/v1/inference/digits"


def shared(**profile: Any) -> Any:
    """The endpoint, which bob may ask, too."""
    return endpoint(version(), shared_with=("bob",), **profile)


def num_refused(world: Played) -> int:
    return sum(load.totals.refused for load in world.gateway.loads())


@in_loop
async def test_the_rate_of_an_endpoint_is_shared_by_all_tokens_and_protocols_and_refuses_before_the_body() -> None:
    async with spoken(shared(max_rate=2.0)) as said:
        world = said.world
        world.spawn((await world.kernel()).echo())
        assert (await world.post()).status_code == 200
        assert (await world.post(path=DLIM, token="bob")).status_code == 200

        unread = DirectCall(world, {"Content-Length": "10"})
        await unread.task
        grpc = await said.call("ModelInfer", infer_request(), metadata=BOB)

        assert (unread.status, (b"retry-after", b"1") in unread.sent[0]["headers"]) == (429, True)
        assert b"2 requests a second to 'digits' are taken; send the next one in 0.500 s" in unread.body
        assert isinstance(grpc, Refusal)
        assert (grpc.code, grpc.retry_after) == ("RESOURCE_EXHAUSTED", "1")
        assert num_refused(world) == 2
        world.now[0] += 0.5
        assert isinstance(await said.call("ModelInfer", infer_request(), metadata=BOB), bytes)


@in_loop
async def test_what_is_under_way_at_an_endpoint_counts_while_it_waits_and_while_it_is_computed() -> None:
    async with played(shared(max_concurrent=3, batch_size=1)) as world:
        kernel = await world.kernel()
        posts = [world.post(b"0"), world.post(b"1", path=DLIM), world.post(b"2", token="bob")]
        await world.until(lambda: world.load() == (2, 1))

        for token in ("ada", "bob"):
            refused = await world.post(token=token)
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
            assert "3 requests to 'digits' are under way, which is the most" in refused.json()["error"]
        assert num_refused(world) == 2

        world.spawn(kernel.echo())
        assert sorted([(await post).content for post in posts]) == [b"0", b"1", b"2"]
        assert (await world.post()).status_code == 200


@in_loop
async def test_a_request_that_the_endpoint_refuses_uses_up_nothing_of_its_token_and_the_other_way_round() -> None:
    async with played(shared(max_concurrent=1)) as world:
        world.limit("few", max_rate=1.0)
        kernel = await world.kernel()
        held = world.post(token="bob")
        request = await kernel.request()
        assert "to 'digits'" in (await world.post(token="few")).json()["error"]
        kernel.answer(request)
        await held
        world.spawn(kernel.echo())
        assert (await world.post(token="few")).status_code == 200
        assert "with this token" in (await world.post(token="few")).json()["error"]
        assert (await world.post(token="bob")).status_code == 200


@in_loop
async def test_limits_change_while_requests_are_under_way_and_these_count_on() -> None:
    async with played(shared()) as world:
        kernel = await world.kernel()
        posts = [world.post(), world.post()]
        await world.until(lambda: world.load() == (0, 2))
        world.apply(shared(max_concurrent=2))
        assert (await world.post()).status_code == 429
        world.apply(shared(max_concurrent=3))
        posts.append(world.post())
        await world.until(lambda: sum(world.load()) == 3)
        world.apply(shared(max_rate=0.1))
        world.spawn(kernel.echo())
        assert [(await post).status_code for post in posts] == [200, 200, 200]
        assert (await world.post()).status_code == 200
        assert (await world.post()).headers["retry-after"] == "10"
        world.apply(shared(max_rate=10.0))
        world.now[0] += 0.1
        assert (await world.post()).status_code == 200
        world.apply(shared())
        assert [(await world.post()).status_code for _ in range(20)] == [200] * 20


@in_loop
async def test_a_request_takes_no_longer_than_its_endpoint_allows_wherever_it_waits() -> None:
    async with played(shared(max_request_s=5.0, batch_size=1)) as world:
        cold = world.post()
        await world.until(lambda: world.load() == (1, 0))
        world.advance(4)
        assert not cold.done()
        world.advance(2)
        assert (await cold).status_code == 504
        assert (await cold).headers["retry-after"] == "1"
        assert "within the 5 s that a request to 'digits' may take (max_request_s)" in (await cold).json()["error"]

        kernel = await world.kernel()
        held, patient = world.post(), world.post(X_Request_Timeout_S="60", path=DLIM)
        request = await kernel.request()
        assert request.header["timeout_s"] == 5.0
        await world.until(lambda: world.load() == (1, 1))
        world.advance(6)
        assert [(await one).status_code for one in (held, patient)] == [504, 504]
        assert (await kernel.take(KernelFrameKind.CANCEL)).header["ids"] == [request.header["id"]]


@in_loop
async def test_a_shorter_deadline_of_the_client_counts() -> None:
    async with played(shared(max_request_s=5.0)) as world:
        hasty = world.post(X_Request_Timeout_S="2")
        await world.until(lambda: world.load() == (1, 0))
        world.advance(3)
        assert (await hasty).status_code == 504
        assert "within the 2 s that the client waits" in (await hasty).json()["error"]
        assert "retry-after" not in (await hasty).headers


@in_loop
async def test_over_grpc_a_request_that_takes_too_long_for_its_endpoint_has_the_code_of_a_deadline() -> None:
    async with spoken(shared(max_request_s=5.0)) as said:
        late = said.world.spawn(said.call("ModelInfer", infer_request()))
        await said.world.until(lambda: said.world.load() == (1, 0))
        said.world.advance(6)
        answer = await late
        assert isinstance(answer, Refusal)
        assert (answer.code, answer.retry_after) == ("DEADLINE_EXCEEDED", "1")
        assert "(max_request_s)" in answer.details


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_compressed_body_that_never_ends_and_becomes_nothing_is_too_long(encoding: str) -> None:
    @in_loop
    async def test() -> None:
        async with played(shared(max_body_bytes=1000)) as world:
            call = DirectCall(world, {"Transfer-Encoding": "chunked", "Content-Encoding": encoding})
            squeeze = zlib.compressobj(wbits=31 if encoding == "gzip" else 15)
            empty = squeeze.compress(b"") + squeeze.flush()
            for _ in range(1 + 1000 // len(empty)):
                call.feed(empty, more=True)
            await call.task
            assert call.status == 413
            assert num_refused(world) == 1

    test()
