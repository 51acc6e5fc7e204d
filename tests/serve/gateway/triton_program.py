"""What an unmodified client of Triton does with a gateway, in a process of its own: it brings gevent, and protobuf.

    python -P triton_program.py http|http-aio|grpc|grpc-aio ADDRESS

The gateway has `digits`, whose answer `y` doubles `x`, and whose `t` is the text of the same name. Ends with 0 if all
is as it should be.
"""

import asyncio
import queue
import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest
import tritonclient.grpc as over_grpc
import tritonclient.http as over_http
from tritonclient.utils import InferenceServerException

TOKEN: Final = {"authorization": "Bearer ada"}
BOB: Final = {"authorization": "Bearer bob"}
X = np.array([[1.5, -2.0, 0.0, 4.0]], dtype=np.float32)
T = np.array(["ä".encode(), b"\x00\xff"], dtype=np.object_)


def inputs_of(library: Any, **how: bool) -> list[Any]:
    made = [library.InferInput("x", list(X.shape), "FP32"), library.InferInput("t", [2], "BYTES")]
    made[0].set_data_from_numpy(X, **how)
    made[1].set_data_from_numpy(T)
    return made


def check_answer(result: Any) -> None:
    assert result.as_numpy("y").tolist() == (2 * X).tolist()
    assert result.as_numpy("t").tolist() == T.tolist()


def refused(ask: Callable[[], Any], *words: str) -> None:
    with pytest.raises(InferenceServerException, match=words[-1]) as caught:
        ask()
    assert any(word in str(caught.value.status()) for word in words[:2]), caught.value


def ask_alike(client: Any, library: Any) -> None:
    """What both protocols do with the same calls."""
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("digits", headers=TOKEN)
    assert client.is_model_ready("digits", "1", headers=TOKEN)
    check_answer(client.infer("digits", inputs_of(library), headers=TOKEN, request_id="seven"))
    wanted = [library.InferRequestedOutput("y")]
    result = client.infer("digits", inputs_of(library), outputs=wanted, model_version="1", headers=TOKEN)
    assert result.as_numpy("y").tolist() == (2 * X).tolist()
    assert result.as_numpy("t") is None
    infer = client.infer
    refused(lambda: infer("digits", inputs_of(library)), "401", "UNAUTHENTICATED", "no token")
    refused(lambda: infer("other", inputs_of(library), headers=TOKEN), "404", "NOT_FOUND", "no endpoint is called")
    refused(lambda: infer("digits", inputs_of(library)[1:], headers=TOKEN), "400", "INVALID_ARGUMENT", "x is missing")
    shared = client.get_system_shared_memory_status
    refused(lambda: shared(headers=TOKEN), "501", "UNIMPLEMENTED", "a gateway does not do this")
    load_and_unload(client)
    for compression in ("gzip", "deflate"):
        how = "compression_algorithm" if library is over_grpc else "request_compression_algorithm"
        headers = dict(TOKEN)  # the client writes into it
        check_answer(client.infer("digits", inputs_of(library), headers=headers, **{how: compression}))


def load_and_unload(client: Any) -> None:
    def states() -> list[str]:
        index = client.get_model_repository_index(headers=TOKEN)
        models = getattr(index, "models", index)
        found = [(one["name"], one["state"]) if isinstance(one, dict) else (one.name, one.state) for one in models]
        return [state for name, state in found if name == "digits"]

    load, unload = client.load_model, client.unload_model
    unload("digits", headers=TOKEN)
    assert not client.is_model_ready("digits", headers=TOKEN)
    assert states() == ["UNAVAILABLE"]
    load("digits", headers=TOKEN)
    assert client.is_model_ready("digits", headers=TOKEN)
    assert states() == ["READY"]
    refused(lambda: load("other", headers=TOKEN), "404", "NOT_FOUND", "no endpoint is called")
    refused(lambda: load("digits", headers=TOKEN, config="{}"), "400", "INVALID_ARGUMENT", "pliant deploy WHAT")
    files = {"file:1/model.onnx": b"x"}
    refused(
        lambda: load("digits", headers=TOKEN, config="{}", files=files), "400", "INVALID_ARGUMENT", "takes no param"
    )
    refused(lambda: load("digits", headers=BOB), "403", "PERMISSION_DENIED", "the scope 'endpoints:write'")
    refused(lambda: unload("digits", headers=BOB), "403", "PERMISSION_DENIED", "the scope 'endpoints:write'")


def ask_http(address: str) -> None:
    with over_http.InferenceServerClient(address, concurrency=4) as client:
        ask_alike(client, over_http)
        assert client.get_server_metadata(headers=TOKEN)["name"] == "pliant"
        assert client.get_model_metadata("digits", headers=TOKEN)["inputs"][0]["name"] == "x"
        assert client.get_model_config("digits", headers=TOKEN)["max_batch_size"] == 8
        assert client.get_model_repository_index(headers=TOKEN)[0]["state"] == "READY"
        (stats,) = client.get_inference_statistics("digits", headers=TOKEN)["model_stats"]
        assert stats["inference_stats"]["success"]["count"] > 0
        check_answer(client.infer("digits", inputs_of(over_http, binary_data=False), headers=TOKEN))
        json_answer = [over_http.InferRequestedOutput("y", binary_data=False)]
        result = client.infer("digits", inputs_of(over_http), outputs=json_answer, headers=TOKEN)
        assert result.as_numpy("y").tolist() == (2 * X).tolist()
        waiting = [client.async_infer("digits", inputs_of(over_http), headers=TOKEN) for _ in range(4)]
        for one in waiting:
            check_answer(one.get_result())


