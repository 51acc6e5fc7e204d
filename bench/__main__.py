"""Run every benchmark of this folder: `python -m bench [NAME …]`.

A benchmark is a file that runs by itself, takes `--out FILE` and writes its report there as Markdown. Each runs in a
process of its own, one after the other; the exit status is that of the worst.
"""

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"
LIMIT_S = 900


def names() -> list[str]:
    """Return the names of all benchmarks."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_"))


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
