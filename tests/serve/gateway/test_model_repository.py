"""Models are loaded and unloaded by clients: the server starts and stops endpoints; a caller hears when it is so."""

import asyncio
from typing import Any

import httpx
import pytest
from tests.serve.gateway.played import DirectCall, Played, endpoint, in_loop, played, version
from tests.serve.gateway.played_grpc import ADA, Refusal, spoken

from pliant.core.serving import SwitchOutcome
from pliant.serve.gateway.callers import CallerRights
from pliant.serve.gateway.model_repository import MAX_OF_CALLER, MOST_S
from pliant.serve.protocol.grpc import encode_message

LOAD = "/v2/repository/models/digits/load"
UNLOAD = "/v2/repository/models/digits/unload"


def stopped(revision: int = 1, **more: Any) -> Any:
    return endpoint(started=False, revision=revision, **more)


def started(revision: int, *versions: Any, **more: Any) -> Any:
    return endpoint(*versions, revision=revision, **{"kernel_min": 1, "cold_start_timeout_s": 60.0, **more})


def at(revision: int) -> Any:
    """What the server does: it is so, and at this revision."""
    return lambda name, start: SwitchOutcome(number=1, status=200, revision=revision)


async def asked(world: Played, number: int = 1) -> None:
    await world.until(lambda: len(world.switches.asked) == number)


@in_loop
async def test_a_load_is_answered_when_a_kernel_is_ready_and_not_by_what_was_so_before() -> None:
    async with played(endpoint(version(metadata={"platform": "x"}), revision=4)) as world:
        world.switches.do = at(5)
        load = world.post(b"", LOAD)
        await asked(world)
        assert world.switches.asked == [("ada", "digits", True, "127.0.0.1")]
        world.advance(1)
        assert not load.done(), "it was ready, but that was before"
        world.apply(started(5))
        world.apply(started(6, version()))
        world.advance(1)
        assert not load.done(), "its kernel has not loaded it"
        await world.kernel()
        world.advance(1)
        assert ((await load).status_code, (await load).json()) == (200, {})


@in_loop
async def test_an_endpoint_without_a_minimum_that_has_loaded_before_is_ready_as_soon_as_it_is_started() -> None:
    async with played(stopped(1)) as world:
        world.switches.do = at(2)
        load = world.post(b"{}", LOAD)
        await asked(world)
        world.apply(endpoint(version(metadata={"platform": "x"}), revision=2))
        assert (await load).status_code == 200


@in_loop
async def test_an_unload_is_answered_when_requests_are_refused() -> None:
    async with played(endpoint(version(), revision=1)) as world:
        world.switches.do = at(2)
        unload = world.post(b'{"parameters": {"unload_dependents": true}}', UNLOAD)
        await asked(world)
        assert world.switches.asked == [("ada", "digits", False, "127.0.0.1")]
        assert not unload.done()
        world.apply(stopped(2))
        assert (await unload).status_code == 200
        assert (await world.post()).status_code == 503

        world.switches.do = at(3)
        gone = world.post(b"", UNLOAD)
        await asked(world, 2)
        world.apply()
        assert (await gone).status_code == 200
        world.apply(stopped(3))
        world.switches.do = at(9)
        late = world.post(b"", UNLOAD)
        await asked(world, 3)
        world.advance(11)
        assert (await late).status_code == 200, "it is kept so, even if the gateway does not hear of it"


@in_loop
async def test_a_load_says_why_its_model_is_not_ready() -> None:
    async with played(stopped()) as world:
        for number, (state, status, words) in enumerate(
            (
                (started(2, why_not="version 3 of digits has failed: no such file"), 503, "no such file"),
                (stopped(2), 503, "it is stopped"),
                (started(2, version(why="the queue is full")), 503, "is started, and not ready yet: the queue is full"),
                (None, 404, "no endpoint is called 'digits'"),
            ),
            start=1,
        ):
            world.apply(stopped())
            world.switches.do = at(2)
            load = world.post(b"", LOAD)
            await asked(world, number)
            world.apply(*([] if state is None else [state]))
            world.advance(121)
            assert ((await load).status_code, words in (await load).json()["error"]) == (status, True)


@in_loop
async def test_a_load_waits_no_longer_than_a_cold_start_or_the_client_and_never_for_ever() -> None:
    for given, header, most_s in ((30.0, {}, 30.0), (86_400.0, {}, MOST_S), (30.0, {"X_Request_Timeout_S": "5"}, 5.0)):
        async with played(started(2, version(), cold_start_timeout_s=given)) as world:
            load = world.post(b"", LOAD, **header)
            await asked(world)
            world.advance(most_s - 1)
            assert not load.done()
            world.advance(2)
            assert ((await load).status_code, (await load).headers["retry-after"]) == (503, "5")


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b'{"parameters": {"config": "{}"}}', 400, "takes no parameters here (config was sent); another model"),
        (b'{"parameters": {"file:1/model.onnx": "eA=="}}', 400, "pliant deploy WHAT --name NAME"),
        (b'{"parameters": []}', 400, "no object"),
        (b"[]", 400, "no object"),
        (b"{", 400, "no JSON"),
        (b"[" * 60_000, 400, "no JSON"),
        (b"\xff", 400, "no JSON"),
        (b"x" * 70_000, 413, "pliant deploy"),
    ],
)
def test_a_load_that_brings_something_for_its_model_or_makes_no_sense_is_refused(
    body: bytes, status: int, words: str
) -> None:
    @in_loop
    async def test() -> None:
        async with played(stopped()) as world:
            answer = await world.post(body, LOAD)
            assert (answer.status_code, words in answer.json()["error"]) == (status, True)
            assert world.switches.asked == []

    test()


