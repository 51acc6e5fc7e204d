"""The data plane of inference: requests come by HTTP and gRPC, wait in queues, and go to kernels as these have room.

    clients ── HTTP ──▶ HttpApi ─┐
    clients ── gRPC ──▶ GrpcApi ─┴▶ VersionService (queue, one per version) ──▶ KernelLink ── socket, or TLS ──▶ kernels

What there is to serve comes from outside (`apply`), and so do tokens' owners, time and the listening sockets; what
others should know goes out (`loads`, `ready`, and what the owner hears). Knows no server.
One ticker looks after all deadlines. Belongs to one event loop.
"""

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Mapping
from typing import Any, Final

from pliant.core.job import JobId, TaskId
from pliant.core.serving import Serve, VersionLoad
from pliant.serve.gateway.access import EndpointAccess
from pliant.serve.gateway.admission import MAX_BYTES, Admission
from pliant.serve.gateway.callers import CallerBook
from pliant.serve.gateway.endpoint_table import EndpointTable
from pliant.serve.gateway.grpc.api import GrpcApi
from pliant.serve.gateway.grpc.inferring import GrpcInferences
from pliant.serve.gateway.grpc.questions import GrpcQuestions
from pliant.serve.gateway.http_api import HttpApi
from pliant.serve.gateway.http_parts import Send
from pliant.serve.gateway.inferences import Inferences
from pliant.serve.gateway.kernel_listener import KernelListener
from pliant.serve.gateway.link_memory import MAX_LINK_BYTES, LinkMemory
from pliant.serve.gateway.meter import VersionTotals
from pliant.serve.gateway.model_repository import EndpointSwitch, ModelRepository
from pliant.serve.gateway.refused import Refused
from pliant.serve.gateway.remote_kernels import KernelPort
from pliant.serve.gateway.request_body import BodyReader, Receive
from pliant.serve.gateway.statistics import ModelStatistics
from pliant.serve.gateway.version_service import ServiceOwner, VersionService

TICK_S: Final = 0.1
_STOOD_STILL_S: Final = 2.0
"""After such a gap between two ticks it was this process that was silent, not the kernels."""
_log = logging.getLogger(__name__)


class Gateway:
    """Serves endpoints.

    Args:
        callers: knows whose tokens are.
        switch: starts and stops endpoints for those who may.
        owner: gives time, and hears what others should know.
        admission: how much is taken in at once; None: what those of this machine may, divided among them.
        memory: how much the connections of kernels may hold; None: the same.
    """

    def __init__(
        self,
        *,
        callers: CallerBook,
        switch: EndpointSwitch,
        owner: ServiceOwner,
        admission: Admission | None = None,
        memory: LinkMemory | None = None,
    ) -> None:
        clock, num_here = owner.clock, owner.share.num_here
        self._is_one_of_several = owner.share.of > 1
        self._clock = clock
        self._jobs: dict[JobId, VersionService] = {}
        self._table = EndpointTable(owner)
        memory = memory or LinkMemory(MAX_LINK_BYTES // num_here)
        self._kernels = KernelListener(self._table.find_job, clock, memory)
        self._access = EndpointAccess(self._table, callers)
        self._admission = admission or Admission(max_bytes=MAX_BYTES // num_here)
        self._inferences = Inferences(clock)
        self._bodies = BodyReader(clock)
        self._repository = ModelRepository(self._table, self._access, switch, clock)
        share = owner.share
        statistics = ModelStatistics(share.siblings, share.elsewhere, unix_ms_of=(time.time() - clock()) * 1000)
        self._http = HttpApi(
            table=self._table,
            access=self._access,
            admission=self._admission,
            inferences=self._inferences,
            bodies=self._bodies,
            repository=self._repository,
            statistics=statistics,
        )
        self.grpc = GrpcApi(
            access=self._access,
            admission=self._admission,
            inferences=GrpcInferences(self._access, self._inferences),
            questions=GrpcQuestions(self._access, statistics),
            bodies=self._bodies,
            repository=self._repository,
            is_ready=lambda: self._table.is_known and not self._admission.is_draining,
        )
        self._ticked_at = clock()

    def apply(self, serve: Serve) -> None:
        """Serve what there is now."""
        self._table.apply(serve)
        self._jobs = {service.version.job_id: service for service in self._table.services()}
        self._kernels.review()

    def loads(self) -> tuple[VersionLoad, ...]:
        """Return what every version had to do since the last call."""
        now = self._clock()
        if self._is_one_of_several:
            return tuple(service.meter.count(now, service.load(now)) for service in self._table.services())
        return tuple(service.load(now) for service in self._table.services())

    def totals(self, job_id: JobId) -> VersionTotals | None:
        """Return what was counted of a version here, for other gateways; None if it is not served."""
        service = self._jobs.get(job_id)
        return None if service is None else service.meter.totals

    def ready(self) -> tuple[TaskId, ...]:
        """Return the kernels that take requests."""
        return tuple(task_id for service in self._table.services() for task_id in service.ready())

    async def serve_kernels(self, sock: socket.socket, port: KernelPort | None = None) -> None:
        """Take kernels and look after deadlines until it is cancelled; then all kernels are cut off.

        Args:
            sock: a UNIX stream socket that listens.
            port: where kernels of other machines connect, if they may.
        """
        ticker = asyncio.create_task(self._tick_on())
        try:
            await self._kernels.listen(sock, port)
        finally:
            ticker.cancel()
            self._table.each_service(lambda service: service.cut_kernels())
            with contextlib.suppress(asyncio.CancelledError):
                await ticker

    def tick(self) -> None:
        """End what is overdue: requests, bodies, kernels."""
        now = self._clock()
        gap, self._ticked_at = now - self._ticked_at, now
        if gap > _STOOD_STILL_S:
            self._table.each_service(lambda service: service.forgive(now))
        self._bodies.tick(now)
        self._inferences.tick(now)
        self._repository.tick(now)
        self._kernels.tick(now)
        self._table.each_service(lambda service: service.tick(now))

    async def app(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request: the ASGI application."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1003})

    async def drain(self, timeout_s: float) -> None:
        """Refuse new requests from now on, and return when the others are over, or the time is."""
        self._repository.end()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._admission.drain()

    async def _answer(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        has_begun = False

        async def note(message: dict[str, Any]) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._http.answer(scope, receive, note)
        except Exception:  # noqa: BLE001 (one request must not end the others)
            _log.exception("a request was not answered because of a fault of the gateway")
            if not has_begun:
                fault = Refused(500, "the gateway has a fault of its own, which its log names; please report it")
                body = b'{"error": "%s"}' % fault.message.encode()
                headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
                await send({"type": "http.response.start", "status": fault.status, "headers": headers})
                await send({"type": "http.response.body", "body": body})

    async def _tick_on(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            try:
                self.tick()
            except Exception:  # noqa: BLE001 (without ticks nothing would ever be overdue again)
                _log.exception("a tick of the gateway has failed")


async def _live(receive: Receive, send: Send) -> None:
    """Take part in the beginning and the end of the process: there is nothing to do."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
