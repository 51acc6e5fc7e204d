"""Unmodified clients of Triton ask a gateway over HTTP and gRPC, sync and asyncio: real sockets, a played kernel."""

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import uvicorn
from tests.serve.gateway.played import FakeKernel, Played, endpoint, in_loop, version
from tests.serve.gateway.played_grpc import Spoken, spoken

from pliant.core.errors import InvalidInput
from pliant.core.serving import ServedEndpoint, SwitchOutcome
from pliant.serve.protocol.frames import KernelFrame, KernelFrameKind
from pliant.serve.protocol.grpc.infer import decode_grpc, encode_grpc
from pliant.serve.protocol.v2 import InferRequest, decode_request, encode_response

PROGRAM = str(Path(__file__).with_name("triton_program.py"))
METADATA = {
    "platform": "python",
    "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}, {"name": "t", "datatype": "BYTES", "shape": [-1]}],
    "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 4]}, {"name": "t", "datatype": "BYTES", "shape": [-1]}],
    "max_batch_size": 8,
}


def switch(world: Played, served: ServedEndpoint, other: ServedEndpoint, _: str, start: bool) -> SwitchOutcome:
    """Start or stop as the server does: kernels come and go, and the gateway hears of it afterwards."""
    if world.switches.asked[-1][0] == "bob":
        return SwitchOutcome(number=1, status=403, message="it needs the scope 'endpoints:write'")
    revision = len(world.switches.asked)

    async def follow() -> None:
        now = replace(served, revision=revision, started=start, versions=served.versions if start else ())
        world.apply(now, other)
        if start:
            world.spawn(compute(await world.kernel()))

    world.spawn(follow())
    return SwitchOutcome(number=1, status=200, revision=revision)


def outputs_of(asked: InferRequest) -> dict[str, np.ndarray]:
    given = {tensor.name: tensor.data for tensor in asked.inputs}
    if "x" not in given:
        raise InvalidInput.at("inputs", "x is missing")
    return {"y": given["x"] * 2, "t": given["t"]}


async def tell(kernel: FakeKernel) -> None:
    """Answer as the kernel of a model that answers in parts: a part for each row, or none if one answer is wanted."""
    while (frame := await kernel.next()) is not None:
        if frame.kind is not KernelFrameKind.REQUEST:
            continue
        asked = decode_grpc(bytes(frame.body))
        if not frame.header.get("parts"):
            kernel.answer(frame, b'{"error": "this model answers in parts"}', status=400)
            continue
        for row in asked.inputs[0].data:
            body = encode_grpc(asked, "tales", "1", {"y": 2 * row.reshape(1, 1)})
            kernel.send(KernelFrameKind.PART, body, id=frame.header["id"])
        kernel.answer(frame, b"")


async def compute(kernel: FakeKernel) -> None:
    """Answer as a kernel does; a negative `x` of one number is never answered."""
    while (frame := await kernel.next()) is not None:
        if frame.kind is KernelFrameKind.REQUEST:
            answer(kernel, frame)


def answer(kernel: FakeKernel, frame: KernelFrame) -> None:
    num_json = None
    try:
        if frame.header["api"] == "grpc":
            asked = decode_grpc(bytes(frame.body))
            if asked.inputs[0].data.tolist() == [-1]:
                return
            body = encode_grpc(asked, "digits", "1", outputs_of(asked))
        else:
            asked = decode_request(bytes(frame.body), frame.header.get("json"))
            body, num_json = encode_response(asked, "digits", "1", outputs_of(asked))
    except InvalidInput as error:
        kernel.answer(frame, b'{"error": "%s"}' % str(error).encode(), status=400)
        return
    kernel.answer(frame, body, busy_s=0.001, batch=1, **({} if num_json is None else {"json": num_json}))


@contextlib.asynccontextmanager
async def http(said: Spoken) -> AsyncIterator[str]:
    """The gateway's HTTP at a port."""
    config = uvicorn.Config(
        said.world.gateway.app, interface="asgi3", lifespan="off", log_config=None, access_log=False
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as sock:
        serving = said.world.spawn(server.serve(sockets=[sock]))
        try:
            yield f"127.0.0.1:{sock.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving


@pytest.mark.parametrize("mode", ["http", "http-aio", "grpc", "grpc-aio"])
@in_loop
async def test_the_clients_of_triton_find_all_that_they_expect(mode: str) -> None:
    served = endpoint(version(metadata=METADATA), batch_size=8, shared_with=("bob",))
    tales = endpoint(version(job="job-10"), name="tales")
    async with spoken(served, tales) as said, http(said) as address:
        said.world.switches.do = partial(switch, said.world, served, tales)
        said.world.spawn(compute(await said.world.kernel()))
        said.world.spawn(tell(await said.world.kernel("job-10.0", decoupled=True)))
        given = address if mode.startswith("http") else said.address
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-P", PROGRAM, mode, given, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        try:
            async with asyncio.timeout(50):
                printed, _ = await child.communicate()
        finally:
            if child.returncode is None:
                child.kill()
        assert child.returncode == 0, printed.decode()
