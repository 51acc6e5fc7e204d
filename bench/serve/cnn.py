"""A small CNN, batched by every side in its own way: what comes back within the objective."""

import asyncio
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench._report import Claim, spread, table
from bench.serve.load import closed_loop
from bench.serve.payload import CNN
from bench.serve.sides import SIDES, Ports, Side, target_of

OBJECTIVE_S = 0.05
NUM_CLIENTS = (4, 8, 16, 32)
LEAST = 1.3
LABELS = {way.key: way.label for side in SIDES if CNN in side.models for way in side.ways if not way.is_grpc}
OURS = ("v2", "dlim")


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodput:
    """The most that a way answered within the objective in one round."""

    rate: float
    num_clients: int
    p99_s: float
    num_failed: int


@dataclass(slots=True)
class CnnFound:
    """What was found, by way; the same round has the same place in every list."""

    turns: dict[str, list[Goodput | None]] = field(default_factory=dict)


def measure_turn(side: Side, ports: Ports, found: CnnFound, seconds: float) -> None:
    """Ask a side with more and more clients, and keep the best."""
    for way in side.ways:
        if way.key not in LABELS:
            continue
        tried = []
        for num_clients in NUM_CLIENTS:
            measured = asyncio.run(closed_loop(target_of(way, ports, CNN, 0), num_clients, seconds, warm_s=1.0))
            tried.append(
                Goodput(
                    rate=measured.rate_within(OBJECTIVE_S),
                    num_clients=num_clients,
                    p99_s=measured.latency_s(99),
                    num_failed=measured.num_failed,
                )
            )
        found.turns.setdefault(way.key, []).append(max(tried, key=lambda one: one.rate))


def note_absent(side: Side, found: CnnFound) -> None:
    """Take note that a side did not answer in this round."""
    for way in side.ways:
        if way.key in LABELS:
            found.turns.setdefault(way.key, []).append(None)


def claims(found: CnnFound) -> Iterator[Claim]:
    """Yield the claim with what was found."""
    peers = [key for key in found.turns if key not in OURS]
    text = f"CNN: within {OBJECTIVE_S * 1000:.0f} ms, at least {LEAST:g} × as many requests a second as the best peer"
    for ours in OURS:
        ratios = [
            mine.rate / best
            for mine, *others in zip(found.turns.get(ours, []), *(found.turns[key] for key in peers), strict=False)
            if mine is not None and (best := max((one.rate for one in others if one is not None), default=0.0)) > 0
        ]
        yield Claim(
            text=f"{text} ({LABELS[ours]})",
            found=spread(ratios, 2) if ratios else "",
            holds=statistics.median(ratios) >= LEAST if ratios else None,
        )


def section(found: CnnFound) -> str:
    """Return the table of the report."""
    rows = []
    for key, label in LABELS.items():
        turns = [turn for turn in found.turns.get(key, []) if turn is not None]
        if turns:
            clients = statistics.median_low([turn.num_clients for turn in turns])
            rows.append(
                (
                    label,
                    spread([turn.rate for turn in turns], 0),
                    str(clients),
                    spread([turn.p99_s * 1000 for turn in turns], 1),
                    str(sum(turn.num_failed for turn in turns)),
                )
            )
    columns = ("who", f"within {OBJECTIVE_S * 1000:.0f} ms, requests a second", "c", "p99, ms", "failed")
    return f"## A small CNN\n\n{ABOUT}\n{table(columns, *rows)}"


ABOUT = f"""Images of 28 × 28 as JSON, two convolutions and two linear layers, one thread; batches of at most 8
everywhere: put together by Pliant's kernel out of what waits, with an objective of {OBJECTIVE_S * 1000:.0f} ms; by
LitServe, MLServer and Ray Serve within 2 ms; by BentoML's adaptive batching, told the same objective. Closed loop with
{", ".join(map(str, NUM_CLIENTS))} clients; of each round the number of clients counts that is best for the side.
"""
