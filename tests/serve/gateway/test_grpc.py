"""What people get over gRPC: calls, who may see what, limits, and what ends a call."""

import asyncio
from typing import Any

import grpc
import grpc.aio
import pytest
from tests.serve.gateway.played import METADATA, endpoint, in_loop, version
from tests.serve.gateway.played_grpc import ADA, SERVICE, Refusal, Spoken, infer_request, spoken

from pliant.serve.gateway.admission import Admission
from pliant.serve.gateway.grpc import api as api_module
from pliant.serve.gateway.grpc.api import MAX_READS
from pliant.serve.gateway.grpc.stream import MAX_IN_STREAM
from pliant.serve.gateway.request_body import BODY_WITHIN_S
from pliant.serve.protocol.frames import KernelFrameKind
from pliant.serve.protocol.grpc import encode_message, inference_schema
from pliant.serve.protocol.grpc.messages import decode_message


@in_loop
async def test_the_bytes_of_a_request_go_to_the_kernel_as_they_came_and_its_own_come_back() -> None:
    body = infer_request(id="7") + b"\xfa\x3e\x03abc"  # with a field that nobody knows
    async with spoken(endpoint(version(3))) as said:
        kernel = await said.world.kernel()
        call = said.channel.unary_unary(f"{SERVICE}ModelInfer")(body, metadata=ADA, timeout=30)
        said.world.spawn(wait(call))
        frame = await kernel.request()

        assert bytes(frame.body) == body
        assert frame.header["api"] == "grpc"
        assert 0 < frame.header["timeout_s"] < 31  # a client rounds up what is left, and the server counts anew
        kernel.answer(frame, b"\x0a\x01m")
        assert await call == b"\x0a\x01m"
        assert dict(await call.trailing_metadata()) == {"pliant-version": "3", "pliant-kernel": "job-9.0"}


async def wait(call: Any) -> Any:
    return await call


@in_loop
async def test_what_the_gateway_says_of_itself_and_of_models_is_what_it_says_over_http() -> None:
    async with spoken(endpoint(version(1, weight=0), version(2, job="job-10", metadata=METADATA))) as said:
        await said.world.kernel("job-10.0")

        assert (await said.ask("ServerMetadata")) == (await said.world.get("/v2")).json()
        model = await said.ask("ModelMetadata", name="digits")
        assert model["versions"] == ["1", "2"]
        (x,) = model["inputs"]
        assert (x["name"], x["datatype"], x["shape"].tolist()) == ("x", "FP32", [-1, 4])
        config = (await said.ask("ModelConfig", name="digits", version="2"))["config"]
        (x,), (y,) = config["input"], config["output"]
        assert (x["data_type"], x["dims"].tolist(), y["data_type"]) == (11, [4], 13)
        assert (config["max_batch_size"], config["dynamic_batching"], config["backend"]) == (8, {}, "pliant")
        assert (await said.ask("ModelReady", name="digits"))["ready"]
        assert not (await said.ask("ModelReady", name="digits", version="1")).get("ready")
        both = (await said.ask("RepositoryIndex"))["models"]
        assert [(one["version"], one["state"]) for one in both] == [("1", "UNAVAILABLE"), ("2", "READY")]
        assert [one["version"] for one in (await said.ask("RepositoryIndex", ready=True))["models"]] == ["2"]
        stats = (await said.ask("ModelStatistics"))["model_stats"]
        assert [(one["name"], one["version"]) for one in stats] == [("digits", "1"), ("digits", "2")]
        (one,) = (await said.ask("ModelStatistics", name="digits", version="1"))["model_stats"]
        assert one["inference_stats"].keys() == inference_schema().messages["InferStatistics"].by_name.keys()


@in_loop
async def test_everybody_may_ask_how_the_gateway_is_and_nothing_else() -> None:
    async with spoken(endpoint(version())) as said:
        assert (await said.ask("ServerLive", ()))["live"]
        assert (await said.ask("ServerReady", ()))["ready"]
        assert await said.call("/grpc.health.v1.Health/Check", metadata=()) == b"\x08\x01"
        for path in inference_schema().calls:
            if not path.endswith(("ServerLive", "ServerReady", "ModelStreamInfer")):
                answer = await said.call(path, metadata=())
                assert isinstance(answer, Refusal)
                assert answer.code == "UNAUTHENTICATED", path
    async with spoken() as said:  # no server has said yet what there is
        assert not (await said.ask("ServerReady", ())).get("ready")
        assert await said.call("/grpc.health.v1.Health/Check", metadata=()) == b"\x08\x02"


