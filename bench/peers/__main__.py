"""How long training stands still when its workers change: Pliant against torchrun elastic, torchft and Ray Train.

Every system trains the same models on this machine (in its own way, its documented best practice followed; below) and
goes through the same events: two workers join two, two of four leave, one joins two, one of three is killed by SIGKILL.
Lost time is the gap between the last step before the event took hold and the first new step after it, steps done again
included, minus the usual step. Of several gaps only the longest counts.

The peers run in a virtual environment of their own (made at the first run; `--install` only makes it).
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

from bench._report import finish
from bench.peers.install import PINS, default_folder, install
from bench.peers.page import claims, page
from bench.peers.session import Outcome, play
from bench.peers.sides import KINDS

BUDGET_S = 800.0
"""A repetition of a peer is begun only if so much time has not passed yet."""


def main() -> int:
    """Measure all that can be installed, write the report; the exit status is 1 if a claim is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    parser.add_argument("--env", type=Path, default=default_folder(), help="the peers' environment (%(default)s)")
    parser.add_argument("--install", action="store_true", help="make the environment and end")
    parser.add_argument("--only", nargs="+", choices=[kind.key for kind in KINDS], help="these systems only")
    parser.add_argument("--models", nargs="+", choices=("cnn", "mlp"), default=["cnn", "mlp"])
    parser.add_argument("--runs", type=int, default=3, help="sessions of Pliant (default 3)")
    parser.add_argument("--peer-runs", type=int, default=1, help="sessions of every peer (default 1)")
    given = parser.parse_args()
    missing = install(given.env)
    for peer, why in missing.items():
        print(f"{peer} is not installed: {why}", file=sys.stderr)
    if given.install:
        return 1 if missing else 0
    found = _measure(given, missing)
    judged = list(claims(found))
    only = "" if given.only is None else f" --only {' '.join(given.only)}"
    shown = f"--models {' '.join(given.models)} --runs {given.runs} --peer-runs {given.peer_runs}{only}"
    pins = ", ".join(pin for pins in PINS.values() for pin in pins)
    text = page(found, missing, f"python -m bench.peers {shown}", judged, pins)
    return finish(text, judged, given.out)


def _measure(given: argparse.Namespace, missing: dict[str, str]) -> dict[tuple[str, str], list[Outcome]]:
    began = time.monotonic()
    found: dict[tuple[str, str], list[Outcome]] = {}
    for kind in KINDS:
        if kind.peer in missing or (given.only and kind.key not in given.only):
            continue
        for model in [name for name in kind.models if name in given.models]:
            sessions = found[kind.key, model] = []
            for turn in range(given.peer_runs if kind.peer else given.runs):
                if turn > 0 and time.monotonic() - began > BUDGET_S:
                    break
                outcome = play(kind, model, given.env / "bin" / "python")
                sessions.append(outcome)
                _tell(kind.label, model, outcome)
    return found


def _tell(label: str, model: str, outcome: Outcome) -> None:
    costs = [(event, cost) for event, found in outcome.lost.items() for cost in found]
    lost = ", ".join(f"{event}: {cost.lost_s:.3f} s" for event, cost in costs)
    usual = statistics.median([cost.usual_s for _, cost in costs] or [0.0])
    print(f"{label}, {model} ({outcome.took_s:.0f} s, usual step {usual * 1000:.0f} ms): {lost} {outcome.trouble}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
