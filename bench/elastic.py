"""How long Pliant's own training stands still when its tasks change, against what the change must cost at least.

A real server with four slots, a job with the default mode and the V that up to four tasks have by default; its maximum
goes 2 → 4 → 2 → 3, then one of three tasks is killed by SIGKILL in the middle of a step, twice in every session. Pause
= the longest gap between two new steps around the event, minus the usual step. In the same run the state is broadcast
over gloo from one process to as many as the newcomers' generation has, cold buffers included: nothing that brings
newcomers the state before a step can take less.

The models: a CNN of 5 MB and an MLP of 100 MB, without a state of the optimizer; and three MLPs whose parameters and
moments of Adam are 5, 100 and 500 MB together. Where there are fewer processors than tasks, steps of four tasks take
longer than those of two, and what they take more is in the pause: that is told beside it.

Claim: growing takes at most twice that broadcast where the state is 100 MB or more, and at most the broadcast and two
steps where it is less; so does shrinking. The comparison with other systems is `bench.peers`.
"""

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path

import torch
import torch.distributed as dist

from bench._report import Claim, finish, head, spread, table, verdicts
from bench.peers.page import MODELS
from bench.peers.processes import COMPUTING
from bench.peers.scripts.workload import WIDTHS, num_state_elements
from bench.peers.session import EVENTS, SIZES, Outcome, longer_s, play
from bench.peers.sides import KINDS

ROUNDS = 2
"""Of all events, in one session."""
SESSION_S = 600.0
NUM_BROADCASTS = 7
LIMIT_S = 120.0
LARGE = ("mlp", "adam100", "adam500")
"""Models whose state is at least 100 MB."""


def broadcast_s(model: str, size: int) -> float:
    """Return how long one process takes to bring the parameters to the others, median, seconds."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="plb-") as folder:
        mine, theirs = context.Pipe()
        processes = [
            context.Process(target=_broadcast, args=(model, rank, size, f"{folder}/store", theirs), daemon=True)
            for rank in range(size)
        ]
        try:
            for process in processes:
                process.start()
            if not mine.poll(LIMIT_S):
                raise TimeoutError(f"{size} processes did not broadcast within {LIMIT_S:.0f} s")
            median: float = statistics.median(mine.recv())
            return median
        finally:
            for process in processes:
                process.join(10)
                if process.is_alive():
                    process.kill()


def _broadcast(model: str, rank: int, size: int, store: str, pipe: Connection) -> None:
    os.environ |= {"GLOO_SOCKET_IFNAME": "lo", **COMPUTING}
    limit = timedelta(seconds=LIMIT_S)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size, timeout=limit)
    num_elements = num_state_elements(model)
    times = []
    for _ in range(NUM_BROADCASTS):
        state = torch.ones(num_elements)
        dist.barrier()
        began = time.perf_counter()
        dist.broadcast(state, 0)
        dist.barrier()
        times.append(time.perf_counter() - began)
    if rank == 0:
        pipe.send(times)
    dist.destroy_process_group()


def rows_of(model: str, outcomes: list[Outcome], floors: dict[int, float]) -> tuple[list[tuple[str, ...]], list[Claim]]:
    """Return the rows of the table and the claims for one model."""
    rows: list[tuple[str, ...]] = []
    judged = []
    for event in EVENTS:
        costs = [cost for outcome in outcomes for cost in outcome.lost.get(event, ())]
        if not costs:
            rows.append((model, event, "not reached", "", "", ""))
            continue
        pause = statistics.median(cost.lost_s for cost in costs)
        usual = statistics.median(cost.usual_s for cost in costs)
        floor = floors.get(SIZES[event][1], 0.0) if event != EVENTS[1] else 0.0
        spent = spread([cost.lost_s * 1000 for cost in costs])
        longer = f"{longer_s(outcomes, event) * 1000:.1f}" if event in (EVENTS[0], EVENTS[2]) else ""
        at_least = f"{floor * 1000:.1f}" if floor else "nothing"
        rows.append((model, event, spent, longer, f"{usual * 1000:.1f}", at_least))
        if event == EVENTS[3]:
            continue
        if model in LARGE and floor:
            most, text = 2 * floor, f"{model}, {event}: at most twice the state's broadcast"
        else:
            most, text = floor + 2 * usual, f"{model}, {event}: at most the state's broadcast and 2 steps"
        found = f"{pause * 1000:.0f} ms of {most * 1000:.0f} ms"
        judged.append(Claim(text=text, found=found, holds=pause <= most))
    return rows, judged


def main() -> int:
    """Measure, write the report; the exit status is 1 if a claim is missed."""
    names = [*MODELS, *(name for name in WIDTHS if name != "adam1000")]  # four would not fit into a small machine
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    parser.add_argument("--runs", type=int, default=3, help="sessions per model (default 3)")
    parser.add_argument("--models", nargs="+", choices=names, default=names)
    given = parser.parse_args()
    rows: list[tuple[str, ...]] = []
    judged: list[Claim] = []
    troubles = []
    kind = replace(KINDS[0], limit_s=SESSION_S)
    for model in given.models:
        outcomes = [play(kind, model, Path(sys.executable), rounds=ROUNDS) for _ in range(given.runs)]
        troubles += [f"- {model}, went no further: {outcome.trouble}" for outcome in outcomes if outcome.trouble]
        more_rows, more_claims = rows_of(model, outcomes, {size: broadcast_s(model, size) for size in (3, 4)})
        rows += more_rows
        judged += more_claims
    of_it = "of it: steps of more tasks are longer"
    columns = ("model", "event", "pause, ms", of_it, "usual step, ms", "broadcast, ms")
    text = "\n".join(
        [
            head("How long training stands still when tasks change", f"python -m bench.elastic --runs {given.runs}"),
            (__doc__ or "").split("Claim:")[0],
            table(columns, *rows),
            verdicts(judged),
            *troubles,
        ]
    )
    return finish(text, judged, given.out)


if __name__ == "__main__":
    sys.exit(main())
