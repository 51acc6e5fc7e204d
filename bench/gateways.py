"""What a second gateway costs and brings: requests a second, and the processor time of each, with one and with two.

An endpoint of two kernels sends back what it gets; it has limits that hold nobody up, so that they are counted, over
all processes where there are two. One generator asks over HTTP; each number of gateways has a server of its own, and
they take turns. Processor time is that of gateways and kernels together, without the server's own. Servers and
generator share all cores: where these are fewer than four, nothing is left for a second gateway to use, and how much
more is answered says nothing. Each gateway has as many callers as the only one: what is sent and taken together for
many requests is a large part of what one costs.
"""

import argparse
import asyncio
import os
import statistics
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench._report import Claim, finish, head, spread, table, verdicts
from bench.serve.install import environments
from bench.serve.load import Target, closed_loop
from bench.serve.place import divide_cores, place
from bench.serve.pliant_server import PliantServer
from bench.serve.scripts import pliant_model

CLIENTS = (1, 8, 64)
NUMBERS = (1, 2)
MOST_COST = 1.25
LEAST_MORE = 1.5
ENOUGH_CORES = 4
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Figures:
    """Of one number of gateways and of callers of each."""

    rates: list[float] = field(default_factory=list)
    processor_us: list[float] = field(default_factory=list)
    """Of each request."""


@dataclass(frozen=True, slots=True)
class Side:
    """A server that runs, with so many gateways."""

    target: Target
    pids: tuple[int, ...]
    """Gateways and kernels."""

    def processor_s(self) -> float:
        """Return what these have computed."""
        total = 0.0
        for pid in self.pids:
            with suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                total += (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND
        return total


@contextmanager
def running(num: int) -> Iterator[Side]:
    """A server with so many gateways, and an endpoint that answers."""
    with place(environments(), divide_cores(None)) as where:
        options = ("--serve-processes", str(num)) if num > 1 else ()
        with PliantServer(where, slots=2, options=options) as server:
            view = server.deploy(
                "echo",
                pliant_model.ECHO,
                kernel_min=2,
                kernel_max=2,
                max_rate=1e6,
                max_concurrent=1000,
            )
            version = server.version("echo")
            while server.version("echo").num_ready < 2:
                version = server.version("echo")
            kernels = [kernel.pid for kernel in version.kernels if kernel.pid is not None]
            yield Side(server.raw_target(view), (*server.gateways(), *kernels))


def measure(num_rounds: int, seconds: float) -> dict[tuple[int, int], Figures]:
    """Return the figures by numbers of gateways, and of callers of each."""
    found = {(num, clients): Figures() for num in NUMBERS for clients in CLIENTS}
    with ExitStack() as stack:
        sides = {num: stack.enter_context(running(num)) for num in NUMBERS}
        for turn in range(num_rounds):
            for clients in CLIENTS:
                for num in NUMBERS if turn % 2 else reversed(NUMBERS):
                    before = sides[num].processor_s()
                    measured = asyncio.run(closed_loop(sides[num].target, clients * num, seconds, warm_s=0.0))
                    if measured.num_failed:
                        raise RuntimeError(f"{measured.num_failed} requests were not answered")
                    used = sides[num].processor_s() - before
                    figures = found[num, clients]
                    figures.rates.append(measured.rate)
                    figures.processor_us.append(used / len(measured.answers) * 1e6)
    return found


def report(found: dict[tuple[int, int], Figures], command: str) -> tuple[str, list[Claim]]:
    """Return the page, and what it claims."""
    rows = [("callers of each", "gateways", "requests a second", "processor time of a request, µs")]
    claims = []
    has_room = len(os.sched_getaffinity(0)) >= ENOUGH_CORES
    for clients in CLIENTS:
        for num in NUMBERS:
            figures = found[num, clients]
            rows.append((str(clients), str(num), spread(figures.rates, 0), spread(figures.processor_us, 0)))
        one, two = found[1, clients], found[2, clients]
        cost = statistics.median(two.processor_us) / statistics.median(one.processor_us)
        more = statistics.median(two.rates) / statistics.median(one.rates)
        if clients == max(CLIENTS):
            text = f"a request costs at most {MOST_COST} times as much with two gateways, at {clients} callers of each"
            claims.append(Claim(text=text, found=f"{cost:.2f}", holds=cost <= MOST_COST))
            text = f"two answer {LEAST_MORE} times as many, on {ENOUGH_CORES} cores or more"
            claims.append(Claim(text=text, found=f"{more:.2f}", holds=more >= LEAST_MORE if has_room else None))
    words = "Small requests over IBM's route, to an echo with two kernels. Median [min max] of rounds in turns."
    return f"{head('Several gateways', command)}\n{words}\n\n{table(*rows)}\n{verdicts(claims)}", claims


def main() -> int:
    """Measure, write the report, and fail if a claim is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the report here as well")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each (%(default)s)")
    parser.add_argument("--round-s", type=float, default=2.0, help="seconds of each (%(default)s)")
    options = parser.parse_args()
    command = f"python -m bench.gateways --rounds {options.rounds} --round-s {options.round_s:g}"
    text, claims = report(measure(options.rounds, options.round_s), command)
    return finish(text, claims, options.out)


if __name__ == "__main__":
    sys.exit(main())
