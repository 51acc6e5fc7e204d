"""A gateway in one event loop; kernels that do what a test says, over real sockets; a clock that a test moves."""

import asyncio
import contextlib
import functools
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ParamSpec, Self

import httpx

from pliant.core.errors import Unauthorized, Unavailable
from pliant.core.job import JobId, TaskId
from pliant.core.serving import (
    KernelHung,
    KernelReady,
    RequestLimits,
    Serve,
    ServedEndpoint,
    ServedVersion,
    SwitchOutcome,
)
from pliant.core.serving_profile import ServingProfile
from pliant.serve.gateway.admission import Admission
from pliant.serve.gateway.callers import CallerRights
from pliant.serve.gateway.gateway import Gateway
from pliant.serve.gateway.gateway_share import ALONE, GatewayShare
from pliant.serve.gateway.link_memory import LinkMemory
from pliant.serve.gateway.remote_kernels import KernelPort
from pliant.serve.gateway.request_limiter import RequestLimiter
from pliant.serve.gateway.version_service import ServiceOwner
from pliant.serve.protocol.frames import KernelFrame, KernelFrameKind, KernelFrameReader, encode_frame

P = ParamSpec("P")
PATIENCE_S = 20.0
METADATA = {
    "platform": "pytorch",
    "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}],
    "outputs": [{"name": "y", "datatype": "BYTES", "shape": [-1]}],
    "max_batch_size": 8,
}


def version(number: int = 1, *, job: str = "job-9", weight: int = 1, **more: Any) -> ServedVersion:
    return ServedVersion(number=number, job_id=JobId(job), token=f"token of {job}", weight=weight, **more)


def endpoint(
    *versions: ServedVersion,
    name: str = "digits",
    started: bool = True,
    shared_with: tuple[str, ...] = (),
    why_not: str = "",
    revision: int = 0,
    **profile: Any,
) -> ServedEndpoint:
    return ServedEndpoint(
        name=name,
        owner="ada",
        shared_with=shared_with,
        started=started,
        profile=ServingProfile(**{"batch_size": 2, "pipe_size": 1, **profile}),
        versions=versions,
        why_not=why_not,
        revision=revision,
    )


