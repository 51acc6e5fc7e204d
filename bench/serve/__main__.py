"""How fast endpoints answer, beside uvicorn, Ray Serve, MLServer, LitServe and BentoML; and how fast they grow.

One generator asks all sides, on a core of its own; the servers of the side whose turn it is have another one
(`--server-cores`). The sides take turns, in rounds whose order turns round; whoever has no turn does not run, and
starts anew for the next. Every claim is a ratio within the same rounds, or a time on the same machine.

The peers run in virtual environments of their own (made at the first run; `--install` only makes them).
"""

import argparse
import sys
from functools import partial
from pathlib import Path

from bench._report import finish
from bench.serve.install import PINS, environments, install
from bench.serve.page import Found, claims, page
from bench.serve.place import divide_cores
from bench.serve.run import Wanted, run
from bench.serve.sides import SIDES

PARTS = ("echo", "cnn", "life")


def main() -> int:
    """Measure, write the report; the exit status is 1 if a claim is missed."""
    given = _read_arguments()
    wanted_sides = [side for side in SIDES if given.only is None or side.key in given.only]
    peers = {side.peer: None for side in wanted_sides if side.peer}
    missing = install(given.env, peers if given.parts != ["life"] else ())
    for peer, why in missing.items():
        print(f"{peer} is not installed: {why}", file=sys.stderr)
    if given.install:
        return 1 if missing else 0
    cores = divide_cores(given.server_cores or None)
    wanted = Wanted(
        parts=tuple(given.parts),
        sides=tuple(side for side in wanted_sides if side.peer not in missing),
        environments=given.env,
        cores=cores,
        num_rounds=given.rounds,
        round_s=given.round_s,
    )
    found: Found = run(wanted, partial(print, flush=True))
    judged = list(claims(found))
    pins = ", ".join(pin for peer in peers for pin in PINS[peer][:1])
    command = f"python -m bench.serve {_shown(given)}"
    return finish(page(found, missing, command, judged, pins, str(cores)), judged, given.out)


def _shown(given: argparse.Namespace) -> str:
    only = "" if given.only is None else f" --only {' '.join(given.only)}"
    parts = "" if tuple(given.parts) == PARTS else f" --parts {' '.join(given.parts)}"
    return f"--rounds {given.rounds} --round-s {given.round_s:g} --server-cores {given.server_cores}{parts}{only}"


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    parser.add_argument("--env", type=Path, default=environments(), help="the peers' environments (%(default)s)")
    parser.add_argument("--install", action="store_true", help="make the environments and end")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="measure these parts only")
    parser.add_argument("--only", nargs="+", choices=[side.key for side in SIDES], help="these systems only")
    parser.add_argument("--rounds", type=int, default=5, help="turns of every side (default 5)")
    parser.add_argument("--round-s", type=float, default=2.0, help="seconds of every figure in a turn (default 2)")
    parser.add_argument(
        "--server-cores",
        type=int,
        default=1,
        help="cores of the servers; 0: all, shared with the generator (default 1)",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
