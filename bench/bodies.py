"""How long large bodies take from a gateway to a kernel and back: by shared memory, and through the socket.

Both ends are the real ones, in two processes: the gateway's with an event loop, the kernel's without. The kernel sends
back what it gets. Figures are of a whole round, with one request at a time, both ways in turns. The processor time is
that of the gateway, whose one thread does nothing else meanwhile. The physical limit is the four copies that a round by
memory is: into it and out of it, there and back.
"""

import argparse
import asyncio
import os
import select
import socket
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from bench._report import Claim, finish, head, spread, table, verdicts
from pliant.core.job import JobId, TaskId
from pliant.core.serving import ServedEndpoint, ServedVersion
from pliant.core.serving_profile import ServingProfile
from pliant.serve.gateway.inference import InferenceRequest, KernelAnswer
from pliant.serve.gateway.kernel_listener import KernelListener
from pliant.serve.gateway.version_service import ServiceOwner, VersionService
from pliant.serve.protocol.frames import KernelFrameKind
from pliant.serve.runner.connection import GatewayConnection, GatewayFinder
from pliant.serve.runner.errors import GatewayLost

SIZES_MIB = (0.5, 1, 4, 16, 60)
LIMIT = 0.5
TASK = TaskId("job-1.0")


@dataclass(slots=True)
class Rounds:
    """Of bodies of one size, one way."""

    ms: list[float] = field(default_factory=list)
    gateway_ms: list[float] = field(default_factory=list)


def echo(path: Path, hello: dict[str, str], *, by_memory: bool) -> None:
    """Be a kernel that sends back what it gets, until the gateway closes."""
    connection = GatewayConnection(GatewayFinder(path).connect())
    if by_memory:
        connection.introduce(hello)
    else:
        connection.send(KernelFrameKind.HELLO, hello)
    with suppress(GatewayLost):
        while True:
            select.select([connection], [], [])
            for frame in connection.receive():
                if frame.kind is KernelFrameKind.WELCOME:
                    connection.share(is_taken=frame.header["shared"])
                    connection.send(KernelFrameKind.READY, {"metadata": {}})
                elif frame.kind is KernelFrameKind.REQUEST:
                    header = {"id": frame.header["id"], "status": 200}
                    connection.send(KernelFrameKind.RESULT, header, bytes(frame.body))
    connection.close()


@contextmanager
def kernel(path: Path, *, by_memory: bool) -> Iterator[None]:
    """A kernel in a process of its own."""
    child = os.fork()
    if child == 0:
        try:
            echo(path, {"task": TASK, "token": "token"}, by_memory=by_memory)
        finally:
            os._exit(0)
    try:
        yield
    finally:
        os.waitpid(child, 0)


def service() -> VersionService:
    """Return what a gateway has of a version."""
    version = ServedVersion(number=1, job_id=JobId("job-1"), token="token", weight=1)
    profile = ServingProfile()
    endpoint = ServedEndpoint(
        name="echo", owner="ada", shared_with=(), started=True, profile=profile, versions=(version,), why_not=""
    )
    owner = ServiceOwner(clock=time.monotonic, notify=lambda _: None, forget=lambda _: None, urge=lambda: None)
    return VersionService(endpoint, version, owner)


async def one_round(served: VersionService, number: int, body: bytes) -> tuple[float, float]:
    """Ask once; return the milliseconds that it took, and those that this process computed."""
    request = InferenceRequest(number, header={"api": "dlim"}, body=body, arrived_at=time.monotonic())
    began, computed = time.perf_counter(), time.process_time()
    served.submit(request)
    await request.next()
    took = (time.perf_counter() - began) * 1000, (time.process_time() - computed) * 1000
    assert isinstance(request.outcome, KernelAnswer)
    assert request.outcome.body == body
    return took


async def measure_way(folder: Path, rounds: dict[float, Rounds], num: int, *, by_memory: bool) -> None:
    """Ask a new kernel."""
    sock, path = socket.socket(socket.AF_UNIX), folder / "gateway"
    sock.bind(str(path))
    sock.listen()
    served = service()
    listener = KernelListener(lambda _task, _token: served, time.monotonic)
    listening = asyncio.create_task(listener.listen(sock))
    with closing(sock), kernel(path, by_memory=by_memory):
        while not served.num_ready:
            await asyncio.sleep(0.001)
        for size, found in rounds.items():
            body = os.urandom(int(size * (1 << 20)))
            for number in range(num + 1):
                ms, gateway_ms = await one_round(served, int(size * 1e6) + number, body)
                if number:  # the first one has no memory yet
                    found.ms.append(ms)
                    found.gateway_ms.append(gateway_ms)
        served.cut_kernels()
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


def measure(num_turns: int, num: int) -> dict[bool, dict[float, Rounds]]:
    """Return the rounds by memory (True) and through the socket, by their size in MiB."""
    rounds = {by_memory: {size: Rounds() for size in SIZES_MIB} for by_memory in (True, False)}
    for _ in range(num_turns):
        for by_memory, found in rounds.items():
            with TemporaryDirectory(prefix="pliant-bench-") as folder:
                asyncio.run(measure_way(Path(folder), found, num, by_memory=by_memory))
    return rounds


def copies_ms(size: float) -> float:
    """Return what four copies of a body take, in memory that is there."""
    body, place = os.urandom(int(size * (1 << 20))), bytearray(int(size * (1 << 20)))
    times = []
    for _ in range(9):
        began = time.perf_counter()
        for _ in range(4):
            place[:] = body
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def report(rounds: dict[bool, dict[float, Rounds]], command: str) -> tuple[str, list[Claim]]:
    """Return the page, and what it claims."""
    rows = [("MiB", "by memory, ms", "through the socket, ms", "ratio", "gateway's processor, ms", "four copies, ms")]
    claims = []
    for size in SIZES_MIB:
        shared, sent = rounds[True][size], rounds[False][size]
        ratio = statistics.median(shared.ms) / statistics.median(sent.ms)
        computed = f"{statistics.median(shared.gateway_ms):.2f}, {statistics.median(sent.gateway_ms):.2f}"
        rows.append(
            (f"{size:g}", spread(shared.ms), spread(sent.ms), f"{ratio:.2f}", computed, f"{copies_ms(size):.2f}")
        )
        if size >= 1:
            text = f"{size:g} MiB: by memory at most {LIMIT} of the time through the socket"
            claims.append(Claim(text=text, found=f"{ratio:.2f}", holds=ratio <= LIMIT))
    words = (
        "A request and its answer, both of this size, from the gateway's queue to a kernel and back. Median [min max]."
    )
    title = head("Large bodies between gateway and kernel", command)
    return f"{title}\n{words}\n\n{table(*rows)}\n{verdicts(claims)}", claims


def main() -> int:
    """Measure, write the report, and fail if a claim is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the report here as well")
    parser.add_argument("--turns", type=int, default=3, help="new kernels, each way")
    parser.add_argument("--rounds", type=int, default=15, help="of each size, for each of them")
    options = parser.parse_args()
    command = f"python -m bench.bodies --turns {options.turns} --rounds {options.rounds}"
    text, claims = report(measure(options.turns, options.rounds), command)
    return finish(text, claims, options.out)


if __name__ == "__main__":
    sys.exit(main())
