"""The one generator of load for all sides: raw HTTP/1.1 over connections that stay, and gRPC through `grpc.aio`.

An HTTP connection writes the same bytes again as soon as the answer before is whole; of an answer it reads the status,
the length and, where it is asked to, one header. `Measured.mine_s` says what that costs the generator.
"""

import asyncio
import random
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import grpc

ANSWER_WITHIN_S = 30.0
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_INFER = "/inference.GRPCInferenceService/ModelInfer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where and what to ask, the same every time."""

    port: int
    path: str
    body: bytes
    token: str = ""
    least_bytes: int = 0
    """An answer with a shorter body is counted as failed."""
    is_grpc: bool = False

    def http(self) -> bytes:
        """Return the request as it goes over the wire."""
        token = f"Authorization: Bearer {self.token}\r\n" if self.token else ""
        head = (
            f"POST {self.path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n{token}"
            f"Content-Type: application/json\r\nContent-Length: {len(self.body)}\r\n\r\n"
        )
        return head.encode() + self.body


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, as far as it was read."""

    at: float
    """When it was whole."""
    latency_s: float
    status: int
    kernel: bytes = b""
    """Which of Pliant's kernels gave it."""

    @property
    def is_good(self) -> bool:
        """The model has answered."""
        return self.status == 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What came of asking for a while."""

    answers: tuple[Answer, ...]
    seconds: float
    mine_s: float
    """Processor time of the generator."""

    def good(self) -> list[float]:
        """Return the latencies of what the model has answered, ascending."""
        return sorted(one.latency_s for one in self.answers if one.is_good)

    @property
    def rate(self) -> float:
        """Return good answers a second."""
        return len(self.good()) / self.seconds

    def rate_within(self, objective_s: float) -> float:
        """Return good answers a second that took no longer than this."""
        return sum(latency <= objective_s for latency in self.good()) / self.seconds

    def latency_s(self, percent: float) -> float:
        """Return a percentile of the good answers; infinite if there is none."""
        return percentile(self.good(), percent)

    @property
    def num_failed(self) -> int:
        """Return how many answers were none."""
        return sum(not one.is_good for one in self.answers)


def percentile(ascending: Sequence[float], percent: float) -> float:
    """Return the value that so many percent do not exceed.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 50)
    2.0
    """
    if not ascending:
        return float("inf")
    return ascending[max(0, -(-len(ascending) * percent // 100).__int__() - 1)]


class HttpConnection(asyncio.Protocol):
    """One connection that asks for one thing at a time.

    Args:
        target: what to ask.
        told: hears of every answer.
    """

    def __init__(self, target: Target, told: "Callable[[HttpConnection, Answer], None]") -> None:
        self._request = target.http()
        self._least = target.least_bytes
        self._told = told
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._asked_at = 0.0
        self.is_waiting = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def ask(self, due_at: float | None = None) -> None:
        """Send the request; its latency counts from when it was due."""
        assert self._transport is not None
        self.is_waiting = True
        self._asked_at = time.perf_counter() if due_at is None else due_at
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Take in what came, and tell of the answer once it is whole."""
        buffer = self._buffer = self._buffer + data if self._buffer else data
        end = buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = buffer[:end]
        length = _LENGTH.search(head)
        if length is None:
            if not buffer.endswith(b"0\r\n\r\n"):  # sent in chunks
                return
            num_bytes = len(buffer) - end
        elif len(buffer) - end - 4 < (num_bytes := int(length[1])):
            return
        self._buffer = b""
        self._end(int(head[9:12]), num_bytes, head)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        if self.is_waiting:
            self._end(0, 0, b"")

    def close(self) -> None:
        """End the connection; nothing is told of what is under way."""
        self.is_waiting = False
        if self._transport is not None:
            self._transport.abort()

    @property
    def is_closed(self) -> bool:
        """It can ask nothing more."""
        return self._transport is None or self._transport.is_closing()

    def _end(self, status: int, num_bytes: int, head: bytes) -> None:
        now = time.perf_counter()
        self.is_waiting = False
        if status == 200 and num_bytes < self._least:
            status = -1
        _, _, rest = head.partition(b"\r\npliant-kernel: ")
        self._told(self, Answer(now, now - self._asked_at, status, rest.partition(b"\r\n")[0]))


