"""The program of the tasks that a `ProcessStage` starts: `FOLDER [SOURCE]`. Knows no cluster.

It notes in FOLDER/began that it runs, then runs SOURCE (a Python text; `folder` and `note` are at hand), or waits for a
line in the pipe FOLDER/orders and ends with that exit code. SIGTERM ends it with code 0.
"""

import json
import signal
import sys
from pathlib import Path


def note(path: Path, value: object) -> None:
    """Write a value so that a reader never sees half of it."""
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(value))
    draft.replace(path)


def _leave(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # else a second one could end it while Python shuts down
    sys.exit(0)


def main(argv: list[str]) -> int:
    """Run as the task's program; return the exit code."""
    folder = Path(argv[0])
    signal.signal(signal.SIGTERM, _leave)
    note(folder / "began", True)
    if len(argv) > 1:
        exec(argv[1], {"folder": folder, "note": note, "__name__": "__main__"})
        return 0
    with (folder / "orders").open() as orders:
        return int(orders.readline())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
