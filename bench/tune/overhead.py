"""What a trial costs before it trains: from the moment when its values are chosen to its first line and first step."""

import itertools
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from bench._report import Claim, spread, table
from bench.peers.processes import Processes
from bench.peers.server import Server
from bench.tune.part import Part

SCRIPTS: Final = Path(__file__).parent / "scripts"
MAX_S: Final = 0.5
RATIO: Final = 5.0
LIMIT_S: Final = 240.0
RAY: Final = "Ray Tune, an actor per trial"
OURS: Final = "Pliant, warm zygote"
OPTUNA: Final = "Optuna on SQLite, a process per trial"
_FILE: Final = "times.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """One trial, seconds since the epoch."""

    asked_at: float
    began_at: float
    stepped_at: float

    @property
    def to_line_s(self) -> float:
        return self.began_at - self.asked_at

    @property
    def to_step_s(self) -> float:
        return self.stepped_at - self.asked_at


Side = Callable[[Path, Processes, int], Sequence[Times]]


def measure(num_trials: int, rays_python: Path | None) -> Part:
    """Run trials on all sides, one side after the other; the first trial of each is not counted.

    Args:
        rays_python: of an environment with Ray; None: there is none.
    """
    sides: dict[str, Side] = {OURS: by_pliant, OPTUNA: by_optuna}
    if rays_python is not None:
        sides[RAY] = partial(by_ray, rays_python, "actors")
        sides["Ray Tune, `reuse_actors=True`"] = partial(by_ray, rays_python, "reused")
    found = {name: _run(side, num_trials + 1)[1:] for name, side in sides.items()}
    head = ("seconds, median [min max]", "to the first line", "to the first step", "from trial to trial")
    rows = [
        (
            name,
            spread([one.to_line_s for one in times], 3),
            spread([one.to_step_s for one in times], 3),
            spread([b.asked_at - a.asked_at for a, b in itertools.pairwise(times)] or [0.0], 3),
        )
        for name, times in found.items()
    ]
    how = (
        f"{num_trials} trials of one step of the small CNN, one at a time, on one slot. A trial begins when its values "
        f"are chosen (Pliant: have been chosen); its first line runs when torch is imported. Reused actors keep no "
        f"trial apart from the one before it."
    )
    return Part(title="What a trial costs", text=f"{how}\n\n{table(head, *rows)}", claims=_claims(found))


def _claims(found: Mapping[str, Sequence[Times]]) -> Sequence[Claim]:
    lines = {name: statistics.median(one.to_line_s for one in times) for name, times in found.items()}
    steps = {name: statistics.median(one.to_step_s for one in times) for name, times in found.items()}
    return (*_claims_of("first line", lines), *_claims_of("first step", steps))


def _claims_of(what: str, medians: Mapping[str, float]) -> Sequence[Claim]:
    ours, ray = medians[OURS], medians.get(RAY)
    return (
        Claim(
            text=f"the {what} of a trial is there within {MAX_S:g} s",
            found=f"{ours:.3f} s",
            holds=ours <= MAX_S,
        ),
        Claim(
            text=f"that is {RATIO:.0f} times sooner than with Ray Tune and an actor per trial",
            found="no Ray" if ray is None else f"{ray / ours:.1f} ×",
            holds=None if ray is None else ray / ours >= RATIO,
        ),
        Claim(
            text="and sooner than with Optuna and a process per trial",
            found=f"{medians[OPTUNA] / ours:.1f} ×",
            holds=medians[OPTUNA] > ours,
        ),
    )


def _run(side: Side, num_trials: int) -> Sequence[Times]:
    with tempfile.TemporaryDirectory(prefix="plb-") as root:
        folder = Path(root)
        processes = Processes(folder / "output.log")
        try:
            return side(folder, processes, num_trials)
        finally:
            processes.end()


def by_pliant(folder: Path, processes: Processes, num_trials: int) -> Sequence[Times]:
    """Search with a server of one slot."""
    server = Server(folder, processes, slots=1)
    search = server.client.tune(
        SCRIPTS / "trial.py",
        parameters={"lr": "log:1e-4..1e-1"},
        metric="val_loss",
        max_trials=num_trials,
        sampler={"name": "random", "seed": 1},
        args=("pliant", _FILE),
        virtual_workers=8,
    )
    ended = search.wait(timeout_s=LIMIT_S)
    if ended.state != "completed":
        raise RuntimeError(f"the search is {ended.state}: {ended.reason}")
    times = []
    for trial in search.trials():
        noted = json.loads((server.home / "jobs" / trial.job_id / "result" / _FILE).read_text())
        times.append(Times(asked_at=trial.begun_at, **noted))
    server.close()
    return times


def by_ray(python: Path, how: str, folder: Path, processes: Processes, num_trials: int) -> Sequence[Times]:
    """Search with Ray Tune."""
    command: Sequence[str | Path] = [python, SCRIPTS / "by_ray.py", folder, str(num_trials), how]
    return _by_script(command, folder, processes, num_trials)


def by_optuna(folder: Path, processes: Processes, num_trials: int) -> Sequence[Times]:
    """Search with Optuna."""
    command: Sequence[str | Path] = [sys.executable, SCRIPTS / "by_optuna.py", folder, str(num_trials)]
    return _by_script(command, folder, processes, num_trials)


def _by_script(command: Sequence[str | Path], folder: Path, processes: Processes, num_trials: int) -> Sequence[Times]:
    if processes.start(command).wait(LIMIT_S) != 0:
        raise RuntimeError(f"{command[1]} failed:\n{processes.tail()}")
    return [
        Times(
            asked_at=float((folder / f"{number}.asked").read_text()), **json.loads((folder / str(number)).read_text())
        )
        for number in range(num_trials)
    ]
