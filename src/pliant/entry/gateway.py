"""The process of a gateway: it answers requests for endpoints, and outlives the server that has started it.

    PLIANT_GATEWAY_KEY=… python -P -m pliant.entry.gateway --server-file HOME/address/server.json \\
        --state HOME/gateway --host 127.0.0.1 --port 7312 --grpc-port 7313

Exit codes: 0 when it was told to end, or no server was there for very long; 1 after a fault; 2 if it could not start;
3 if another one runs with this state folder. Not for people.
"""

import argparse
import asyncio
import errno
import fcntl
import json
import logging
import os
import signal
import socket
import ssl
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import FrameType
from typing import Any, Final, Protocol

import uvicorn

from pliant.api.server_address import ServerAddress
from pliant.cluster.process import stamp
from pliant.core.serving import KernelHung, KernelReady
from pliant.entry.server.http.connections import ConnectionCounts
from pliant.entry.server.http.limits import allow_open_files, limits_for
from pliant.entry.server.http.protocol import BoundedProtocol
from pliant.entry.server.http.sockets import CountingSocket
from pliant.files.folder import write_whole
from pliant.serve.gateway.callers import CallerBook
from pliant.serve.gateway.certificate import CertificateFiles
from pliant.serve.gateway.gateway import Gateway
from pliant.serve.gateway.gateway_files import KEY_VARIABLE, LOCK, LOG, RECORD, SECOND
from pliant.serve.gateway.grpc.server import GrpcHandler, GrpcPlace, GrpcServer
from pliant.serve.gateway.kernel_socket import open_kernel_socket, remove_kernel_socket
from pliant.serve.gateway.known_callers import KnownCallers
from pliant.serve.gateway.model_repository import EndpointSwitch
from pliant.serve.gateway.server_link import ORPHAN_S, LinkSettings, Served, ServerLink

log = logging.getLogger("pliant.gateway")

DRAIN_S: Final = 24.0
"""With `_CLOSE_S` it is what a server waits for, less a little."""
_CLOSE_S: Final = 5
_IDLE_S: Final = 0.5
"""What is left of gRPC after that: streams without a request."""
_LOOK_S: Final = 1.0
"""So often it looks whether there is another certificate."""
_MAX_LOG_BYTES: Final = 8 << 20
_LOOPBACK: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class GatewayRequests(Served, Protocol):
    """What answers requests and holds kernels."""

    @property
    def grpc(self) -> GrpcHandler: ...

    async def serve_kernels(self, sock: socket.socket) -> None: ...

    async def app(self, scope: Any, receive: Receive, send: Send) -> None: ...

    async def drain(self, timeout_s: float) -> None: ...


class GatewayMaker(Protocol):
    """Makes it."""

    def __call__(
        self,
        *,
        callers: CallerBook,
        switch: EndpointSwitch,
        clock: Callable[[], float],
        notify: Callable[[KernelReady | KernelHung], None],
        urge: Callable[[], None],
    ) -> GatewayRequests: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayArguments:
    """What the process is told at its start."""

    server_file: Path
    state: Path
    host: str
    port: int
    """0 takes any free one."""
    grpc_port: int = 0
    """The same for gRPC."""
    public_host: str | None = None
    """How others name this machine; None: `host`."""
    certificate: Path | None = None
    key_file: Path | None = None
    key: str = field(repr=False)
    """What opens the link to the server."""
    orphan_s: float = ORPHAN_S
    given: tuple[str, ...] = ()
    """All of this as it was written, for a server that wants another gateway than this one."""


