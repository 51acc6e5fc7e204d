"""Searches: what a trial costs, what halving with elastic trials gains, what is found, and how many trials are kept.

Everything is measured in the same run: Ray Tune and Optuna with a process per trial beside Pliant, rigid trials beside
elastic ones, plain Optuna beside the adviser. Ray runs in the peers' environment (made at the first run; `--install`
only makes it).
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from bench._report import finish, head, verdicts
from bench.peers.install import PINS, default_folder, install
from bench.tune import halving, many, overhead, quality
from bench.tune.part import Part

PARTS = ("overhead", "halving", "quality", "many")


def main() -> int:
    """Measure, write the report; the exit status is 1 if a claim is missed."""
    given = _read_arguments()
    wants_ray = given.install or ("overhead" in given.parts and not given.without_ray)
    missing = install(given.env, ["ray"]).get("ray", "") if wants_ray else "it was not asked for"
    if given.install:
        print(missing, file=sys.stderr)
        return 1 if missing else 0
    python = None if missing else given.env / "bin" / "python"
    found = [_measured(name, given, python) for name in given.parts]
    claims = [claim for part in found for claim in part.claims]
    ray = f"Ray is not measured: {missing}\n" if missing else f"Beside it: {', '.join(PINS['ray'])}.\n"
    text = "\n".join(
        (
            head("Searches", f"python -m bench.tune {' '.join(sys.argv[1:])}".strip()),
            ray if "overhead" in given.parts else "",
            *(f"## {part.title}\n\n{part.text}" for part in found),
            verdicts(claims),
        )
    )
    return finish(text, claims, given.out)


def _measured(name: str, given: argparse.Namespace, python: Path | None) -> Part:
    print(f"measuring {name}", flush=True)
    parts: Mapping[str, Callable[[], Part]] = {
        "overhead": lambda: overhead.measure(given.trials, python),
        "halving": lambda: halving.measure(range(given.seeds), _contest(given)),
        "quality": lambda: quality.measure(given.choices, max(1, given.choices // 4), seed=1),
        "many": lambda: many.measure(given.many, given.calls),
    }
    return parts[name]()


def _contest(given: argparse.Namespace) -> halving.Contest:
    return halving.Contest(
        num_trials=given.halving_trials,
        num_epochs=given.epochs,
        num_slots=given.slots,
        sample_s=given.sample_ms / 1000,
    )


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    parser.add_argument("--env", type=Path, default=default_folder(), help="the peers' environment (%(default)s)")
    parser.add_argument("--install", action="store_true", help="make the environment and end")
    parser.add_argument("--without-ray", action="store_true", help="compare with Optuna's processes only")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="measure these parts only")
    parser.add_argument("--trials", type=int, default=10, help="of every side of `overhead` (default 10)")
    parser.add_argument("--seeds", type=int, default=5, help="searches of `halving` (default 5)")
    parser.add_argument("--halving-trials", type=int, default=18, help="trials of each (default 18)")
    parser.add_argument("--epochs", type=int, default=27, help="epochs of a trial that is never pruned (default 27)")
    parser.add_argument("--slots", type=int, default=8, help="slots of `halving` (default 8)")
    parser.add_argument(
        "--sample-ms", type=float, default=1.5, help="what a sample takes in `halving`, in place of a GPU (default 1.5)"
    )
    parser.add_argument("--choices", type=int, default=100, help="trials of `quality` (default 100; gp: a quarter)")
    parser.add_argument("--many", type=int, default=10_000, help="trials of `many` (default 10000)")
    parser.add_argument("--calls", type=int, default=20, help="how often each call of `many` is timed (default 20)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
