"""Echo: what comes is sent back, so that nothing is measured but the way there and back."""

import asyncio
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench._report import Claim, spread, table
from bench.serve.load import closed_loop
from bench.serve.payload import ECHO
from bench.serve.place import Place
from bench.serve.scripts import pliant_model
from bench.serve.sides import CEILINGS, PLIANT, SIDES, Ports, Side, target_of

SIZES = {100: "100 B", 10_000: "10 KB"}
NUM_CLIENTS = (1, 8, 64)
PEERS = ("ray", "ray-tuned", "mlserver", "mlserver-grpc", "litserve", "bentoml")
WARM_S, FIRST_S = 0.3, 1.0
GOALS = ((("ray",), 4.0), (("mlserver", "mlserver-grpc"), 2.0), (("litserve",), 2.0), (PEERS, 1.3), (("uvicorn",), 0.5))
MOST_P50_S, MOST_P99_S = 0.001, 0.003
LABELS = {way.key: way.label for side in SIDES for way in side.ways}

Cell = tuple[str, int, int]
"""A way, the bytes of the body, and how many clients ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one way did in one round, asked by so many with such a body."""

    rate: float
    p50_s: float
    p99_s: float
    num_failed: int
    server_s: float
    """Processor time of the servers for a request."""
    generator_s: float


@dataclass(slots=True)
class EchoFound:
    """The turns by cell; the same round has the same place in every list."""

    turns: dict[Cell, list[Turn | None]] = field(default_factory=dict)
    """None: the side did not start in that round."""
    function_s: float = 0.0
    """What the kernel's function takes, called as it is."""

    def of(self, key: str, num_bytes: int, num_clients: int) -> list[Turn | None]:
        """Return the turns of a cell."""
        return self.turns.get((key, num_bytes, num_clients), [])


def measure_turn(side: Side, ports: Ports, place: Place, found: EchoFound, seconds: float) -> None:
    """Ask a side in all of its ways, with all bodies, by all numbers of clients."""
    for way in side.ways:
        asyncio.run(closed_loop(target_of(way, ports, ECHO, 100), 8, FIRST_S))  # what is only slow at first
        for num_bytes in SIZES:
            target = target_of(way, ports, ECHO, num_bytes)
            for num_clients in NUM_CLIENTS:
                used = place.processor_s()
                measured = asyncio.run(closed_loop(target, num_clients, seconds, WARM_S))
                used = place.processor_s() - used
                num = max(1, len(measured.answers))
                share = measured.seconds / (measured.seconds + WARM_S)  # the servers' time is that of the warm-up, too
                found.turns.setdefault((way.key, num_bytes, num_clients), []).append(
                    Turn(
                        rate=measured.rate,
                        p50_s=measured.latency_s(50),
                        p99_s=measured.latency_s(99),
                        num_failed=measured.num_failed,
                        server_s=used * share / num,
                        generator_s=measured.mine_s / num,
                    )
                )


def function_s() -> float:
    """Return what the function of the kernel takes when it is called as it is, median, seconds."""
    names: dict[str, Any] = {}
    exec(pliant_model.ECHO, names)  # the same text that is deployed
    model, batch, times = names["Model"](), [{"x": ["x"]}], []
    for _ in range(1000):
        began = time.perf_counter()
        model.predict(batch)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def note_absent(side: Side, found: EchoFound) -> None:
    """Take note that a side did not answer in this round."""
    for way in side.ways:
        for num_bytes in SIZES:
            for num_clients in NUM_CLIENTS:
                turns = found.turns.setdefault((way.key, num_bytes, num_clients), [])
                turns.append(None)


def ratio(found: EchoFound, ours: str, theirs: Sequence[str], num_bytes: int, num_clients: int) -> float | None:
    """Return how many times more one answers than the best of others: the median over the rounds."""
    by_round = zip(
        found.of(ours, num_bytes, num_clients),
        *(turns for key in theirs if (turns := found.of(key, num_bytes, num_clients))),
        strict=False,
    )
    ratios = [
        mine.rate / best
        for mine, *others in by_round
        if mine is not None and (best := max((one.rate for one in others if one is not None), default=0.0)) > 0
    ]
    return statistics.median(ratios) if ratios else None


