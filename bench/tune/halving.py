"""One search with halving on digits: trials that grow when others are pruned, against trials of one and of two slots.

Trials of one slot use all slots while there are many; trials of two are sooner through when few are left. Who has rigid
trials chooses a width before the search, so elastic ones are also compared with the one that turned out better.

A slot stands for an accelerator that is not there: every sample takes a while in which its process waits. What two
cores compute besides is the same for all sides.
"""

import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
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
NARROW: Final = "rigid, 1 slot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """What is searched, and on what."""

    num_trials: int
    num_epochs: int
    """Of a trial that is never pruned."""
    num_slots: int
    """Of the server."""
    sample_s: float
    """What the accelerator of a slot, which is not there, takes for a sample."""

    @property
    def sides(self) -> Mapping[str, tuple[int, int]]:
        """How many tasks a trial has at least and at most, by the name of the side."""
        return {NARROW: (1, 1), "rigid, 2 slots": (2, 2), "elastic": (1, self.num_slots)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """What a search took, and what came of it."""

    wall_s: float
    best: float
    outcome: Sequence[tuple[object, ...]]
    """Values, reports and results of all trials."""


def measure(seeds: Sequence[int], contest: Contest) -> Part:
    """Run the same search on all sides, in turns, on one server."""
    found = _searched(seeds, contest)
    to_narrow = [one["elastic"].wall_s / one[NARROW].wall_s for one in found]
    to_best = [one["elastic"].wall_s / min(one[side].wall_s for side in one if side != "elastic") for one in found]
    rows = [
        (
            str(seed),
            *(f"{one[side].wall_s:.1f}" for side in contest.sides),
            f"{narrow:.2f}",
            f"{best:.2f}",
            f"{one['elastic'].best:.5f}",
        )
        for seed, one, narrow, best in zip(seeds, found, to_narrow, to_best, strict=True)
    ]
    same = sum(all(side.outcome == one["elastic"].outcome for side in one.values()) for one in found)
    claims = (
        Claim(
            text="values, reports and results of all trials are the same, elastic or rigid",
            found=f"{same} of {len(found)} searches",
            holds=same == len(found),
        ),
        Claim(
            text=f"elastic trials take at most {MAX_RATIO:g} of the time of trials of one slot, median",
            found=spread(to_narrow, 2),
            holds=statistics.median(to_narrow) <= MAX_RATIO,
        ),
        Claim(
            text=f"and at most {MAX_RATIO:g} of the better rigid width, whichever that is, median",
            found=spread(to_best, 2),
            holds=statistics.median(to_best) <= MAX_RATIO,
        ),
    )
    how = (
        f"{contest.num_trials} trials, halving by whole rungs up to epoch {contest.num_epochs} by the factor 3, "
        f"{contest.num_slots} slots. Rigid: every trial has one slot, or two, and as many train at once as that leaves "
        f"room for; elastic: one slot to all of them. **No accelerator is there**: in its place every part of a batch "
        f"waits {contest.sample_s * 1000:g} ms for each of its samples, without a core, and then computes on the cores "
        f"of this machine, which all slots share."
    )
    sides = (f"{side}, s" for side in contest.sides)
    head = ("seed", *sides, "elastic to 1 slot", "to the better width", "best val_loss")
    return Part(title="A search with halving", text=f"{how}\n\n{table(head, *rows)}", claims=claims)


def _searched(seeds: Sequence[int], contest: Contest) -> Sequence[Mapping[str, Searched]]:
    with tempfile.TemporaryDirectory(prefix="plb-") as root:
        processes = Processes(Path(root) / "output.log")
        try:
            server = Server(Path(root), processes, slots=contest.num_slots)
            warm_up = Contest(num_trials=3, num_epochs=3, num_slots=contest.num_slots, sample_s=0.0)
            _search(server, seeds[0], warm_up, (1, contest.num_slots))  # it waits for the zygote and fills caches
            sides, found = list(contest.sides.items()), []
            for seed in seeds:
                searched = {}
                for side, bounds in sides:
                    searched[side] = _search(server, seed, contest, bounds)
                    print(f"seed {seed}, {side}: {searched[side].wall_s:.1f} s", file=sys.stderr, flush=True)
                found.append(searched)
                sides.append(sides.pop(0))  # each comes first in its turn
            server.close()
            return found
        finally:
            processes.end()


def _search(server: Server, seed: int, contest: Contest, bounds: tuple[int, int]) -> Searched:
    search = server.client.tune(
        SCRIPT,
        parameters={"lr": "log:1e-4..3e-2", "width": "int:4..16"},
        metric="val_loss",
        max_trials=contest.num_trials,
        halving=f"1..{contest.num_epochs}:3",
        sampler={"name": "random", "seed": seed},
        args=("--epochs", str(contest.num_epochs), "--sample-s", str(contest.sample_s)),
        min_tasks=bounds[0],
        max_tasks=bounds[1],
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
