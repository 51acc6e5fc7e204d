"""A gateway that says who asks, in place of one that has models: what the process around it does is what is tested.

`GET /who` says whose the token is; `GET /slow` waits until a kernel connects, and so does the end of a drain;
`GET /waiting` says how many wait so; `GET /number` and `GET /pid` say which process answers.
"""

import asyncio
import json
import os
import socket
import sys
from typing import Any

import grpc

from pliant.core.errors import Unauthorized, Unavailable
from pliant.core.job import JobId, TaskId
from pliant.core.serving import KernelReady, Serve, VersionLoad
from pliant.entry.gateway.launch import main
from pliant.serve.gateway.callers import CallerBook
from pliant.serve.gateway.grpc.server import GrpcHandler
from pliant.serve.gateway.meter import VersionTotals
from pliant.serve.gateway.model_repository import EndpointSwitch
from pliant.serve.gateway.remote_kernels import KernelPort
from pliant.serve.gateway.version_service import ServiceOwner

TASK = TaskId("job-1.1")


class _Calls:
    def __init__(self, gateway: "SmallGateway") -> None:
        self._gateway = gateway

    def service(self, handler_call_details: Any) -> Any:
        name = handler_call_details.method.removeprefix("/small.Gateway/")
        if name == "Number":
            return grpc.unary_unary_rpc_method_handler(self._number)
        return grpc.unary_unary_rpc_method_handler(self._slow if name == "Slow" else self._who)

    async def _number(self, _message: bytes, _context: Any) -> bytes:
        return json.dumps(self._gateway.number).encode()

    async def _slow(self, message: bytes, context: Any) -> bytes:
        await self._gateway.wait()
        return await self._who(message, context)

    async def _who(self, message: bytes, context: Any) -> bytes:
        said = {key.encode(): value.encode() for key, value in context.invocation_metadata()}
        return json.dumps((await self._gateway.answer(said))[1]).encode()


class SmallGateway:
    """Says who asks."""

    def __init__(
        self,
        *,
        callers: CallerBook,
        switch: EndpointSwitch,
        owner: ServiceOwner,
    ) -> None:
        self._callers = callers
        self._switch = switch
        self._notify = owner.notify
        self._urge = owner.urge
        self.number = owner.share.number
        self._calls = _Calls(self)
        self._names: list[str] = []
        self._kernel = asyncio.Event()
        self._num_waiting = 0
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    @property
    def grpc(self) -> GrpcHandler:
        """The same over gRPC: `/small.Gateway/Who` and `/small.Gateway/Slow`."""
        return self._calls

    def apply(self, serve: Serve) -> None:
        self._names = [endpoint.name for endpoint in serve.endpoints]

    def loads(self) -> tuple[VersionLoad, ...]:
        return ()

    def totals(self, job_id: JobId) -> VersionTotals | None:
        return None

    def ready(self) -> tuple[TaskId, ...]:
        return (TASK,) if self._kernel.is_set() else ()

    async def serve_kernels(self, sock: socket.socket, port: KernelPort | None = None) -> None:
        loop = asyncio.get_running_loop()
        while True:
            kernel, _ = await loop.sock_accept(sock)
            await loop.sock_sendall(kernel, b"welcome")
            kernel.close()
            self._kernel.set()
            self._notify(KernelReady(task_id=TASK))

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/slow":
            await self.wait()
        told = {"/waiting": self._num_waiting, "/number": self.number, "/pid": os.getpid()}.get(scope["path"])
        status, said = (200, told) if told is not None else await self.answer(dict(scope["headers"]))
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(said).encode()})

    async def wait(self) -> None:
        self._num_waiting += 1
        self._is_idle.clear()
        self._urge()
        await self._kernel.wait()
        self._num_waiting -= 1
        if not self._num_waiting:
            self._is_idle.set()

    async def answer(self, headers: dict[bytes, bytes]) -> tuple[int, Any]:
        token = headers.get(b"authorization", b"").decode("latin-1").removeprefix("Bearer ")
        try:
            found = await self._callers.who(token)
        except Unauthorized as error:
            return 401, str(error)
        except Unavailable as error:
            return 503, str(error)
        return 200, [found.name, self._names]

    async def drain(self, timeout_s: float) -> None:
        async with asyncio.timeout(timeout_s):
            await self._is_idle.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], SmallGateway))