def read_arguments(argv: Sequence[str], key: str) -> GatewayArguments:
    """Read the command line; ends the process with a usage message if it cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m pliant.entry.gateway", description="The gateway of endpoints.")
    parser.add_argument("--server-file", type=Path, required=True, help="says where the server is")
    parser.add_argument("--state", type=Path, required=True, help="folder of the gateway's own files")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=0, help="0 takes any free one (%(default)s)")
    parser.add_argument("--grpc-port", type=int, default=0, help="of gRPC; 0 takes any free one (%(default)s)")
    parser.add_argument("--public-host", help="how others name this machine; default: the address")
    parser.add_argument("--certificate", type=Path, help="serve HTTPS with it (PEM)")
    parser.add_argument("--key", type=Path, help="the private key of the certificate (PEM)")
    parser.add_argument("--orphan-s", type=float, default=ORPHAN_S, help="end when no server was there for so long")
    given = parser.parse_args(argv)
    if (given.certificate is None) != (given.key is None):
        parser.error("--certificate and --key belong together; give both or none")
    if not key:
        parser.error(f"the variable {KEY_VARIABLE} is missing; the server sets it when it starts the gateway")
    return GatewayArguments(
        server_file=given.server_file.absolute(),
        state=given.state.absolute(),
        host=given.host,
        port=given.port,
        grpc_port=given.grpc_port,
        public_host=given.public_host,
        certificate=given.certificate,
        key_file=given.key,
        key=key,
        orphan_s=given.orphan_s,
        given=tuple(argv),
    )


def main(argv: Sequence[str], make: GatewayMaker | None = None) -> int:
    """Run the gateway until it is told to end; return the exit code.

    Args:
        argv: the arguments.
        make: makes what answers requests; None: Pliant's own.
    """
    arguments = read_arguments(argv, os.environ.pop(KEY_VARIABLE, ""))
    os.umask(0o077)
    try:
        with ExitStack() as stack:
            arguments.state.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _take_lock(arguments.state, stack):
                print(f"pliant: another gateway runs with the state folder {arguments.state}", file=sys.stderr)
                return SECOND
            _log_to(arguments.state / LOG, stack)
            sock = stack.enter_context(closing(_bind(arguments.host, arguments.port)))
            program = GatewayProgram(arguments, sock, make or Gateway)
            stack.callback((arguments.state / RECORD).unlink, missing_ok=True)
            write_whole(arguments.state / RECORD, json.dumps(program.record()).encode())
            return asyncio.run(program.run())
    except OSError as error:
        print(f"pliant: the gateway cannot start: {error}", file=sys.stderr)
        return 2


def _take_lock(state: Path, stack: ExitStack) -> bool:
    """Take the lock of the state folder until the process ends, unless another process has it."""
    file = os.open(state / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    stack.callback(os.close, file)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _log_to(path: Path, stack: ExitStack) -> None:
    handler = RotatingFileHandler(path, maxBytes=_MAX_LOG_BYTES, backupCount=1, encoding="utf-8")
    stack.callback(handler.close)
    line = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(handlers=[handler], level=logging.INFO, format=line, force=True)
    for chatty in ("uvicorn", "websockets"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # it warns of every broken request of a stranger
    logging.getLogger("grpc").setLevel(logging.CRITICAL)  # it shows a stack for every client that has gone


def _bind(host: str, port: int) -> CountingSocket:
    """Return a socket on an address; on any free port if this one is taken.

    Raises:
        OSError: there is no such address here.
    """
    sock = CountingSocket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # inherited; else each answer waits for an ACK
        try:
            sock.bind((host, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            sock.bind((host, 0))
            log.warning("port %d of %s is taken; the gateway listens at port %d", port, host, sock.getsockname()[1])
        sock.counts = ConnectionCounts(limits_for(allow_open_files()))
    except OSError:
        sock.close()
        raise
    return sock


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
        sock: the bound socket for people.
        make: makes what answers requests.
    """

    def __init__(self, arguments: GatewayArguments, sock: CountingSocket, make: GatewayMaker) -> None:
        self._arguments = arguments
        self._sock = sock
        self._make = make
        self._asked: list[str] = []
        self._end = asyncio.Event()
        self._hurry = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._certificate: CertificateFiles | None = None
        if arguments.certificate is not None and arguments.key_file is not None:
            self._certificate = CertificateFiles(arguments.certificate, arguments.key_file)

    @property
    def url(self) -> str:
        """Where people reach it."""
        scheme = "http" if self._arguments.certificate is None else "https"
        return f"{scheme}://{self._host}:{self._sock.getsockname()[1]}"

    @property
    def _host(self) -> str:
        bound = self._sock.getsockname()[0]
        host = self._arguments.public_host or _LOOPBACK.get(bound, bound)
        return f"[{host}]" if ":" in host else host

    def _grpc_place(self) -> GrpcPlace:
        given = self._arguments
        return GrpcPlace(host=given.host, port=given.grpc_port, certificate=given.certificate, key_file=given.key_file)

    def record(self) -> dict[str, object]:
        """Return what the next server knows this process by."""
        return {
            "pid": os.getpid(),
            "stamp": stamp(os.getpid()),
            "url": self.url,
            "arguments": list(self._arguments.given),
        }

    async def run(self) -> int:
        """Serve until told to end; return the exit code."""
        self._loop = asyncio.get_running_loop()
        arguments, clock = self._arguments, time.monotonic
        calls = GrpcServer(self._grpc_place())
        settings = LinkSettings(
            key=arguments.key,
            pid=os.getpid(),
            http_url=self.url,
            grpc_address=f"{self._host}:{calls.port}",
            orphan_s=arguments.orphan_s,
        )
        link = ServerLink(settings, address=ServerAddress("http://127.0.0.1:9", arguments.server_file), clock=clock)
        callers = KnownCallers(link, clock)
        gateway = self._make(callers=callers, switch=link, clock=clock, notify=link.notify, urge=link.urge)
        server = _HttpServer(self._config(gateway), self._on_signal)
        renewing = asyncio.create_task(self._renew(server.config, calls))
        folder = arguments.server_file.parent
        with closing(open_kernel_socket(folder)) as kernels:
            tasks = (
                asyncio.create_task(server.serve(sockets=[self._sock]), name="http"),
                asyncio.create_task(gateway.serve_kernels(kernels), name="kernels"),
                asyncio.create_task(link.run(gateway, callers), name="link"),
                asyncio.create_task(calls.serve(gateway.grpc), name="grpc"),
            )
            log.info("the gateway listens at %s, and speaks gRPC at %s", self.url, settings.grpc_address)
            try:
                return await self._until_end(gateway, server, calls, tasks)
            finally:
                renewing.cancel()
                remove_kernel_socket(folder)

    async def _renew(self, config: uvicorn.Config, calls: GrpcServer) -> None:
        """Show a certificate that is put in the place of the one before, from then on."""
        while self._certificate is not None and config.ssl is not None:
            await asyncio.sleep(_LOOK_S)
            newer = self._certificate.read_newer(config.ssl)
            if newer is not None:
                calls.renew(newer)

    async def _until_end(
        self,
        gateway: GatewayRequests,
        server: uvicorn.Server,
        calls: GrpcServer,
        tasks: tuple[asyncio.Task[Any], ...],
    ) -> int:
        """Wait for the end, finish what was begun, and end; return the exit code."""
        serving, _, linked, _ = tasks
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
        arguments, counts = self._arguments, self._sock.counts
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