async def closed_loop(target: Target, num_clients: int, seconds: float, warm_s: float = 0.3) -> Measured:
    """Let so many clients ask, each as soon as it has its answer; count from the end of the warm-up on."""
    if target.is_grpc:
        return await _closed_grpc(target, num_clients, seconds, warm_s)
    answers: list[Answer] = []
    is_over = False

    def told(connection: HttpConnection, answer: Answer) -> None:
        answers.append(answer)
        if not is_over and not connection.is_closed:
            connection.ask()

    connections = [await _connect(target, told) for _ in range(num_clients)]
    try:
        for connection in connections:
            connection.ask()
        await asyncio.sleep(warm_s)
        answers.clear()
        began, used = time.perf_counter(), time.process_time()
        await asyncio.sleep(seconds)
        took, mine = time.perf_counter() - began, time.process_time() - used
        is_over = True
        return Measured(answers=tuple(answers), seconds=took, mine_s=mine)
    finally:
        for connection in connections:
            connection.close()


async def open_loop(target: Target, rate: float, seconds: float, seed: int = 1) -> Measured:
    """Send so many requests a second at random moments (Poisson), whatever comes back; wait for all answers.

    Latencies count from when a request was due, so that a generator that is late favours nobody.
    """
    chance, answers, idle, all_of_them = random.Random(seed), list[Answer](), list[HttpConnection](), set[Any]()

    def told(connection: HttpConnection, answer: Answer) -> None:
        answers.append(answer)
        if not connection.is_closed:
            idle.append(connection)

    began, used = time.perf_counter(), time.process_time()
    due, num_sent = began, 0
    try:
        while (due := due + chance.expovariate(rate)) < began + seconds:
            if (pause_s := due - time.perf_counter()) > 0:
                await asyncio.sleep(pause_s)
            elif num_sent % 16 == 0:
                await asyncio.sleep(0)  # behind: answers have their turn, too
            while idle and idle[-1].is_closed:
                idle.pop()
            if not idle:
                idle.append(await _connect(target, told))
                all_of_them.add(idle[-1])
            idle.pop().ask(due)
            num_sent += 1
        give_up_at = time.perf_counter() + ANSWER_WITHIN_S
        while len(answers) < num_sent and time.perf_counter() < give_up_at:
            await asyncio.sleep(0.005)
        mine = time.process_time() - used
        last = max((one.at for one in answers if one.is_good), default=began)
        return Measured(answers=tuple(answers), seconds=max(seconds, last - began), mine_s=mine)
    finally:
        for connection in all_of_them:
            connection.close()


async def ask_once(target: Target) -> Answer:
    """Ask over a connection of its own."""
    answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    connection = await _connect(target, lambda _, answer: answered.set_result(answer))
    try:
        connection.ask()
        return await asyncio.wait_for(answered, ANSWER_WITHIN_S)
    finally:
        connection.close()


async def _connect(target: Target, told: Callable[[HttpConnection, Answer], None]) -> HttpConnection:
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: HttpConnection(target, told), "127.0.0.1", target.port)
    return connection


async def _closed_grpc(target: Target, num_clients: int, seconds: float, warm_s: float) -> Measured:
    answers: list[Answer] = []
    metadata = (("authorization", f"Bearer {target.token}"),) if target.token else ()

    async def ask_on(infer: Any) -> None:
        while True:
            began = time.perf_counter()
            status = 200
            try:
                answer = await infer(target.body, metadata=metadata, timeout=ANSWER_WITHIN_S)
                status = 200 if len(answer) >= target.least_bytes else -1
            except grpc.aio.AioRpcError:
                status = 500
            now = time.perf_counter()
            answers.append(Answer(now, now - began, status))

    async with grpc.aio.insecure_channel(f"127.0.0.1:{target.port}") as channel:
        infer = channel.unary_unary(_INFER)
        clients = [asyncio.create_task(ask_on(infer)) for _ in range(num_clients)]
        await asyncio.sleep(warm_s)
        answers.clear()
        began, used = time.perf_counter(), time.process_time()
        await asyncio.sleep(seconds)
        took, mine = time.perf_counter() - began, time.process_time() - used
        measured = Measured(answers=tuple(answers), seconds=took, mine_s=mine)
        for client in clients:
            client.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*clients, return_exceptions=True)
    return measured