@in_loop
async def test_a_token_is_taken_from_every_place_where_http_takes_it() -> None:
    async with spoken(endpoint(version())) as said:
        for metadata in (
            (("authorization", "bearer ada"),),
            (("x-auth-token", "ada"),),
            (("x-user-token", "ada"),),
            (("authorization", "Basic eHg="), ("x-auth-token", "root")),
        ):
            assert (await said.ask("ServerMetadata", metadata))["name"] == "pliant"
        for token, code in (("wrong", "UNAUTHENTICATED"), ("viewer", "PERMISSION_DENIED"), ("away", "UNAVAILABLE")):
            refusal = await said.ask("ServerMetadata", (("x-auth-token", token),))
            assert refusal.code == code
        assert refusal.retry_after == "1"
        fault = await said.ask("ServerMetadata", (("x-auth-token", "broken"),))
        assert (fault.code, "fault of its own" in fault.details) == ("INTERNAL", True)
        missing = await said.ask("ModelMetadata", (("x-auth-token", "bob"),), name="digits")
        assert missing.code == "NOT_FOUND"
        assert missing.details == "no endpoint is called 'digits', or it is not shared with you"


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "INVALID_ARGUMENT"), (422, "INVALID_ARGUMENT"), (429, "RESOURCE_EXHAUSTED"), (500, "INTERNAL"),
     (501, "UNIMPLEMENTED"), (503, "UNAVAILABLE"), (504, "DEADLINE_EXCEEDED")],
)  # fmt: skip
@in_loop
async def test_what_a_kernel_says_went_wrong_is_the_status(status: int, code: str) -> None:
    async with spoken(endpoint(version())) as said:
        kernel = await said.world.kernel()
        asked = said.world.spawn(said.call("ModelInfer", infer_request()))
        kernel.answer(await kernel.request(), b'{"error": "x has\\n the shape [3] \xc3\xa4"}', status=status)
        assert await asked == Refusal(code, "x has\n the shape [3] ä")


@pytest.mark.parametrize("body", [b"", b"\xff", b"[" * 100_000, b'{"error": 3}', b'"' + b"\xc3\xa4" * 9000 + b'"'])
@in_loop
async def test_an_error_that_is_none_has_a_status_all_the_same(body: bytes) -> None:
    async with spoken(endpoint(version())) as said:
        kernel = await said.world.kernel()
        asked = said.world.spawn(said.call("ModelInfer", infer_request()))
        kernel.answer(await kernel.request(), body, status=500)
        assert await asked == Refusal("INTERNAL", "the model answered with status 500")


@in_loop
async def test_an_error_that_is_very_long_is_cut() -> None:
    async with spoken(endpoint(version())) as said:
        kernel = await said.world.kernel()
        asked = said.world.spawn(said.call("ModelInfer", infer_request()))
        kernel.answer(await kernel.request(), b'{"error": "' + "ä\\ud800".encode() * 4000 + b'"}', status=500)
        answer = await asked
        assert answer.code == "INTERNAL"
        assert answer.details.startswith("ä?ä?")
        assert answer.details.endswith("…")


