"""What `import pliant` and a command cost, against an interpreter that imports nothing, or click, or torch.

The claims: `import pliant` is under 50 ms, and `pliant version` and a shell's completion are there in under 250 ms.
Figures are the time from starting the interpreter to its exit; the cost of an import is the median over the runs minus
the median of the empty program, taken in turns so that all see the same load.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench._report import finish

PROGRAMS = {
    "nothing": ["-c", "pass"],
    "import click": ["-c", "import click"],
    "import pliant": ["-c", "import pliant"],
    "the client": ["-c", "from pliant.client import Client"],
    "pliant submit --help": ["-m", "pliant.cli.app", "submit", "--help"],
    "pliant version": ["-m", "pliant.cli.app", "version"],
    "completion of pliant wh": ["-m", "pliant.cli.app"],
    "import torch": ["-c", "import torch"],
}
COMMANDS = ("pliant version", "completion of pliant wh")
COMPLETION = {"_PLIANT_COMPLETE": "complete_bash", "COMP_WORDS": "pliant wh", "COMP_CWORD": "1"}
LIMIT_MS = 50.0
COMMAND_LIMIT_MS = 250.0


def measure(num_runs: int) -> dict[str, list[float]]:
    """Return the milliseconds of every run of every program."""
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(num_runs + 1):
        for name, program in PROGRAMS.items():
            env = os.environ | (COMPLETION if name.startswith("completion") else {})
            began = time.perf_counter()
            subprocess.run([sys.executable, *program], check=True, env=env, stdout=subprocess.DEVNULL)
            times[name].append((time.perf_counter() - began) * 1000)
    return {name: runs[1:] for name, runs in times.items()}  # the first run of each warms the file cache


def report(times: dict[str, list[float]]) -> tuple[str, bool]:
    """Return the report as Markdown, and whether the claims hold."""
    empty, click = statistics.median(times["nothing"]), statistics.median(times["import click"])
    rows = [
        f"| `{name}` | {statistics.median(runs):.0f} [{min(runs):.0f} {max(runs):.0f}] "
        f"| {statistics.median(runs) - empty:.1f} | {statistics.median(runs) / click:.1f} |"
        for name, runs in times.items()
    ]
    cost = statistics.median(times["import pliant"]) - empty
    slowest = max(statistics.median(times[name]) for name in COMMANDS)
    num_runs = len(times["nothing"])
    head = (
        "# What `import pliant` and a command cost\n\n"
        f"`python -m bench.import_time --runs {num_runs}`, Python {platform.python_version()}, {platform.platform()}. "
        f"Milliseconds from start to exit of the interpreter, median [minimum maximum] of {num_runs} runs in turns.\n\n"
        "| program | ms | more than nothing | times `import click` |\n|---|---|---|---|\n"
    )
    verdict = (
        f"\n\n`import pliant` costs {cost:.1f} ms; the limit is {LIMIT_MS:.0f} ms. "
        f"A command that asks no server takes {slowest:.0f} ms; the limit is {COMMAND_LIMIT_MS:.0f} ms.\n"
    )
    return head + "\n".join(rows) + verdict, cost < LIMIT_MS and slowest < COMMAND_LIMIT_MS


def main() -> int:
    """Measure, write the report, and fail if the limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the report here as well")
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    text, holds = report(measure(options.runs))
    finish(text, (), options.out)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
