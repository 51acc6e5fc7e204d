"""`python -m pliant.sim.play`: play a trace under every policy and show what became of it.

Without a trace it plays a story of two jobs and a mixed day. Here the simulator meets the command line, the file that
is named and a temporary folder; nothing else of the machine enters.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from pliant.core.errors import InvalidInput, UserError
from pliant.core.plan import PolicyName
from pliant.sim.outcome import TraceOutcome
from pliant.sim.report import chart, comparison, jobs_table, mean_completion_s, mean_wait_s
from pliant.sim.run import simulate
from pliant.sim.trace import MAX_NODES, MAX_SLOTS, Trace, day, on_pool, parse, story

_BAD_INPUT = 2


def main(argv: Sequence[str]) -> int:
    """Play what the arguments name; return the exit status."""
    options = _parser().parse_args(argv)
    try:
        traces = {
            title: on_pool(trace, options.nodes, options.slots)
            for title, trace in _traces(options.trace, options.seed).items()
        }
        played = {title: _play(trace) for title, trace in traces.items()}
    except InvalidInput as error:
        for problem in error.problems:
            print(f"{problem.field}: {problem.message}" if problem.field else problem.message, file=sys.stderr)
        return _BAD_INPUT
    except UserError as error:
        print(error, file=sys.stderr)
        return _BAD_INPUT
    if options.json:
        print(json.dumps({title: _as_json(outcomes) for title, outcomes in played.items()}, indent=1))
        return 0
    for title, outcomes in played.items():
        print(_page(title, outcomes, PolicyName(options.policy)))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pliant.sim.play", description=__doc__.partition("\n")[0])
    parser.add_argument("trace", nargs="?", type=Path, metavar="TRACE.json", help="if left out: a story and a day")
    parser.add_argument(
        "--policy", choices=[str(name) for name in PolicyName], default="fairshare", help="whose chart to show"
    )
    parser.add_argument("--slots", type=_up_to(MAX_SLOTS), metavar="N", help="of each node, instead of the trace's")
    parser.add_argument("--nodes", type=_up_to(MAX_NODES), metavar="N", help="of the pool, instead of the trace's")
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="of the mixed day; the same seed, the same day"
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    return parser


def _up_to(most: int) -> Callable[[str], int]:
    def positive(text: str) -> int:
        number = int(text)
        if not 1 <= number <= most:
            raise argparse.ArgumentTypeError(f"{number} is not within 1 to {most}")
        return number

    return positive


def _traces(path: Path | None, seed: int) -> Mapping[str, Trace]:
    if path is None:
        return {"A long job and a short one": story(), f"A mixed day (seed {seed})": day(seed)}
    try:
        return {path.name: parse(path.read_bytes())}
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}; name a JSON file"
        raise InvalidInput.at("trace", message) from error


def _play(trace: Trace) -> tuple[TraceOutcome, ...]:
    outcomes = []
    for name in PolicyName:
        with tempfile.TemporaryDirectory(prefix="pliant-sim-") as home:
            outcomes.append(simulate(trace, name, Path(home)))
    return tuple(outcomes)


def _page(title: str, outcomes: Sequence[TraceOutcome], policy: PolicyName) -> str:
    shown = next(outcome for outcome in outcomes if outcome.policy is policy)
    head = f"{title}: {shown.num_slots} slots, {len(shown.jobs)} jobs, policy {policy}"
    return "\n\n".join([head, chart(shown), jobs_table(shown), comparison(outcomes), ""])


def _as_json(outcomes: Sequence[TraceOutcome]) -> dict[str, object]:
    return {
        str(outcome.policy): {
            **asdict(outcome),
            "utilisation": outcome.utilisation,
            "mean_wait_s": mean_wait_s(outcome),
            "mean_completion_s": mean_completion_s(outcome),
        }
        for outcome in outcomes
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
