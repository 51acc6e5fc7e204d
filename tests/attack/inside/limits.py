"""Takes more of the machine than a job may have, in one of several ways, and then stands still."""

import ctypes
import json
import os
import resource
import sys
import tempfile
import threading
from pathlib import Path

FACTS = json.loads(sys.argv[1])
RESULT = Path(os.environ["RESULT_DIR"])
PIECE = bytes(1 << 20)
NUM_PIECES = 400
"""Twice as many MiB as a job of the attacked server may have."""
NUM_PROCESSES = 250
_kept: list[object] = []


def hide() -> None:
    """Keep processes of the same user from looking into this one."""
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)


def one_file() -> str:
    with (RESULT / "one").open("wb", buffering=0) as file:
        try:
            for _ in range(NUM_PIECES):
                file.write(PIECE)
        except OSError:
            written = file.tell()
            return "refused" if written > 100 * len(PIECE) else f"refused after {written} bytes"
    return "written"


def many_files(folder: Path) -> str:
    for number in range(NUM_PIECES):
        (folder / f"part-{number}").write_bytes(PIECE)
    return "written"


def removed_files() -> str:
    for _ in range(NUM_PIECES):
        file = tempfile.TemporaryFile(dir=RESULT, buffering=0)  # noqa: SIM115 (it is to stay open)
        file.write(PIECE)
        _kept.append(file)
    return "written"


def deep_folders() -> str:
    here = os.open(RESULT, os.O_RDONLY)
    for _ in range(1000):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    return "made"


def memory() -> str:
    hide()
    _kept.append(b"1" * FACTS["num_bytes"])
    return "held"


def forks() -> str:
    """Fork as often as a limit of its own lets it, which is low enough for any machine."""
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    most = NUM_PROCESSES if hard == resource.RLIM_INFINITY else min(hard, NUM_PROCESSES)
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    forked = 0
    try:
        while forked < NUM_PROCESSES:
            if os.fork() == 0:
                threading.Event().wait()
            forked += 1
    except BlockingIOError:
        return f"refused after {forked}"
    return f"{forked} forked"


if FACTS["how"] == "hidden removed files":
    hide()
ways = {
    "one file": one_file,
    "many files": lambda: many_files(RESULT),
    "many temporary files": lambda: many_files(Path(tempfile.gettempdir())),
    "removed files": removed_files,
    "hidden removed files": removed_files,
    "deep folders": deep_folders,
    "memory": memory,
    "forks": forks,
}
print(json.dumps({"seen": ways[FACTS["how"]]()}), flush=True)
if FACTS["how"] != "one file":
    threading.Event().wait()