def in_loop(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Run a test in an event loop of its own."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        async def main() -> None:
            await test(*args, **kwargs)

        asyncio.run(main())

    return run


class Callers:
    """Knows three people: `ada`, `bob`, and `root`, who sees all; each is called as their token. Tests add others."""

    def __init__(self) -> None:
        self.more: dict[str, CallerRights] = {}

    async def who(self, token: str) -> CallerRights:
        if token == "away":
            raise Unavailable("the server does not answer")
        if token == "broken":
            raise RuntimeError("a fault")
        if token in self.more:
            return self.more[token]
        if token not in ("ada", "bob", "root", "viewer"):
            raise Unauthorized("the token opens nothing")
        return CallerRights(name=token, sees_all=token == "root", may_infer=token != "viewer")


class Switches:
    """The server, as far as it starts and stops endpoints: writes down what it is asked, and does what a test says."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, bool, str]] = []
        self.do: Callable[[str, bool], SwitchOutcome] = lambda name, start: SwitchOutcome(number=1, status=200)

    async def switch(self, token: str, endpoint: str, *, start: bool, address: str) -> SwitchOutcome:
        self.asked.append((token, endpoint, start, address))
        if token == "away":
            raise Unavailable("the server does not answer")
        return self.do(endpoint, start)


class FakeKernel:
    """A kernel's end of its connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._frames: list[KernelFrame] = []
        self._cut = KernelFrameReader()

    @classmethod
    async def connect(cls, path: str) -> Self:
        return cls(*await asyncio.open_unix_connection(path))

    def send(self, kind: KernelFrameKind, body: bytes = b"", /, **header: Any) -> None:
        self._writer.write(encode_frame(kind, header, body))

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    def answer(self, request: KernelFrame, body: bytes | None = None, **header: Any) -> None:
        self.send(
            KernelFrameKind.RESULT,
            bytes(request.body) if body is None else body,
            **{"id": request.header["id"], "status": 200, **header},
        )

    async def next(self) -> KernelFrame | None:
        """Return the next frame; None at the end."""
        async with asyncio.timeout(PATIENCE_S):
            while not self._frames:
                try:
                    data = await self._reader.read(1 << 20)
                except ConnectionResetError:
                    return None
                if not data:
                    return None
                self._frames += self._cut.feed(data)
        return self._frames.pop(0)

    async def take(self, kind: KernelFrameKind) -> KernelFrame:
        """Return the next frame, which is of this kind."""
        frame = await self.next()
        assert frame is not None, f"the end in the place of {kind.name}"
        assert frame.kind is kind, frame
        return frame

    async def request(self) -> KernelFrame:
        return await self.take(KernelFrameKind.REQUEST)

    async def echo(self) -> None:
        """Answer everything until the end."""
        while (frame := await self.next()) is not None:
            if frame.kind is KernelFrameKind.REQUEST:
                self.answer(frame)

    def close(self) -> None:
        self._writer.close()


@dataclass(slots=True, kw_only=True)
class Played:
    """A gateway, and what it said."""

    gateway: Gateway
    callers: Callers
    switches: Switches
    path: str
    client: httpx.AsyncClient
    now: list[float]
    notes: list[KernelReady | KernelHung] = field(default_factory=list)
    forgotten: list[TaskId] = field(default_factory=list)
    num_urged: list[int] = field(default_factory=list)
    kernels: list[FakeKernel] = field(default_factory=list)
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)

    def apply(self, *endpoints: ServedEndpoint) -> None:
        self.gateway.apply(Serve(endpoints=endpoints))

    def advance(self, seconds: float) -> None:
        """Let time pass, with ticks."""
        end = self.now[0] + seconds
        while self.now[0] < end:
            self.now[0] = min(end, self.now[0] + 1)
            self.gateway.tick()

    async def connect(self) -> FakeKernel:
        kernel = await FakeKernel.connect(self.path)
        self.kernels.append(kernel)
        return kernel

    async def kernel(self, task: str = "job-9.0", *, over: FakeKernel | None = None, **more: Any) -> FakeKernel:
        """Return a kernel that is ready, over a connection of this machine or another one."""
        kernel = over or await self.connect()
        kernel.send(KernelFrameKind.HELLO, task=task, token=f"token of {task.rpartition('.')[0]}")
        await kernel.take(KernelFrameKind.WELCOME)
        kernel.send(KernelFrameKind.READY, metadata={**METADATA, **more})
        await self.until(lambda: task in self.gateway.ready())
        return kernel

    def post(
        self, body: bytes = b"{}", path: str = "/v2/models/digits/infer", token: str = "ada", **headers: str
    ) -> asyncio.Task[httpx.Response]:
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.spawn(self.client.post(path, content=body, headers={"Authorization": f"Bearer {token}", **more}))

    def limit(self, token: str, *names: str, **limits: Any) -> None:
        """Let a token of ada's be for these endpoints alone, if any are named, and have these limits."""
        limiter = RequestLimiter(RequestLimits(**limits), lambda: self.now[0])
        only = frozenset(names) or None
        rights = CallerRights(name="ada", sees_all=False, may_infer=True, endpoints=only, limiter=limiter)
        self.callers.more[token] = rights

    async def get(self, path: str, token: str = "ada") -> httpx.Response:
        return await self.client.get(path, headers={"X-Auth-Token": token})

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self.tasks.append(task)
        return task

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for something, with a deadline."""
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await asyncio.sleep(0.001)

    def load(self) -> tuple[int, int]:
        """Return how many requests wait, and how many kernels hold."""
        loads = self.gateway.loads()
        return sum(load.queued for load in loads), sum(load.in_flight for load in loads)


@contextlib.asynccontextmanager
async def played(
    *endpoints: ServedEndpoint,
    admission: Admission | None = None,
    memory: LinkMemory | None = None,
    share: GatewayShare = ALONE,
    port: KernelPort | None = None,
) -> AsyncIterator[Played]:
    """A gateway that serves these."""
    now, notes, forgotten, urged = [1000.0], list[KernelReady | KernelHung](), list[TaskId](), list[int]()
    callers, switches = Callers(), Switches()
    gateway = Gateway(
        callers=callers,
        switch=switches,
        owner=ServiceOwner(
            clock=lambda: now[0],
            notify=notes.append,
            forget=forgotten.append,
            urge=lambda: urged.append(1),
            share=share,
        ),
        admission=admission,
        memory=memory,
    )
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        path = str(Path(folder) / "gateway")
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(path)
            sock.listen(64)
            serving = asyncio.create_task(gateway.serve_kernels(sock, port))
            transport = httpx.ASGITransport(app=gateway.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
                world = Played(
                    gateway=gateway,
                    callers=callers,
                    switches=switches,
                    path=path,
                    client=client,
                    now=now,
                    notes=notes,
                    forgotten=forgotten,
                    num_urged=urged,
                )
                if endpoints:
                    world.apply(*endpoints)
                try:
                    yield world
                finally:
                    await _end(world, serving)


async def _end(world: Played, serving: asyncio.Task[None]) -> None:
    for kernel in world.kernels:
        kernel.close()
    for task in (*world.tasks, serving):
        task.cancel()
    await asyncio.gather(*world.tasks, serving, return_exceptions=True)


class DirectCall:
    """One call of the application, whose body and end a test feeds by hand."""

    def __init__(
        self, world: Played, headers: Mapping[str, str] | None = None, path: str = "/v2/models/digits/infer"
    ) -> None:
        self.messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.sent: list[dict[str, Any]] = []
        given = {"Authorization": "Bearer ada", **(headers or {})}
        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "headers": [(name.lower().encode(), value.encode()) for name, value in given.items()],
        }
        self.task = world.spawn(world.gateway.app(scope, self.messages.get, self._send))

    async def _send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    def feed(self, body: bytes, *, more: bool = False) -> None:
        self.messages.put_nowait({"type": "http.request", "body": body, "more_body": more})

    def disconnect(self) -> None:
        self.messages.put_nowait({"type": "http.disconnect"})

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent[1:])
