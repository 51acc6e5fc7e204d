"""Run every benchmark of this folder: `python -m bench [NAME …]`.

A benchmark is a file, or a folder with a `__main__.py`, that runs by itself, takes `--out FILE` and writes its report
there as Markdown. Each runs in a process of its own, one after the other; the exit status is that of the worst.
"""

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"
LIMIT_S = 1800  # the first run of `peers` installs them


def names() -> list[str]:
    """Return the names of all benchmarks."""
    files = [path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_")]
    return sorted([*files, *(path.parent.name for path in FOLDER.glob("*/__main__.py"))])


def run(name: str) -> int:
    """Run one benchmark and return its exit status."""
    out = RESULTS / f"{name}.md"
    print(f"--- {name} → {out}", flush=True)
    return subprocess.run(
        [sys.executable, "-m", f"bench.{name}", "--out", str(out)], timeout=LIMIT_S, check=False
    ).returncode


def main(wanted: list[str]) -> int:
    """Run the wanted benchmarks, or all."""
    if unknown := sorted(set(wanted) - set(names())):
        print(f"no benchmark named {', '.join(unknown)}; there are: {', '.join(names())}", file=sys.stderr)
        return 2
    RESULTS.mkdir(exist_ok=True)
    return max(run(name) for name in wanted or names())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
