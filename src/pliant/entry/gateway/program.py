"""What runs in one process of a gateway (`GatewayProgram`): HTTP, gRPC, kernels, and the link to the server."""

import asyncio
import logging
import os
import signal
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any, Final, Protocol

import uvicorn

from pliant.api.server_address import ServerAddress
from pliant.core.job import JobId
from pliant.core.serving import KernelEntry
from pliant.entry.gateway.arguments import GatewayArguments
from pliant.entry.gateway.sockets import bind_kernels
from pliant.entry.server.http.protocol import BoundedProtocol
from pliant.entry.server.http.sockets import CountingSocket
from pliant.files.folder import write_whole
from pliant.serve.gateway.callers import CallerBook
from pliant.serve.gateway.certificate import CertificateFiles
from pliant.serve.gateway.gateway_share import GatewayShare
from pliant.serve.gateway.grpc.server import GrpcHandler, GrpcPlace, GrpcServer
from pliant.serve.gateway.kernel_socket import kernel_place_name, open_kernel_socket
from pliant.serve.gateway.known_callers import KnownCallers
from pliant.serve.gateway.meter import VersionTotals
from pliant.serve.gateway.model_repository import EndpointSwitch
from pliant.serve.gateway.remote_kernels import KernelPort
from pliant.serve.gateway.server_link import LinkSettings, Served, ServerLink, gateway_name
from pliant.serve.gateway.version_service import ServiceOwner
from pliant.serve.protocol.kernel_place import KernelPlace
from pliant.serve.protocol.pem import first_certificate

log = logging.getLogger("pliant.gateway")

DRAIN_S: Final = 24.0
"""With `_CLOSE_S` it is what a server waits for, less a little."""
_CLOSE_S: Final = 5
_IDLE_S: Final = 0.5
"""What is left of gRPC after that: streams without a request."""
_LOOK_S: Final = 1.0
"""So often it looks whether there is another certificate."""

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class GatewayRequests(Served, Protocol):
    """What answers requests and holds kernels."""

    @property
    def grpc(self) -> GrpcHandler: ...

    async def serve_kernels(self, sock: socket.socket, port: KernelPort | None = None) -> None: ...

    async def app(self, scope: Any, receive: Receive, send: Send) -> None: ...

    def totals(self, job_id: JobId) -> VersionTotals | None: ...

    async def drain(self, timeout_s: float) -> None: ...


class GatewayMaker(Protocol):
    """Makes it."""

    def __call__(self, *, callers: CallerBook, switch: EndpointSwitch, owner: ServiceOwner) -> GatewayRequests: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayPlaces:
    """Where one process of a gateway is reached; the same for all of them."""

    http: CountingSocket
    http_url: str
    host: str
    """How others name this machine; in brackets if it is an address of IPv6."""
    grpc: GrpcPlace
    speaks_grpc: bool = True
    """Else another process does, at the port of `grpc`."""


class _HttpServer(uvicorn.Server):
    """Uvicorn that hands signals on instead of heeding them."""

    def __init__(self, config: uvicorn.Config, on_signal: Callable[[str], None]) -> None:
        super().__init__(config)
        self._on_signal = on_signal

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        self._on_signal(signal.Signals(sig).name)


