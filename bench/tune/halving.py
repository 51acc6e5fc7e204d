"""One search with halving on digits: trials that grow when others are pruned, against trials of one slot each."""

import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench._report import Claim, spread, table
from bench.peers.processes import Processes
from bench.peers.server import Server
from bench.tune.part import Part

SCRIPT: Final = Path(__file__).parent / "scripts" / "digits.py"
LIMIT_S: Final = 900.0
VIRTUAL_WORKERS: Final = 8
MAX_RATIO: Final = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """What a search took, and what came of it."""

    wall_s: float
    best: float
    outcome: Sequence[tuple[object, ...]]
    """Values, reports and results of all trials."""


def measure(seeds: Sequence[int], num_trials: int, num_epochs: int, num_slots: int) -> Part:
    """Run the same search with elastic and with rigid trials, in turns, on one server.

    Args:
        num_slots: of the server.
    """
    pairs = list(_pairs(seeds, num_trials, num_epochs, num_slots))
    ratios = [elastic.wall_s / rigid.wall_s for rigid, elastic in pairs]
    rows = [
        (str(seed), f"{rigid.wall_s:.1f}", f"{elastic.wall_s:.1f}", f"{ratio:.2f}", f"{rigid.best:.5f}")
        for seed, (rigid, elastic), ratio in zip(seeds, pairs, ratios, strict=True)
    ]
    same = sum(rigid.outcome == elastic.outcome for rigid, elastic in pairs)
    claims = (
        Claim(
            text="values, reports and results of all trials are the same, elastic or rigid",
            found=f"{same} of {len(pairs)} searches",
            holds=same == len(pairs),
        ),
        Claim(
            text=f"elastic trials take at most {MAX_RATIO:g} of the time, median",
            found=spread(ratios, 2),
            holds=statistics.median(ratios) <= MAX_RATIO,
        ),
    )
    how = (
        f"{num_trials} trials, halving by whole rungs up to epoch {num_epochs} by the factor 3, {num_slots} slots. "
        f"Rigid: one slot a trial, so that as many train at once as there are slots; elastic: one slot to all of them."
    )
    head = ("seed", "rigid, s", "elastic, s", "ratio", "best val_loss")
    return Part(title="A search with halving", text=f"{how}\n\n{table(head, *rows)}", claims=claims)


def _pairs(
    seeds: Sequence[int], num_trials: int, num_epochs: int, num_slots: int
) -> Sequence[tuple[Searched, Searched]]:
    with tempfile.TemporaryDirectory(prefix="plb-") as root:
        processes = Processes(Path(root) / "output.log")
        try:
            server = Server(Path(root), processes, slots=num_slots)
            _search(server, seeds[0], 1, 3, num_slots)  # the first one waits for the zygote and fills caches
            found = []
            for turn, seed in enumerate(seeds):
                widths = (1, num_slots) if turn % 2 == 0 else (num_slots, 1)
                by_width = {width: _search(server, seed, num_trials, num_epochs, width) for width in widths}
                found.append((by_width[1], by_width[num_slots]))
            server.close()
            return found
        finally:
            processes.end()


def _search(server: Server, seed: int, num_trials: int, num_epochs: int, max_tasks: int) -> Searched:
    search = server.client.tune(
        SCRIPT,
        parameters={"lr": "log:1e-4..3e-2", "width": "int:8..32"},
        metric="val_loss",
        max_trials=num_trials,
        halving=f"1..{num_epochs}:3",
        sampler={"name": "random", "seed": seed},
        args=("--epochs", str(num_epochs)),
        max_tasks=max_tasks,
        virtual_workers=VIRTUAL_WORKERS,
    )
    ended = search.wait(timeout_s=LIMIT_S)
    if ended.state != "completed" or ended.ended_at is None or ended.best is None or ended.best.results is None:
        raise RuntimeError(f"the search is {ended.state}: {ended.reason}")
    return Searched(
        wall_s=ended.ended_at - ended.created_at,
        best=ended.best.results[0],
        outcome=[
            (dict(trial.values), trial.state, trial.reports, trial.results, trial.reason) for trial in search.trials()
        ],
    )
