"""Clients of endpoints that ask at a rate of their own (open loop), whatever becomes of what they asked before.

Every request has a known answer. HTTP and gRPC, over connections that are kept; what a broken connection took is asked
again, nothing else. What came of each request is judged when it is over, by what was hurt meanwhile (`Hurts`).
"""

import asyncio
import itertools
import struct
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import grpc
import httpx
from tests.plain_http import NO_TLS

from pliant.serve.protocol.grpc import encode_message
from pliant.serve.protocol.grpc.messages import decode_message

Way = Literal["HTTP", "gRPC"]
WAYS: Final[tuple[Way, ...]] = ("HTTP", "gRPC")
TIMEOUT_S: Final = 90.0
_AGAIN_S: Final = 0.1
_SLACK_S: Final = 1.0
"""A connection may be found broken so long after the gateway is back."""
_MOST: Final = 4096
"""Smaller numbers are asked for: times a factor as small that is exact in FP32."""
_INFER: Final = "/inference.GRPCInferenceService/ModelInfer"
_NAMED: Final = 20
"""Latencies that are shown, and wrong answers that are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a gateway listens."""

    url: str
    grpc_address: str


@dataclass(slots=True)
class Hurts:
    """When the gateway was gone, and when a kernel of an endpoint hung: from, until; None as long as it lasts."""

    gateway_gone: list[list[float | None]] = field(default_factory=list)
    kernel_hung: dict[str, list[list[float | None]]] = field(default_factory=lambda: defaultdict(list))

    @staticmethod
    @contextmanager
    def lasting(spans: list[list[float | None]]) -> Iterator[None]:
        """Note the time that a block takes."""
        span: list[float | None] = [time.monotonic(), None]
        spans.append(span)
        try:
            yield
        finally:
            span[1] = time.monotonic()

    @staticmethod
    def meet(spans: list[list[float | None]], since: float, until: float) -> bool:
        """Tell whether one of these times has to do with a request that was under way from `since` to `until`."""
        return any(
            begin is not None and begin <= until and (end is None or since <= end + _SLACK_S) for begin, end in spans
        )


@dataclass(slots=True)
class Answers:
    """What became of the requests."""

    num: Counter[str] = field(default_factory=Counter)
    """`right`, `refused` by a limit, `late` because a kernel hung, `broken` with the gateway's connections."""
    latencies_s: list[float] = field(default_factory=list)
    """Of the right ones, with all that was tried again."""
    wrong: list[str] = field(default_factory=list)
    newest: dict[tuple[str, Way], float] = field(default_factory=dict)
    """When the youngest request began that was answered rightly, by endpoint and way."""

    def table(self) -> str:
        """Return the summary."""
        latencies = sorted(self.latencies_s)
        told = ", ".join(f"{number} {what}" for what, number in sorted(self.num.items()))
        if not latencies:
            return f"requests: {told or 'none'}"
        shown = (
            f"{name} {latencies[min(len(latencies) - 1, int(part * len(latencies)))]:.3f} s"
            for name, part in (("p50", 0.5), ("p99", 0.99), ("longest", 1.0))
        )
        return f"requests: {told}; {', '.join(shown)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reply:
    """One answer, of either way."""

    status: int
    """As of HTTP."""
    is_limit: bool = False
    """It says when to ask again."""
    outputs: Mapping[str, list[float]] = field(default_factory=dict)
    text: str = ""


class BrokenConnectionError(Exception):
    """No answer came, since the connection is gone or was never there."""


