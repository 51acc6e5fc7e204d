"""What every report of these benchmarks says the same way: the head, figures with their spread, and verdicts."""

import os
import platform
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A ratio that must not be exceeded, or reached, and what was found."""

    text: str
    found: str
    holds: bool | None
    """None: not measured in this run."""


def head(title: str, command: str) -> str:
    """Return the title, the command, the versions and the machine."""
    return (
        f"# {title}\n\n`{command}` · Python {platform.python_version()}, torch {version('torch')}, "
        f"Pliant {version('pliant')}, Linux {platform.release()}, {processor()}, "
        f"{len(os.sched_getaffinity(0))} CPUs; load average at the end {os.getloadavg()[0]:.1f}\n"
    )


def processor() -> str:
    """Return the name of this machine's processor, as well as it can be found out."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def spread(values: Sequence[float], digits: int = 1) -> str:
    """Return the median and, if there are more values than one, the range.

    >>> spread([3.0, 1.0, 2.0])
    '2.0 [1.0 3.0]'
    """
    middle = f"{statistics.median(values):.{digits}f}"
    return middle if len(values) == 1 else f"{middle} [{min(values):.{digits}f} {max(values):.{digits}f}]"


def table(*rows: Sequence[str]) -> str:
    """Return a Markdown table; the first row is its head."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]) + "\n"


def verdicts(claims: Sequence[Claim]) -> str:
    """Return the claims as a table."""
    words = {True: "holds", False: "**missed**", None: "not measured"}
    return table(("claim", "found", ""), *((claim.text, claim.found, words[claim.holds]) for claim in claims))


def finish(text: str, claims: Sequence[Claim], out: Path | None) -> int:
    """Print the report, write it, and return the exit status: 1 if a claim was missed."""
    print(text)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text)
    missed = [claim.text for claim in claims if claim.holds is False]
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed else 0