def ask_grpc(address: str) -> None:
    with over_grpc.InferenceServerClient(address) as client:
        ask_alike(client, over_grpc)
        assert client.get_server_metadata(headers=TOKEN).name == "pliant"
        assert client.get_model_metadata("digits", headers=TOKEN).inputs[0].name == "x"
        config = client.get_model_config("digits", headers=TOKEN).config
        assert (config.max_batch_size, config.input[0].data_type, config.HasField("dynamic_batching")) == (8, 11, True)
        assert list(config.version_policy.specific.versions) == [1]
        assert client.get_model_config("digits", headers=TOKEN, as_json=True)["config"]["backend"] == "pliant"
        assert client.get_model_repository_index(headers=TOKEN).models[0].state == "READY"
        (stats,) = client.get_inference_statistics("digits", headers=TOKEN).model_stats
        assert stats.inference_stats.success.count > 0
        stream(client)
        stream_in_parts(client)
        answers: queue.Queue[Any] = queue.Queue()
        client.async_infer("digits", inputs_of(over_grpc), lambda result, error: answers.put(result), headers=TOKEN)
        check_answer(answers.get(timeout=30))
        slow = [over_grpc.InferInput("x", [1], "FP32"), inputs_of(over_grpc)[1]]
        slow[0].set_data_from_numpy(np.array([-1], dtype=np.float32))
        never = {"headers": TOKEN, "client_timeout": 0.3}
        refused(lambda: client.infer("digits", slow, **never), "DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED", "")


def stream(client: Any) -> None:
    answers: queue.Queue[Any] = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)), headers=TOKEN)
    for number in range(5):
        client.async_stream_infer("digits", inputs_of(over_grpc), request_id=str(number))
    client.async_stream_infer("other", inputs_of(over_grpc))
    client.async_stream_infer("digits", inputs_of(over_grpc), request_id="last", enable_empty_final_response=True)
    for wanted in ("0", "1", "2", "3", "4", None, "last"):
        result, error = answers.get(timeout=30)
        if wanted is None:
            assert "no endpoint is called 'other'" in str(error), error
        else:
            assert error is None, error
            assert result.get_response().id == wanted
            check_answer(result)
            end = result.get_response().parameters
            assert ("triton_final_response" in end) == (wanted == "last")
    assert end["triton_final_response"].bool_param
    client.stop_stream()


def stream_in_parts(client: Any) -> None:
    """`tales` answers with as many parts as `x` has rows, and says so."""
    config = client.get_model_config("tales", headers=TOKEN).config
    assert config.model_transaction_policy.decoupled
    answers: queue.Queue[Any] = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)), headers=TOKEN)
    for number, wants_end in (("0", False), ("1", True)):
        client.async_stream_infer(
            "tales", rows(3), request_id=number, enable_empty_final_response=wants_end, model_version="1"
        )
    heard: dict[str, list[tuple[Any, Any]]] = {"0": [], "1": []}
    for _ in range(7):
        result, error = answers.get(timeout=30)
        assert error is None, error
        response = result.get_response()
        end = response.parameters["triton_final_response"].bool_param if response.parameters else None
        heard[response.id].append((None if result.as_numpy("y") is None else result.as_numpy("y").tolist(), end))
    assert heard["0"] == [([[2.0 * row]], None) for row in range(3)]
    assert heard["1"] == [*(([[2.0 * row]], False) for row in range(3)), (None, True)]
    client.stop_stream()
    refused(lambda: client.infer("tales", rows(2), headers=TOKEN), "INVALID_ARGUMENT", "", "in parts")


def rows(num: int) -> list[Any]:
    made = [over_grpc.InferInput("x", [num, 1], "FP32")]
    made[0].set_data_from_numpy(np.arange(num, dtype=np.float32).reshape(num, 1))
    return made


async def ask_aio(address: str, library: Any, over: Any) -> None:
    async with over.InferenceServerClient(address) as client:
        assert await client.is_server_live()
        assert await client.is_model_ready("digits", headers=TOKEN)
        asked = [client.infer("digits", inputs_of(library), headers=TOKEN) for _ in range(4)]
        for result in await asyncio.gather(*asked):
            check_answer(result)
        with pytest.raises(InferenceServerException, match="no token"):
            await client.infer("digits", inputs_of(library))
        if library is over_grpc:
            await stream_aio(client)


async def stream_aio(client: Any) -> None:
    async def requests() -> Any:
        for number in range(3):
            yield {"model_name": "digits", "inputs": inputs_of(over_grpc), "request_id": str(number)}

    found = [one async for one in client.stream_infer(requests(), headers=TOKEN)]
    assert [result.get_response().id for result, _ in found] == ["0", "1", "2"]

    async def in_parts() -> Any:
        yield {"model_name": "tales", "inputs": rows(3), "request_id": "parts"}

    parts = [result async for result, error in client.stream_infer(in_parts(), headers=TOKEN) if error is None]
    assert [part.as_numpy("y").tolist() for part in parts] == [[[0.0]], [[2.0]], [[4.0]]]
    for result, error in found:
        assert error is None
        check_answer(result)


def main(mode: str, address: str) -> None:
    if mode == "http":
        ask_http(address)
    elif mode == "grpc":
        ask_grpc(address)
    elif mode == "http-aio":
        import tritonclient.http.aio as http_aio

        asyncio.run(ask_aio(address, over_http, http_aio))
    else:
        import tritonclient.grpc.aio as grpc_aio

        asyncio.run(ask_aio(address, over_grpc, grpc_aio))


if __name__ == "__main__":
    main(*sys.argv[1:])