@in_loop
async def test_what_the_server_refuses_is_refused_in_its_words_and_without_the_server_nothing_is_done() -> None:
    async with spoken(stopped()) as said:
        world = said.world
        for status, code in ((403, "PERMISSION_DENIED"), (409, "INVALID_ARGUMENT"), (429, "RESOURCE_EXHAUSTED")):
            world.switches.do = lambda *_, status=status: SwitchOutcome(
                number=1, status=status, message="no, because", retry_after_s=7
            )
            answer = await world.post(b"", LOAD)
            assert (answer.status_code, answer.json()["error"]) == (status, "no, because")
            assert answer.headers["retry-after"] == "7"
            for call in ("RepositoryModelLoad", "RepositoryModelUnload"):
                assert await said.ask(call, model_name="digits") == Refusal(code, "no, because", "7")
        world.callers.more["away"] = CallerRights(name="ada", sees_all=False, may_infer=True)
        gone = await world.post(b"", LOAD, token="away")
        assert (gone.status_code, gone.json()["error"]) == (503, "the server does not answer")


@in_loop
async def test_over_grpc_models_are_loaded_and_unloaded_and_bring_nothing_along() -> None:
    async with spoken(started(1, version())) as said:
        await said.world.kernel()
        assert await said.ask("RepositoryModelLoad", model_name="digits") == {}
        assert said.world.switches.asked == [("ada", "digits", True, "127.0.0.1")]
        said.world.switches.do = at(2)
        unload = said.world.spawn(said.ask("RepositoryModelUnload", model_name="digits"))
        await asked(said.world, 2)
        said.world.apply(stopped(2))
        assert await unload == {}
        brings = encode_message("RepositoryModelLoadRequest", {"model_name": "digits"}) + b"\x1a\x00"
        refused = await said.call("RepositoryModelLoad", brings, metadata=ADA)
        assert isinstance(refused, Refusal)
        assert (refused.code, "pliant deploy" in refused.details) == ("INVALID_ARGUMENT", True)
        for name in ("other", "", "../digits"):
            unknown = await said.ask("RepositoryModelLoad", model_name=name)
            assert unknown == Refusal("NOT_FOUND", f"no endpoint is called {name!r}, or it is not shared with you")
        assert len(said.world.switches.asked) == 2


@in_loop
async def test_a_token_that_may_not_ask_models_may_load_them_if_the_server_says_so_and_others_see_none() -> None:
    async with played(stopped(), endpoint(name="private", started=False)) as world:
        world.callers.more["keeper"] = CallerRights(name="ada", sees_all=False, may_infer=False)
        world.switches.do = at(0)
        assert (await world.post(b"", UNLOAD, token="keeper")).status_code == 200
        nobody = await world.client.post(LOAD)
        hidden = await world.post(b"", LOAD, token="bob")
        assert (nobody.status_code, hidden.status_code) == (401, 404)
        assert len(world.switches.asked) == 1


@in_loop
async def test_one_caller_waits_for_so_many_models_at_once_and_frees_their_places() -> None:
    async with played(started(1, version())) as world:
        loads = [world.post(b"", LOAD) for _ in range(MAX_OF_CALLER)]
        await asked(world, MAX_OF_CALLER)
        assert (await world.post(b"", LOAD)).status_code == 429
        loads.pop().cancel()
        await asyncio.sleep(0)
        await world.kernel()
        world.advance(1)
        answers: list[httpx.Response] = [await load for load in loads]
        assert [one.status_code for one in answers] == [200] * (MAX_OF_CALLER - 1)
        assert (await world.post(b"", LOAD)).status_code == 200


@in_loop
async def test_the_body_of_a_load_is_not_read_before_the_token_is_good_and_not_for_ever() -> None:
    async with played(stopped()) as world:
        stranger = DirectCall(world, {"Authorization": "Bearer stranger"}, path=LOAD)
        await stranger.task
        assert stranger.status == 401
        call = DirectCall(world, {"Content-Length": "999999999"}, path=LOAD)
        await call.task
        assert call.status == 413
        slow = DirectCall(world, path=LOAD)
        slow.feed(b"{", more=True)
        await world.until(lambda: slow.messages.empty())
        world.advance(61)
        await slow.task
        assert slow.status == 408


@in_loop
async def test_nobody_waits_for_a_model_whose_client_has_left_or_whose_gateway_ends() -> None:
    async with played(started(1, version())) as world:
        left = DirectCall(world, path=LOAD)
        left.feed(b"")
        await asked(world)
        left.disconnect()
        await left.task
        assert left.sent == []
        load = world.post(b"", LOAD)
        await asked(world, 2)
        await world.gateway.drain(30)
        assert ((await load).status_code, "this gateway ends" in (await load).json()["error"]) == (503, True)