@in_loop
async def test_requests_that_nobody_can_answer_are_refused_with_the_codes_of_their_kind() -> None:
    served = endpoint(version(1), max_queue=1, max_body_bytes=200)
    stopped = endpoint(name="stopped", started=False)
    async with spoken(served, stopped) as said:
        for body, code, words in (
            (b"\x0a", "INVALID_ARGUMENT", "cut off"),
            (b"", "NOT_FOUND", "no endpoint is called ''"),
            (infer_request(model_version="9"), "NOT_FOUND", "no version 9"),
            (infer_request(model_version="x"), "NOT_FOUND", "'x' is no version"),
            (infer_request(raw_input_contents=[b"x" * 200]), "RESOURCE_EXHAUSTED", "max_body_bytes"),
            (encode_message("ModelInferRequest", {"model_name": "stopped"}), "UNAVAILABLE", "it is stopped"),
        ):
            refusal = await said.call("ModelInfer", body)
            assert isinstance(refusal, Refusal), body
            assert (refusal.code, words in refusal.details) == (code, True), refusal
            assert refusal.retry_after == ("30" if code == "UNAVAILABLE" else None)
        said.world.spawn(said.call("ModelInfer", infer_request()))
        await said.world.until(lambda: said.world.load() == (1, 0))
        full = await said.call("ModelInfer", infer_request())
        assert isinstance(full, Refusal)
        assert (full.code, full.retry_after) == ("RESOURCE_EXHAUSTED", "1")


@in_loop
async def test_calls_that_are_not_done_say_so_and_unknown_ones_do_too() -> None:
    async with spoken(endpoint(version())) as said:
        for name in ("SystemSharedMemoryRegister", "CudaSharedMemoryStatus", "TraceSetting", "LogSettings"):
            refusal = await said.call(name)
            assert isinstance(refusal, Refusal)
            assert refusal.code == "UNIMPLEMENTED"
            assert refusal.details == (await said.world.get("/v2/logging")).json()["error"]
        unknown = await said.call("/inference.GRPCInferenceService/Nonsense")
        assert isinstance(unknown, Refusal)
        assert unknown.code == "UNIMPLEMENTED"


@in_loop
async def test_the_deadline_of_a_client_ends_its_request_at_the_kernel() -> None:
    async with spoken(endpoint(version())) as said:
        kernel = await said.world.kernel()
        asked = said.world.spawn(said.call("ModelInfer", infer_request(), timeout=0.3))
        frame = await kernel.request()
        assert (await asked).code == "DEADLINE_EXCEEDED"
        assert (await kernel.take(KernelFrameKind.CANCEL)).header["ids"] == [frame.header["id"]]


@in_loop
async def test_a_call_that_is_cancelled_ends_its_request() -> None:
    async with spoken(endpoint(version())) as said:
        call = said.channel.unary_unary(f"{SERVICE}ModelInfer")(infer_request(), metadata=ADA)
        asked = said.world.spawn(wait(call))
        await said.world.until(lambda: said.world.load() == (1, 0))
        call.cancel()
        await said.world.until(lambda: said.world.load() == (0, 0))
        await asyncio.gather(asked, return_exceptions=True)


@in_loop
async def test_a_message_is_not_read_before_the_token_is_known_to_be_good() -> None:
    async with spoken(endpoint(version())) as said:
        call = said.channel.stream_unary(f"{SERVICE}ModelInfer")(metadata=(("x-auth-token", "wrong"),))
        with pytest.raises(grpc.aio.AioRpcError) as caught:  # without a message ever being sent
            await call
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


@in_loop
async def test_a_message_that_does_not_come_is_not_waited_for_without_end() -> None:
    async with spoken(endpoint(version())) as said:
        call = said.channel.stream_unary(f"{SERVICE}ModelInfer")(metadata=ADA)
        asked = said.world.spawn(wait(call))
        bodies = said.world.gateway._bodies
        await said.world.until(lambda: len(bodies) == 1)
        said.world.advance(BODY_WITHIN_S + 1)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await asked
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        empty = said.channel.stream_unary(f"{SERVICE}ModelInfer")(metadata=ADA)
        await empty.done_writing()
        with pytest.raises(grpc.aio.AioRpcError, match="no message"):
            await empty


@in_loop
async def test_who_has_many_messages_on_their_way_waits_and_nobody_else_does() -> None:
    async with spoken(endpoint(version())) as said:
        slow = [said.channel.stream_unary(f"{SERVICE}ModelMetadata")(metadata=ADA) for _ in range(MAX_READS)]
        await said.world.until(lambda: len(said.world.gateway._bodies) == MAX_READS)
        waiting = said.world.spawn(said.ask("ModelMetadata", name="digits"))
        assert (await said.ask("ModelMetadata", (("x-auth-token", "root"),), name="digits"))["name"] == "digits"
        assert not waiting.done()
        slow[0].cancel()
        assert (await waiting)["name"] == "digits"
        for call in slow[1:]:
            call.cancel()
        await said.world.until(lambda: len(said.world.gateway._bodies) == 0)


