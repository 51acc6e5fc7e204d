"""The gateway behind a real HTTP server: connections that live on, streams, and clients that hang up."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import uvicorn
from tests.serve.gateway.played import Played, endpoint, in_loop, played, version

from pliant.serve.protocol.frames import KernelFrameKind


@asynccontextmanager
async def served(world: Played) -> AsyncIterator[int]:
    """Yield the port of a server."""
    config = uvicorn.Config(
        world.gateway.app,
        interface="asgi3",  # a bound method is taken for ASGI 2 otherwise
        log_config=None,
        access_log=False,
        ws="none",
        loop="asyncio",
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await task


@in_loop
async def test_requests_streams_and_refusals_follow_each_other_on_one_connection() -> None:
    async with (
        played(endpoint(version())) as world,
        served(world) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", limits=httpx.Limits(max_connections=1)) as client,
    ):
        kernel = await world.kernel()
        path, headers = "/v2/models/digits/infer", {"X-Auth-Token": "ada"}
        big = world.spawn(client.post(path, content=b"x" * 3_000_000, headers=headers))
        kernel.answer(await kernel.request())
        assert (await big).content == b"x" * 3_000_000
        assert (await client.post(path, content=b"y" * 1000)).status_code == 401

        streamed = world.spawn(client.post(path, content=b"{}", headers={**headers, "Accept": "application/x-ndjson"}))
        number = (await kernel.request()).header["id"]
        kernel.send(KernelFrameKind.PART, b"one ", id=number)
        kernel.send(KernelFrameKind.RESULT, b"two", id=number)
        response = await streamed
        assert (response.content, response.headers["transfer-encoding"]) == (b"one \ntwo\n", "chunked")

        assert (await client.get("/v2/health/ready")).status_code == 200


@in_loop
async def test_a_client_that_hangs_up_is_noticed_without_any_further_request() -> None:
    async with played(endpoint(version())) as world, served(world) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        head = b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: a\r\nX-Auth-Token: ada\r\nContent-Length: 2\r\n\r\n{}"
        writer.write(head)
        await world.until(lambda: world.load() == (1, 0))
        writer.close()

        await world.until(lambda: world.load() == (0, 0))
