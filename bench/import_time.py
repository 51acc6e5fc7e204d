"""What `import pliant` costs, against an interpreter that imports nothing and one that imports torch.

The claim: under 50 ms, and no torch. Figures are the time from starting the interpreter to its exit; the cost of an
import is the median over the runs minus the median of the empty program, taken in turns so that all see the same load.
"""

import argparse
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench._report import finish

PROGRAMS = {
    "nothing": "pass",
    "import pliant": "import pliant",
    "import pliant.client": "import pliant.client",
    "import torch": "import torch",
}
LIMIT_MS = 50.0


def measure(num_runs: int) -> dict[str, list[float]]:
    """Return the milliseconds of every run of every program."""
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(num_runs + 1):
        for name, program in PROGRAMS.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True)
            times[name].append((time.perf_counter() - began) * 1000)
    return {name: runs[1:] for name, runs in times.items()}  # the first run of each warms the file cache


def report(times: dict[str, list[float]]) -> tuple[str, float]:
    """Return the report as Markdown and the cost of `import pliant` in milliseconds."""
    empty = statistics.median(times["nothing"])
    rows = [
        f"| `{name}` | {statistics.median(runs):.0f} [{min(runs):.0f} {max(runs):.0f}] "
        f"| {statistics.median(runs) - empty:.1f} |"
        for name, runs in times.items()
    ]
    cost = statistics.median(times["import pliant"]) - empty
    num_runs = len(times["nothing"])
    head = (
        "# What `import pliant` costs\n\n"
        f"`python -m bench.import_time --runs {num_runs}`, Python {platform.python_version()}, {platform.platform()}. "
        f"Milliseconds from start to exit of the interpreter, median [minimum maximum] of {num_runs} runs in turns.\n\n"
        "| program | ms | more than nothing |\n|---|---|---|\n"
    )
    verdict = f"\n\n`import pliant` costs {cost:.1f} ms; the limit is {LIMIT_MS:.0f} ms.\n"
    return head + "\n".join(rows) + verdict, cost


def main() -> int:
    """Measure, write the report, and fail if the limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the report here as well")
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    text, cost = report(measure(options.runs))
    finish(text, (), options.out)
    return 0 if cost < LIMIT_MS else 1


if __name__ == "__main__":
    sys.exit(main())