@in_loop
async def test_all_protocols_share_what_a_gateway_takes_in_at_once() -> None:
    async with spoken(endpoint(version()), admission=Admission(max_requests=1)) as said:
        kernel = await said.world.kernel()
        asked = said.world.spawn(said.call("ModelInfer", infer_request()))
        frame = await kernel.request()
        assert (await said.world.post()).status_code == 503
        refusal = await said.call("ModelInfer", infer_request())
        assert isinstance(refusal, Refusal)
        assert (refusal.code, refusal.retry_after) == ("UNAVAILABLE", "1")
        drained = said.world.spawn(said.world.gateway.drain(30))
        await said.world.until(lambda: said.world.gateway._admission.is_draining)
        assert not (await said.ask("ServerReady", ())).get("ready")
        kernel.answer(frame, b"")
        assert await asked == b""
        await drained


class Stream:
    """One call of `ModelStreamInfer`."""

    def __init__(self, said: Spoken, token: str = "ada") -> None:
        self.call = said.channel.stream_stream(f"{SERVICE}ModelStreamInfer")(metadata=(("x-auth-token", token),))

    async def send(self, **fields: Any) -> None:
        await self.call.write(infer_request(**fields))

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(30):
            message = await self.call.read()
        assert isinstance(message, bytes), "the stream has ended"
        return decode_message("ModelStreamInferResponse", message)

    async def error(self) -> tuple[str, str]:
        said = await self.next()
        return said["error_message"], said["infer_response"]["id"]


@in_loop
async def test_a_stream_has_several_requests_in_flight_and_answers_them_in_their_order() -> None:
    async with spoken(endpoint(version(), batch_size=4)) as said:
        kernel = await said.world.kernel()
        stream = Stream(said)
        for number in range(3):
            await stream.send(id=str(number))
        frames = [await kernel.request() for _ in range(3)]
        for frame in reversed(frames):
            kernel.answer(frame, encode_message("ModelInferResponse", {"model_name": str(frame.header["id"])}))
        names = [(await stream.next())["infer_response"]["model_name"] for _ in range(3)]
        assert names == [str(frame.header["id"]) for frame in frames]
        await stream.call.done_writing()
        assert await stream.call.read() is grpc.aio.EOF
        assert await stream.call.code() is grpc.StatusCode.OK


@in_loop
async def test_a_request_of_a_stream_that_fails_ends_no_other_one() -> None:
    async with spoken(endpoint(version(), idempotent=False)) as said:
        kernel = await said.world.kernel()
        stream = Stream(said)
        await stream.send(id="a", model_version="9")
        assert "no version 9" in (await stream.error())[0]
        await stream.call.write(b"\x0a")
        assert "cut off" in (await stream.error())[0]
        await stream.send(id="c")
        kernel.answer(await kernel.request(), b'{"error": "x is wrong"}', status=400)
        assert await stream.error() == ("x is wrong", "c")
        await stream.send(id="d")
        await kernel.request()
        kernel.close()
        assert (await stream.error())[1] == "d"
        stream.call.cancel()


@in_loop
async def test_the_parts_of_an_answer_are_messages_of_a_stream_and_too_many_for_a_single_call() -> None:
    async with spoken(endpoint(version())) as said:
        kernel = await said.world.kernel()
        stream = Stream(said)
        await stream.send()
        frame = await kernel.request()
        for part in (b"\x0a\x01p", b"\x0a\x01q"):
            kernel.send(KernelFrameKind.PART, part, id=frame.header["id"])
        kernel.answer(frame, b"")
        names = [(await stream.next())["infer_response"]["model_name"] for _ in range(2)]
        assert names == ["p", "q"]
        asked = said.world.spawn(said.call("ModelInfer", infer_request()))
        frame = await kernel.request()
        kernel.send(KernelFrameKind.PART, b"\x0a\x01p", id=frame.header["id"])
        assert (await asked).code == "UNIMPLEMENTED"
        stream.call.cancel()


