"""What it costs that a kernel is on another machine: TLS over the loopback device against the socket of one machine.

Both ends are the real ones, in two processes: the gateway's queue, link and event loop, and the kernel's connection.
The kernel sends back what it gets. Both ways take turns in one run. The network itself is not in it: its latency and
its bandwidth come on top. Bodies of 1 MiB go by shared memory on one machine, and through TLS over a network.
"""

import argparse
import asyncio
import itertools
import os
import socket
import ssl
import statistics
import sys
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from bench._report import Claim, finish, head, spread, table, verdicts
from bench.bodies import kernel, one_round, service
from pliant.entry.gateway.sockets import bind_kernels
from pliant.entry.server.home import ADDRESS
from pliant.entry.server.tls import TlsSettings, prepare
from pliant.serve.gateway.kernel_listener import KernelListener
from pliant.serve.gateway.remote_kernels import KernelPort
from pliant.serve.gateway.version_service import VersionService
from pliant.serve.protocol.kernel_place import KernelPlace, place_name

BODIES = {"1 KiB": 1 << 10, "1 MiB": 1 << 20, "16 MiB": 16 << 20}
SMALL = "1 KiB"
CALLERS = (1, 16)
MOST_COST = 2.0


@dataclass(slots=True)
class Figures:
    """Of bodies of one size, from so many callers, one way."""

    rates: list[float] = field(default_factory=list)
    ms: list[float] = field(default_factory=list)


async def ask(served: VersionService, numbers: "itertools.count[int]", body: bytes, until: float) -> list[float]:
    """Ask one after the other; return the milliseconds of each."""
    found = []
    while time.perf_counter() < until:
        found.append((await one_round(served, next(numbers), body))[0])
    return found


async def measure_way(folder: Path, found: dict[tuple[str, int], Figures], seconds: float, *, is_remote: bool) -> None:
    """Ask a new kernel, for so long with each size and number of callers."""
    tls = prepare(TlsSettings(), folder, now=time.time())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls.certificate, tls.key)
    path = folder / ADDRESS / "gateway"
    served = service()
    listener = KernelListener(lambda _task, _token: served, time.monotonic)
    with closing(socket.socket(socket.AF_UNIX)) as sock, closing(bind_kernels("127.0.0.1", 0)) as remote:
        sock.bind(str(path) if not is_remote else f"{path}.real")
        sock.listen()
        if is_remote:
            place = KernelPlace(host="127.0.0.1", port=remote.getsockname()[1])
            (path.parent / place_name("gateway", 0)).write_bytes(place.to_json())
        port = KernelPort(sock=remote, context=context)
        listening = asyncio.create_task(listener.listen(sock, port))
        with kernel(path, by_memory=True):
            while not served.num_ready:
                await asyncio.sleep(0.001)
            numbers = itertools.count()
            for (name, callers), figures in found.items():
                body = os.urandom(BODIES[name])
                await one_round(served, next(numbers), body)
                began = time.perf_counter()
                asking = [ask(served, numbers, body, began + seconds) for _ in range(callers)]
                times = [ms for one in await asyncio.gather(*asking) for ms in one]
                figures.rates.append(len(times) / (time.perf_counter() - began))
                figures.ms.append(statistics.median(times))
            served.cut_kernels()
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


def measure(num_turns: int, seconds: float) -> dict[bool, dict[tuple[str, int], Figures]]:
    """Return the figures over a network (True) and on one machine, by size and number of callers."""
    kinds = list(itertools.product(BODIES, CALLERS))
    found = {is_remote: {kind: Figures() for kind in kinds} for is_remote in (False, True)}
    for _ in range(num_turns):
        for is_remote, figures in found.items():
            with TemporaryDirectory(prefix="pliant-bench-") as folder:
                asyncio.run(measure_way(Path(folder), figures, seconds, is_remote=is_remote))
    return found


def report(found: dict[bool, dict[tuple[str, int], Figures]], command: str) -> tuple[str, list[Claim]]:
    """Return the page, and what it claims."""
    rows = [("body", "callers", "socket, requests/s", "TLS, requests/s", "socket, ms", "TLS, ms", "TLS ÷ socket, ms")]
    claims = []
    for (name, callers), local in found[False].items():
        remote = found[True][name, callers]
        ratio = statistics.median(remote.ms) / statistics.median(local.ms)
        figures = (spread(local.rates, 0), spread(remote.rates, 0), spread(local.ms, 2), spread(remote.ms, 2))
        rows.append((name, str(callers), *figures, f"{ratio:.2f}"))
        if name == SMALL:
            text = f"{name}, {callers} callers: at most {MOST_COST:g} times the time of the socket"
            claims.append(Claim(text=text, found=f"{ratio:.2f}", holds=ratio <= MOST_COST))
    words = (
        "A request and its answer, both of this size, from the gateway's queue to a kernel and back. Median [min max]."
    )
    return f"{head('Kernels of other machines', command)}\n{words}\n\n{table(*rows)}\n{verdicts(claims)}", claims


def main() -> int:
    """Measure, write the report, and fail if a claim is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the report here as well")
    parser.add_argument("--turns", type=int, default=5, help="new kernels, each way (%(default)s)")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each size and number of callers (%(default)s)")
    options = parser.parse_args()
    command = f"python -m bench.remote_kernels --turns {options.turns} --seconds {options.seconds:g}"
    text, claims = report(measure(options.turns, options.seconds), command)
    return finish(text, claims, options.out)


if __name__ == "__main__":
    sys.exit(main())
