"""A session in a thread that serves a model to a gateway of the test."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.serve.runner.fake_gateway import FakeGateway, Listener, in_thread

from pliant.serve.runner.channel import GatewayChannel, LocalChannel
from pliant.serve.runner.connection import GatewayFinder
from pliant.serve.runner.leaving import LeaveSignal
from pliant.serve.runner.metadata import ModelMetadata
from pliant.serve.runner.request import BatchOfRequests, KernelRequest, KernelResult
from pliant.serve.runner.session import KernelIdentity, KernelSession


@dataclass(slots=True)
class Served:
    """What a test has of a session."""

    gateway: FakeGateway
    session: KernelSession
    leave: LeaveSignal
    error: BaseException | None = None


class Function:
    """A model that is a function of whole batches."""

    def __init__(self, act: Callable[[BatchOfRequests], None], **metadata: Any) -> None:
        self.metadata = ModelMetadata(platform="test", **metadata)
        self._act = act

    def serve(self, batch: BatchOfRequests) -> None:
        self._act(batch)


def take_all(batch: BatchOfRequests) -> list[KernelRequest]:
    """Return all requests that a batch has now."""
    return list(iter(batch.take, None))


def echo(batch: BatchOfRequests) -> None:
    """Answer every request with its body."""
    batch.answer([(request, KernelResult(body=request.body)) for request in take_all(batch)])


def a_request(number: int = 1, body: bytes = b"", **more: Any) -> KernelRequest:
    return KernelRequest(id=number, api=more.pop("api", "dlim"), body=body, **more)


@dataclass(slots=True)
class Batch:
    """A batch of a test: these requests, and the answers that were given."""

    waiting: list[KernelRequest]
    answered: dict[int, KernelResult]
    streams: dict[int, Iterator[KernelResult]] = field(default_factory=dict)

    @classmethod
    def of(cls, *requests: KernelRequest) -> "Batch":
        return cls(list(requests), {})

    def take(self) -> KernelRequest | None:
        return self.waiting.pop(0) if self.waiting else None

    def answer(self, answers: Any) -> None:
        for request, result in answers:
            assert request.id not in self.answered
            self.answered[request.id] = result

    def stream(self, request: KernelRequest, parts: Iterator[KernelResult]) -> None:
        assert request.id not in self.answered
        self.streams[request.id] = parts


@contextmanager
def session_over(
    connect: Callable[[int], GatewayChannel], patience_s: float = 30.0, clock: Callable[[], float] = time.monotonic
) -> Iterator[tuple[KernelSession, LeaveSignal]]:
    leave = LeaveSignal()
    try:
        yield (
            KernelSession(KernelIdentity(task="job-1.1", token="secret"), connect, leave, clock, patience_s),
            leave,
        )
    finally:
        leave.close()


@contextmanager
def served(use: Callable[[KernelSession], None], **settings: Any) -> Iterator[Served]:
    """Let `use` serve over a socket pair; at the end the kernel is told to go, and its conversation must end well."""
    ours, theirs = socket.socketpair()
    ends = [theirs]

    def connect(number: int) -> LocalChannel:
        if number:
            raise FileNotFoundError("there is one gateway")
        if not ends:
            raise ConnectionRefusedError("there is no second one")
        return LocalChannel(ends.pop())

    with session_over(connect) as (session, leave):
        found = Served(FakeGateway(ours, **settings), session, leave)

        def act() -> None:
            try:
                session.begin()
                use(session)
            except BaseException as error:  # noqa: BLE001 (the test looks at it)
                found.error = error
            finally:
                session.close()

        with in_thread(act):
            try:
                yield found
            finally:
                leave.ask()
                ours.close()


@contextmanager
def serving(model: Any, **settings: Any) -> Iterator[FakeGateway]:
    """Serve a model; yield a gateway whose kernel is ready."""
    with served(lambda session: session.serve(model), **settings) as found:
        found.gateway.ready()
        yield found.gateway
    if found.error is not None:
        raise found.error


@dataclass(slots=True)
class SeveralGateways:
    """What a test has of a kernel that several gateways are there for."""

    folder: Path
    leave: LeaveSignal
    listeners: list[Listener]
    error: BaseException | None = None

    def ready(self) -> list[FakeGateway]:
        """Accept the kernel at each, and let it be ready there; return the gateways."""
        gateways = [listener.accept() for listener in self.listeners]
        for gateway in gateways:
            gateway.ready()
        return gateways

    def open(self, number: int) -> Listener:
        """Have one more gateway."""
        self.listeners.append(Listener(self.folder, number))
        return self.listeners[-1]


@contextmanager
def served_to(
    num: int, folder: Path, model: Any, clock: Callable[[], float] = time.monotonic
) -> Iterator[SeveralGateways]:
    """Serve a model to several gateways; at the end the kernel is told to go, and its conversation must end well."""
    with session_over(GatewayFinder(folder / "gateway").connect, clock=clock) as (session, leave):
        found = SeveralGateways(folder, leave, [Listener(folder, number) for number in range(num)])

        def act() -> None:
            try:
                session.begin()
                session.serve(model)
            except BaseException as error:  # noqa: BLE001 (the test looks at it)
                found.error = error
            finally:
                session.close()

        with in_thread(act):
            try:
                yield found
            finally:
                leave.ask()
                for listener in found.listeners:
                    listener.close()
    if found.error is not None:
        raise found.error