@in_loop
async def test_who_asks_for_it_is_told_which_answer_of_a_stream_is_the_last() -> None:
    async with spoken(endpoint(version())) as said:
        kernel = await said.world.kernel()
        stream = Stream(said)
        wanted = {"triton_enable_empty_final_response": {"bool_param": True}}
        await stream.send(id="a", parameters={"priority": {"uint64_param": 1}, **wanted})
        frame = await kernel.request()
        kernel.send(KernelFrameKind.PART, b"\x0a\x01p", id=frame.header["id"])
        kernel.answer(frame, b"")
        await stream.send(id="b", parameters=wanted)
        kernel.answer(await kernel.request(), b"\x0a\x01q")
        answers = [(await stream.next())["infer_response"] for _ in range(3)]
        assert [one.get("model_name") for one in answers] == ["p", "digits", "q"]
        assert answers[1]["id"] == "a"
        ends = [one["parameters"]["triton_final_response"]["bool_param"] for one in answers]
        assert ends == [False, True, True]
        stream.call.cancel()


@in_loop
async def test_a_stream_is_not_read_further_than_so_many_requests_ahead() -> None:
    async with spoken(endpoint(version())) as said:
        stream = Stream(said)
        for _ in range(MAX_IN_STREAM + 5):
            await stream.send()
        await said.world.until(lambda: said.world.load()[0] == MAX_IN_STREAM)
        kernel = await said.world.kernel()
        said.world.spawn(kernel.echo())
        for _ in range(MAX_IN_STREAM + 5):
            assert "infer_response" in await stream.next()
        stream.call.cancel()
        await said.world.until(lambda: said.world.gateway._admission.num_requests == 0)


@in_loop
async def test_a_stream_that_its_client_leaves_leaves_nothing_behind() -> None:
    async with spoken(endpoint(version())) as said:
        kernel = await said.world.kernel()
        stream = Stream(said)
        for _ in range(5):
            await stream.send(raw_input_contents=[b"x" * 1000])
        await kernel.request()
        await said.world.until(lambda: said.world.load() == (3, 2))
        stream.call.cancel()
        admission = said.world.gateway._admission
        await said.world.until(lambda: said.world.load()[0] == 0 and admission.num_requests == 0)
        assert admission.num_bytes == 0


@in_loop
async def test_streams_are_for_those_who_may_ask_and_not_too_many_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_module, "MAX_STREAMS", 1)
    async with spoken(endpoint(version())) as said:
        for token, code in (("wrong", "UNAUTHENTICATED"), ("viewer", "PERMISSION_DENIED")):
            assert (await Stream(said, token).call.code()).name == code
        first = Stream(said)
        await first.send(model_version="9")
        await first.error()
        assert await Stream(said).call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        await first.call.done_writing()
        assert await first.call.code() is grpc.StatusCode.OK
        third = Stream(said)
        await third.send(model_version="9")
        await third.error()
        third.call.cancel()


@in_loop
async def test_what_a_token_is_limited_to_holds_over_grpc_too() -> None:
    async with spoken(endpoint(version()), endpoint(version(job="job-10"), name="mnist")) as said:
        said.world.limit("shop", "digits", max_rate=1.0)
        shop = (("authorization", "Bearer shop"),)
        said.world.spawn((await said.world.kernel()).echo())
        assert [one["name"] for one in (await said.ask("RepositoryIndex", shop))["models"]] == ["digits"]
        assert (await said.ask("ModelMetadata", shop, name="digits"))["name"] == "digits"
        hidden = await said.ask("ModelMetadata", shop, name="mnist")
        assert hidden == await said.call("ModelInfer", infer_request(model_name="mnist"), metadata=shop)
        assert (hidden.code, "no endpoint is called 'mnist'" in hidden.details) == ("NOT_FOUND", True)
        assert isinstance(await said.call("ModelInfer", infer_request(), metadata=shop), bytes)
        refused = await said.call("ModelInfer", infer_request(), metadata=shop)
        assert isinstance(refused, Refusal)
        assert (refused.code, refused.retry_after) == ("RESOURCE_EXHAUSTED", "1")
