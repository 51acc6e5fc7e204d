"""Whatever bytes a client sends as a message or in metadata: every call ends with a status, and the gateway goes on."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.serve.gateway.played import endpoint, in_loop, version
from tests.serve.gateway.played_grpc import ADA, SERVICE, Refusal, infer_request, spoken

from pliant.serve.protocol.grpc import encode_message, inference_schema

PATHS: Final = [path for path in inference_schema().calls if not path.endswith("ModelStreamInfer")]
VALID: Final = infer_request(
    id="7",
    inputs=[{"name": "x", "datatype": "FP32", "shape": [2]}],
    parameters={"priority": {"uint64_param": 3}},
    raw_input_contents=[bytes(8)],
)
QUESTION: Final = encode_message("ModelStatisticsRequest", {"name": "digits", "version": "1"})
EXPECTED: Final = {"INVALID_ARGUMENT", "NOT_FOUND", "UNIMPLEMENTED"}


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Something valid in which a few bytes are others, or that is cut off, or goes on."""
    body = bytearray(draw(st.sampled_from([VALID, QUESTION])))
    for _ in range(draw(st.integers(0, 3))):
        body[draw(st.integers(0, len(body) - 1))] = draw(st.integers(0, 255))
    return bytes(body[: draw(st.integers(0, len(body)))]) + draw(st.binary(max_size=20))


BODIES: Final = st.binary(max_size=300) | damaged()
FUZZ: Final = settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])


async def in_thread(test: Callable[[Callable[[Any], Any]], None]) -> None:
    """Run a test that is not asynchronous beside this loop; what it is given runs a coroutine in the loop."""
    loop = asyncio.get_running_loop()
    await asyncio.to_thread(test, lambda work: asyncio.run_coroutine_threadsafe(work, loop).result(60))


@in_loop
async def test_every_message_has_an_answer_or_a_status() -> None:
    async with spoken(endpoint(version())) as said:
        said.world.spawn((await said.world.kernel()).echo())

        def fuzz(run: Callable[[Any], Any]) -> None:
            @FUZZ
            @given(st.sampled_from(PATHS), BODIES)
            def ask(path: str, body: bytes) -> None:
                answer = run(said.call(path, body))
                assert isinstance(answer, bytes) or answer.code in EXPECTED, answer

            ask()

        await in_thread(fuzz)
        assert (await said.ask("ServerReady"))["ready"]
        assert said.world.gateway._admission.num_requests == 0


@in_loop
async def test_every_message_of_a_stream_has_an_answer() -> None:
    async with spoken(endpoint(version())) as said:
        said.world.spawn((await said.world.kernel()).echo())

        async def converse(bodies: list[bytes]) -> None:
            call = said.channel.stream_stream(f"{SERVICE}ModelStreamInfer")(metadata=ADA)
            for body in bodies:
                await call.write(body)
            await call.done_writing()
            answers = [message async for message in call]
            assert len(answers) == len(bodies)
            assert (await call.code()).name == "OK"

        def fuzz(run: Callable[[Any], Any]) -> None:
            @settings(FUZZ, max_examples=60)
            @given(st.lists(BODIES, max_size=6))
            def ask(bodies: list[bytes]) -> None:
                run(converse(bodies))

            ask()

        await in_thread(fuzz)
        assert said.world.gateway._admission.num_requests == 0


@in_loop
async def test_no_metadata_opens_anything() -> None:
    async with spoken(endpoint(version())) as said:
        keys = st.sampled_from(["authorization", "x-auth-token", "x-user-token"])
        texts = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60)
        values = texts | texts.map(lambda text: f"Bearer {text}")

        def fuzz(run: Callable[[Any], Any]) -> None:
            @FUZZ
            @given(st.lists(st.tuples(keys, values), max_size=4))
            def ask(metadata: list[tuple[str, str]]) -> None:
                answer = run(said.call("ServerMetadata", metadata=metadata))
                assert isinstance(answer, Refusal)
                assert answer.code in ("UNAUTHENTICATED", "UNAVAILABLE", "PERMISSION_DENIED"), answer

            ask()

        await in_thread(fuzz)
        assert isinstance(await said.call("ServerMetadata"), bytes)