class Asking:
    """Asks endpoints at their rates, in a thread of its own, until the block of `going` ends.

    Args:
        place: where the gateway listens.
        token: opens the endpoints.
        hurts: is added to by whoever hurts.
        factor_known: tells whether a version with this factor was ever deployed to an endpoint.
        limit_s: so long a request may take that a hung kernel held.
    """

    def __init__(
        self, place: Place, token: str, hurts: Hurts, factor_known: Callable[[str, float], bool], limit_s: float
    ) -> None:
        self.place = place
        self.rates: dict[str, float] = {}
        """Requests per second, by endpoint; as many over each way."""
        self.answers = Answers()
        self._token = token
        self._hurts = hurts
        self._factor_known = factor_known
        self._limit_s = limit_s
        self._numbers = itertools.count(1)
        self._over = threading.Event()
        self._channels: dict[str, grpc.aio.Channel] = {}

    @contextmanager
    def going(self) -> Iterator[None]:
        """Ask while the block runs; at its end wait for all answers."""
        self._over.clear()
        thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="soak-asking")
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join(2 * TIMEOUT_S)
            if thread.is_alive():
                self.answers.wrong.append("requests have not ended")

    async def _run(self) -> None:
        headers = {"Authorization": f"Bearer {self._token}"}
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=50)
        under_way: set[asyncio.Task[None]] = set()
        async with httpx.AsyncClient(
            headers=headers, verify=NO_TLS, timeout=TIMEOUT_S, trust_env=False, limits=limits
        ) as client:
            due = {(name, way): time.monotonic() for name in self.rates for way in WAYS}
            while not self._over.is_set():
                now = time.monotonic()
                for (name, way), at in list(due.items()):
                    rate = self.rates[name]
                    if rate > 0 and at <= now:
                        task = asyncio.create_task(self._ask(client, name, way))
                        under_way.add(task)
                        task.add_done_callback(under_way.discard)
                    due[name, way] = at if at > now else max(now - 1.0, at + 1 / rate) if rate > 0 else now
                await asyncio.sleep(0.01)
            await asyncio.gather(*under_way)
            for channel in self._channels.values():
                await channel.close()
            self._channels.clear()

    async def _ask(self, client: httpx.AsyncClient, name: str, way: Way) -> None:
        value, began_at = next(self._numbers) % _MOST, time.monotonic()
        while True:
            tried_at = time.monotonic()
            try:
                reply = await (self._by_http(client, name, value) if way == "HTTP" else self._by_grpc(name, value))
            except BrokenConnectionError as error:
                self.answers.num["broken"] += 1
                now = time.monotonic()
                if not Hurts.meet(self._hurts.gateway_gone, tried_at, now):
                    self._complain(f"{way} {name}: a connection broke though the gateway lived: {error}")
                    return
                if now - began_at > TIMEOUT_S:
                    self._complain(f"{way} {name}: no gateway for {TIMEOUT_S:g} s: {error}")
                    return
                await asyncio.sleep(_AGAIN_S)
            except Exception as error:  # noqa: BLE001 (whatever it is, it is no answer)
                self._complain(f"{way} {name}: {type(error).__name__}: {error}")
                return
            else:
                self._judge(name, way, value, reply, began_at)
                return

    def _judge(self, name: str, way: Way, value: int, reply: _Reply, began_at: float) -> None:
        now = time.monotonic()
        answers, took_s = self.answers, now - began_at
        if reply.status == 200:
            factor, product = reply.outputs["factor"][0], reply.outputs["y"][0]
            if product != value * factor or not self._factor_known(name, factor):
                self._complain(f"{way} {name}: {value} times {factor:g} is {product:g}, it says")
                return
            answers.num["right"] += 1
            answers.latencies_s.append(took_s)
            answers.newest[name, way] = max(began_at, answers.newest.get((name, way), 0.0))
        elif reply.status in (429, 503) and reply.is_limit:
            answers.num["refused"] += 1
        elif reply.status == 504 and Hurts.meet(self._hurts.kernel_hung[name], began_at, now):
            answers.num["late"] += 1
            if took_s > self._limit_s:
                self._complain(f"{way} {name}: a kernel that hung was waited for {took_s:.1f} s")
        else:
            self._complain(f"{way} {name}: {reply.status} after {took_s:.1f} s: {reply.text[:300]}")

    def _complain(self, text: str) -> None:
        self.answers.num["wrong"] += 1
        if len(self.answers.wrong) < _NAMED:
            self.answers.wrong.append(text)

    async def _by_http(self, client: httpx.AsyncClient, name: str, value: int) -> _Reply:
        tensor = {"name": "x", "datatype": "FP32", "shape": [1], "data": [value]}
        try:
            answer = await client.post(f"{self.place.url}/v2/models/{name}/infer", json={"inputs": [tensor]})
        except httpx.TransportError as error:
            raise BrokenConnectionError(f"{type(error).__name__}: {error}") from error
        if answer.status_code != 200:
            return _Reply(status=answer.status_code, is_limit="retry-after" in answer.headers, text=answer.text)
        outputs = {one["name"]: one["data"] for one in answer.json()["outputs"]}
        return _Reply(status=200, outputs=outputs)

    async def _by_grpc(self, name: str, value: int) -> _Reply:
        address = self.place.grpc_address
        if address not in self._channels:
            options = [("grpc.max_reconnect_backoff_ms", 500), ("grpc.initial_reconnect_backoff_ms", 100)]
            self._channels[address] = grpc.aio.insecure_channel(address, options=options)
        tensor = {"name": "x", "datatype": "FP32", "shape": [1]}
        request = {"model_name": name, "inputs": [tensor], "raw_input_contents": [struct.pack("<f", value)]}
        infer = self._channels[address].unary_unary(_INFER)
        try:
            body = await infer(
                encode_message("ModelInferRequest", request),
                metadata=(("x-auth-token", self._token),),
                timeout=TIMEOUT_S,
            )
        except grpc.aio.AioRpcError as error:
            return _read_grpc_error(error)
        answer = decode_message("ModelInferResponse", body)
        raw = (struct.unpack("<f", one[:4]) for one in answer["raw_output_contents"])
        named: list[Any] = answer["outputs"]
        return _Reply(status=200, outputs={one["name"]: list(values) for one, values in zip(named, raw, strict=True)})


def _read_grpc_error(error: grpc.aio.AioRpcError) -> _Reply:
    """Return which answer an error over gRPC is.

    Raises:
        BrokenConnectionError: it is none; the connection is gone.
    """
    is_limit = any(key == "retry-after" for key, _ in error.trailing_metadata() or ())
    code, text = error.code(), error.details() or ""
    with suppress(KeyError):
        status = {
            grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
            grpc.StatusCode.DEADLINE_EXCEEDED: 504,
            **({grpc.StatusCode.UNAVAILABLE: 503} if is_limit else {}),
        }[code]
        return _Reply(status=status, is_limit=is_limit, text=text)
    if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
        raise BrokenConnectionError(f"{code.name}: {text}")
    return _Reply(status=500, text=f"{code.name}: {text}")
