"""A server whose trials a test keeps: it holds and releases the jobs that files in the folder of KEEPING are called by.

`job-3.hold` holds job-3, and `job-3.release` releases it; either file is gone when that is done.
"""

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from pliant.control.requests.trials import TrialRequests
from pliant.core.job import JobId
from pliant.entry.server import process
from pliant.entry.server.composition import Composition, compose

WHY = "it waits at rung 1 of lr-search"
KEEPING = "TEST_KEEPING"


def keep(trials: TrialRequests, folder: Path) -> None:
    while True:
        for file in folder.glob("job-*.*"):
            asked = {".hold": trials.hold, ".release": trials.release}[file.suffix]
            asked(JobId(file.stem), WHY)
            file.unlink()
        time.sleep(0.02)


def compose_and_keep(*args: Any) -> Composition:
    made = compose(*args)
    threading.Thread(
        target=keep, args=(made.context.control.trials, Path(os.environ[KEEPING])), name="keeping", daemon=True
    ).start()
    return made


if __name__ == "__main__":
    process.compose = compose_and_keep  # type: ignore[assignment, attr-defined]
    sys.exit(process.main(sys.argv[1:]))
