"""A server whose endpoints have a gateway that a test plays: it takes requests at a port, and answers as it is told."""

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import uvicorn
from tests.server.conftest import Served, wait_for

from pliant.core.serving import GatewayHello
from pliant.server.endpoint_requests import EndpointRequests
from pliant.server.endpoint_views import ShownEndpoints


class ServedWithGateway(Served):
    """A server whose endpoints have a gateway, which a test plays."""

    gateway_url: str | None = None

    def shown_endpoints(self) -> EndpointRequests:
        """Return the real use cases."""
        return ShownEndpoints(self.room.catalog, self.control.kernels.statuses, self._hellos)

    def _hellos(self) -> tuple[GatewayHello, ...]:
        if self.gateway_url is None:
            return ()
        return (GatewayHello(pid=1, http_url=self.gateway_url, grpc_address="127.0.0.1:7313"),)


class PlayedGateway:
    """Takes requests at a port and answers them as a test says."""

    def __init__(self) -> None:
        self.seen: list[tuple[Mapping[str, Any], dict[str, str], bytes]] = []
        self.status = 200
        self.reads = True
        self.answers = threading.Event()
        self.answers.set()
        self.lost = threading.Event()
        config = uvicorn.Config(self._app, port=0, log_level="error", interface="asgi3", lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._server.serve()), daemon=True)
        self._thread.start()
        wait_for(lambda: self._server.started)
        (listening,) = self._server.servers[0].sockets
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while self.reads and (message := await receive())["type"] == "http.request":
            body += message["body"]
            if not message["more_body"]:
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.seen.append((scope, headers, body))
        if not self.answers.is_set():
            while (await receive())["type"] != "http.disconnect":
                pass
            self.lost.set()
            return
        about = [(b"content-type", b"application/json"), (b"retry-after", b"3")]
        await send({"type": "http.response.start", "status": self.status, "headers": about})
        answer = body if self.reads else b'{"error": "too long"}'
        await send({"type": "http.response.body", "body": answer})

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(30)
