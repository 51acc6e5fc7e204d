"""Leaves something where the server will look, and ends as it was asked to."""

import json
import os
import resource
import signal
import sys
from pathlib import Path

FACTS = json.loads(sys.argv[1])
LOG, RESULT = Path(os.environ["LOG_DIR"]), Path(os.environ["RESULT_DIR"])
MODEL = Path(os.environ["SAVED_MODEL_DIR"])


def replace(path: Path, *, by: str) -> None:
    """Put something else in a file's place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    match by:
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "itself":
            path.symlink_to(path.name)
        case "zero":
            path.symlink_to("/dev/zero")
        case "sparse":
            with path.open("wb") as file:
                longest = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
                os.truncate(file.fileno(), 1 << 42 if longest == resource.RLIM_INFINITY else longest)
        case _:
            path.symlink_to(by)


PLACES = {"step": LOG / ".step", "unsent": LOG / ".unsent"}
PLACES |= {"stdout": LOG / "stdout", "stderr": LOG / "stderr", "model": MODEL / "model.pt"}
for place, by in FACTS["replace"].items():
    replace(PLACES.get(place, RESULT / place), by=by)
if FACTS.get("deep"):
    descriptor = os.open(RESULT, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=descriptor)
        below = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
if FACTS.get("killed"):
    os.kill(os.getpid(), signal.SIGKILL)