class GatewayProgram:
    """All that runs in the process.

    Args:
        arguments: of the process.
        places: where it is reached.
        share: which of several processes it is.
        make: makes what answers requests.
    """

    def __init__(
        self, arguments: GatewayArguments, places: GatewayPlaces, share: GatewayShare, make: GatewayMaker
    ) -> None:
        self._arguments = arguments
        self._places = places
        self._share = share
        self._make = make
        self._asked: list[str] = []
        self._end = asyncio.Event()
        self._hurry = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._entry: KernelEntry | None = None
        """Where kernels of other machines connect; the server of another machine tells them."""
        self._certificate: CertificateFiles | None = None
        if arguments.certificate is not None and arguments.key_file is not None:
            self._certificate = CertificateFiles(arguments.certificate, arguments.key_file)

    async def run(self) -> int:
        """Serve until told to end; return the exit code."""
        self._loop = asyncio.get_running_loop()
        arguments, places, clock = self._arguments, self._places, time.monotonic
        calls = GrpcServer(places.grpc) if places.speaks_grpc else None
        settings = LinkSettings(
            name=gateway_name(self._share.number, arguments.machine),
            number=self._share.number,
            machine=arguments.machine,
            kernels=lambda: self._entry,
            key=arguments.key,
            pid=os.getpid(),
            http_url=places.http_url,
            grpc_address=f"{places.host}:{places.grpc.port if calls is None else calls.port}",
            orphan_s=arguments.orphan_s,
        )
        address = ServerAddress("http://127.0.0.1:9", arguments.server_file)
        link = ServerLink(settings, address=address, clock=clock, elsewhere=self._share.elsewhere)
        callers = KnownCallers(link, clock, self._share)
        owner = ServiceOwner(clock=clock, notify=link.notify, forget=link.forget, urge=link.urge, share=self._share)
        gateway = self._make(callers=callers, switch=link, owner=owner)
        server = _HttpServer(self._config(gateway), self._on_signal)
        renewing = asyncio.create_task(self._renew(server.config, calls, link))
        with ExitStack() as stack:
            kernels = stack.enter_context(closing(open_kernel_socket(arguments.server_file.parent, self._share.number)))
            port = self._open_kernel_port(server.config.ssl, stack)
            tasks = [
                asyncio.create_task(server.serve(sockets=[places.http]), name="http"),
                asyncio.create_task(link.run(gateway, callers), name="link"),
                asyncio.create_task(gateway.serve_kernels(kernels, port), name="kernels"),
            ]
            if self._share.siblings is not None:
                tasks.append(asyncio.create_task(self._share.siblings.listen(gateway.totals), name="siblings"))
            if calls is not None:
                tasks.append(asyncio.create_task(calls.serve(gateway.grpc), name="grpc"))
            log.info("the gateway listens at %s, and speaks gRPC at %s", settings.http_url, settings.grpc_address)
            try:
                return await self._until_end(gateway, server, calls, tasks)
            finally:
                renewing.cancel()

    def _open_kernel_port(self, context: ssl.SSLContext | None, stack: ExitStack) -> KernelPort | None:
        """Listen for kernels of other machines, if there may be some, and say where, until the end.

        Raises:
            OSError: there is no port, or it cannot be said.
        """
        arguments, number = self._arguments, self._share.number
        if arguments.kernel_host is None or context is None:
            return None
        wanted = arguments.kernel_port + number - arguments.first if arguments.kernel_port else 0
        sock = stack.enter_context(closing(bind_kernels(arguments.kernel_host, wanted)))
        place = KernelPlace(host=arguments.kernel_host, port=sock.getsockname()[1], server_name=arguments.kernel_name)
        if arguments.machine and arguments.certificate is not None:
            self._say_entry(place, arguments.certificate.read_bytes())
        else:
            file = arguments.server_file.parent / kernel_place_name(number)
            stack.callback(file.unlink, missing_ok=True)
            write_whole(file, place.to_json(), durable=False, mode=0o644)
        log.info("kernels of other machines connect to %s", place)
        return KernelPort(sock=sock, context=context)

    def _say_entry(self, place: KernelPlace | KernelEntry, chain: bytes) -> None:
        """Have the server told where kernels connect, and by which certificate they know this gateway.

        Raises:
            OSError: there is no certificate.
        """
        try:
            own = first_certificate(chain.decode("ascii", "replace"))
        except ValueError as error:
            raise OSError(f"{self._arguments.certificate}: {error}") from error
        self._entry = KernelEntry(host=place.host, port=place.port, server_name=place.server_name, certificate=own)

    async def _renew(self, config: uvicorn.Config, calls: GrpcServer | None, link: ServerLink) -> None:
        """Show a certificate that is put in the place of the one before, from then on."""
        while self._certificate is not None and config.ssl is not None:
            await asyncio.sleep(_LOOK_S)
            newer = self._certificate.read_newer(config.ssl)
            if newer is None:
                continue
            if calls is not None:
                calls.renew(newer)
            if self._entry is not None:
                self._say_entry(self._entry, newer.certificate)
                link.renew()

    async def _until_end(
        self,
        gateway: GatewayRequests,
        server: uvicorn.Server,
        calls: GrpcServer | None,
        tasks: Sequence[asyncio.Task[Any]],
    ) -> int:
        """Wait for the end, finish what was begun, and end; return the exit code."""
        serving, linked = tasks[:2]
        end = asyncio.create_task(self._end.wait())
        await asyncio.wait([*tasks, end], return_when=asyncio.FIRST_COMPLETED)
        broken = [task for task in tasks if task.done() and (task is not linked or task.exception() is not None)]
        for task in broken:
            log.error("%s has ended, and with it the gateway", task.get_name(), exc_info=task.exception())
        if not broken:
            reason = linked.result() if linked.done() else " ".join(self._asked)
            log.info("the gateway finishes what it has, and ends: %s", reason)
            await self._drain(gateway)
        server.should_exit = True
        if calls is not None:
            await calls.close(_IDLE_S)
        if not serving.done():
            await asyncio.wait([serving], timeout=2 * _CLOSE_S)
        for task in (*tasks, end):
            task.cancel()
        await asyncio.gather(*tasks, end, return_exceptions=True)
        return 1 if broken else 0

    async def _drain(self, gateway: GatewayRequests) -> None:
        """Let it answer what it has; asked again, end at once."""
        draining = asyncio.create_task(gateway.drain(DRAIN_S))
        hurried = asyncio.create_task(self._hurry.wait())
        await asyncio.wait([draining, hurried], timeout=DRAIN_S, return_when=asyncio.FIRST_COMPLETED)
        for task in (draining, hurried):
            task.cancel()
        results = await asyncio.gather(draining, hurried, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                log.error("what was under way could not be finished", exc_info=result)

    def _on_signal(self, name: str) -> None:
        """Begin to end; called by a signal handler."""
        self._asked.append(name)
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: it has ended
                self._loop.call_soon_threadsafe((self._hurry if self._end.is_set() else self._end).set)

    def _config(self, gateway: GatewayRequests) -> uvicorn.Config:
        """Return how uvicorn serves here, over TLS 1.2 or newer if there is a certificate."""
        arguments, counts = self._arguments, self._places.http.counts
        config = uvicorn.Config(
            gateway.app,
            interface="asgi3",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            loop="asyncio",
            http=partial(BoundedProtocol, counts=counts),  # type: ignore[arg-type]
            ws="none",
            timeout_keep_alive=int(counts.limits.idle_s),
            timeout_graceful_shutdown=_CLOSE_S,
            ssl_certfile=arguments.certificate,
            ssl_keyfile=arguments.key_file,
        )
        config.load()
        if config.ssl is not None:
            config.ssl.minimum_version = ssl.TLSVersion.TLSv1_2
        return config