def claims(found: EchoFound) -> Iterator[Claim]:
    """Yield every claim with what was found, at its worst cell."""
    for way in PLIANT.ways:
        for theirs, factor in GOALS:
            against = "the best peer" if theirs == PEERS else " or ".join(LABELS[key] for key in theirs)
            text = f"{way.label}: at least {factor:g} × {against}, in every cell"
            ratios = {
                (num_bytes, num_clients): one
                for num_bytes in SIZES
                for num_clients in NUM_CLIENTS
                if (one := ratio(found, way.key, theirs, num_bytes, num_clients)) is not None
            }
            num_cells = len(SIZES) * len(NUM_CLIENTS)
            if len(ratios) < num_cells:  # what is claimed of all cells is not shown by some
                said = f"only {len(ratios)} of {num_cells} cells have answers of both" if ratios else ""
                yield Claim(text=text, found=said, holds=None)
                continue
            worst = min(ratios, key=lambda cell: ratios[cell])
            least, most = ratios[worst], max(ratios.values())
            said = f"{least:.2f} at the least ({SIZES[worst[0]]}, c = {worst[1]}), {most:.2f} at the most"
            yield Claim(text=text, found=said, holds=ratios[worst] >= factor)
    for way in PLIANT.ways:
        turns = [turn for turn in found.of(way.key, 100, 1) if turn is not None]
        for name, most_s, values in (
            ("p50", MOST_P50_S, [turn.p50_s for turn in turns]),
            ("p99", MOST_P99_S, [turn.p99_s for turn in turns]),
        ):
            added = [value - found.function_s for value in values]
            said = f"{spread([value * 1000 for value in added], 2)} ms" if added else ""
            yield Claim(
                text=f"{way.label}, c = 1, 100 B: {name} at most {most_s * 1000:g} ms over the kernel's function",
                found=said,
                holds=statistics.median(added) <= most_s if added else None,
            )


def section(found: EchoFound) -> str:
    """Return the tables of the report."""
    columns = (
        "who",
        "requests a second",
        "ratio to plain uvicorn",
        "p50, ms",
        "p99, ms",
        "servers, µs a request",
        "failed",
    )
    parts = ["## Echo\n", ABOUT]
    for num_bytes, size in SIZES.items():
        for num_clients in NUM_CLIENTS:
            rows = [row for key in LABELS if (row := _row(found, key, num_bytes, num_clients))]
            parts += [f"### {size}, c = {num_clients}\n", table(columns, *rows)]
    costs = {key: list(_costs(found, key)) for key in LABELS}
    http = [cost for key, some in costs.items() if not key.endswith("grpc") for cost in some]
    calls = [cost for key, some in costs.items() if key.endswith("grpc") for cost in some]
    said = ", ".join(
        f"{spread([cost * 1e6 for cost in some], 0)} µs of processor time a request over {name}"
        for name, some in (("HTTP", http), ("gRPC", calls))
        if some
    )
    return "\n".join([*parts, f"The generator takes {said} (median [min max] of all cells).\n"])


def _costs(found: EchoFound, key: str) -> Iterable[float]:
    for (way, _, _), turns in found.turns.items():
        if way == key:
            yield from (turn.generator_s for turn in turns if turn is not None)


def _row(found: EchoFound, key: str, num_bytes: int, num_clients: int) -> tuple[str, ...] | None:
    turns = [turn for turn in found.of(key, num_bytes, num_clients) if turn is not None]
    if not turns:
        return None
    against = ratio(found, key, CEILINGS[:1], num_bytes, num_clients)
    return (
        LABELS[key],
        spread([turn.rate for turn in turns], 0),
        "" if against is None else f"{against:.2f}",
        spread([turn.p50_s * 1000 for turn in turns], 2),
        spread([turn.p99_s * 1000 for turn in turns], 2),
        f"{statistics.median(turn.server_s for turn in turns) * 1e6:.0f}",
        str(sum(turn.num_failed for turn in turns)),
    )


ABOUT = """Every side is sent the same bytes, a request of the Open Inference Protocol with one text in it; over gRPC
the same text in a message. All sides but plain uvicorn, which looks into nothing, read it and write an answer. Pliant
checks a token with every request; the others know none. Closed loop: c clients, each asks again as soon as it has its
answer. The ratio is the median over the rounds of one's rate to that of plain uvicorn in the same round.
"""
