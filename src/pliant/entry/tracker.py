"""The process that logs a training to one tracker: started by the task that leads, it reads what that writes down.

    python -P -m pliant.entry.tracker mlflow --job job-3 --name digits --folder DIR --result-dir DIR

It ends when a line on its standard input says how the training ended, or when that is closed, since then its task is
gone. Each line that it prints is a warning for the job's owner. Only one such process of a job logs at a time: the one
that holds the lock.
"""

import argparse
import fcntl
import os
import select
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pliant.core.secret_names import HIDDEN, hide_password, names_secret
from pliant.core.tag import read_tags
from pliant.tracking.delivery import Delivery
from pliant.tracking.mlflow import MlflowTracker, settings_of
from pliant.tracking.recorder import JOURNAL
from pliant.tracking.tracker import Outcome, TrackedJob, Tracker, TrackerRefused
from pliant.tracking.wandb import WandbTracker

TICK_S: Final = 0.5
END_S: Final = 8.0
"""So long it tries to log what is left, once its training has ended."""
_NO_LOCK_S: Final = 1.0
"""So long it waits for another process of the job that logs, where somebody goes on to log what is left."""
_MIN_SECRET: Final = 6
_MAX_SAID: Final = 100_000


def main(argv: Sequence[str] | None = None) -> int:
    """Log until the training ends; return the exit code."""
    parser = argparse.ArgumentParser(prog="pliant.entry.tracker", description=__doc__)
    parser.add_argument("tracker", choices=("mlflow", "wandb"))
    parser.add_argument("--job", required=True, help="its id")
    parser.add_argument("--name", required=True, help="of the job, for people")
    parser.add_argument(
        "--folder", type=Path, required=True, help="where the job's processes keep what is to be logged"
    )
    parser.add_argument("--result-dir", type=Path, required=True, help="the job's results")
    options = parser.parse_args(argv)
    warnings = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
    os.dup2(2, 1)  # what a package prints is no warning of ours

    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)

    def warn(text: str) -> None:
        text = _without_secrets(" ".join(text.split()), os.environ)
        if _is_new(text, folder / f"{options.tracker}.warned"):
            print(text, file=warnings, flush=True)

    job = TrackedJob(
        job_id=options.job,
        name=options.name,
        run_id=_run_id(folder, options.job),
        result_dir=options.result_dir,
        tags=read_tags(os.environ.get("PLIANT_TAGS", "")),
    )
    try:
        tracker = _tracker(options.tracker, job)
    except TrackerRefused as error:
        warn(f"nothing is logged to {options.tracker}: {error}")
        return 0
    delivery = Delivery(
        tracker=tracker,
        journal=folder / JOURNAL,
        mark=folder / f"{options.tracker}.json",
        warn=warn,
        clock=time.monotonic,
    )
    with (folder / f"{options.tracker}.lock").open("a") as lock:
        _serve(delivery, lock.fileno(), can_share=not tracker.replays)
    return 0


def _tracker(name: str, job: TrackedJob) -> Tracker:
    if name == "mlflow":
        return MlflowTracker(job, settings_of(os.environ))
    return WandbTracker(job, os.environ)


def _serve(delivery: Delivery, lock: int, *, can_share: bool) -> None:
    """Log until the training ends.

    Args:
        lock: a file; who has it locked logs.
        can_share: how the training ended can be said while another process logs.
    """
    outcome, has_lock = None, False
    while outcome is None:
        has_lock = has_lock or _try_lock(lock)
        if has_lock:
            delivery.tick()
        if delivery.is_refused:
            return
        outcome = _outcome(TICK_S)
    now = time.monotonic()
    deadline = now + END_S
    lock_deadline = now + (END_S if outcome.is_last else _NO_LOCK_S)
    while not has_lock and time.monotonic() < lock_deadline:
        time.sleep(0.05)
        has_lock = _try_lock(lock)
    while has_lock and not delivery.tick() and time.monotonic() < deadline:
        time.sleep(0.2)
    if has_lock or can_share:
        delivery.close(outcome)


def _outcome(timeout_s: float) -> Outcome | None:
    """Return how the training ended, or None if it has not within so many seconds; end if its task is gone."""
    if not select.select([sys.stdin], [], [], timeout_s)[0]:
        return None
    line = sys.stdin.readline()
    if not line:
        os._exit(0)  # without a word to the tracker: the next leader goes on
    return Outcome(line.strip())


def _try_lock(lock: int) -> bool:
    """Take the lock if nobody has it. The system gives it back whatever becomes of this process."""
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _run_id(folder: Path, job_id: str) -> str:
    """Return what the job's run is called on every tracker; who comes first decides."""
    path = folder / "run-id"
    mine = folder / f"run-id.{os.getpid()}"
    if not path.exists():
        mine.write_text(f"{job_id}-{uuid.uuid4().hex[:12]}")
        try:
            os.link(mine, path)
        except FileExistsError:
            pass
        finally:
            mine.unlink()
    found = path.read_text()[:100]
    return "".join(one for one in found if one.isalnum() or one in "-_") or job_id


def _is_new(text: str, said: Path) -> bool:
    """Tell whether no process of the job has warned of this before, and note that one has now."""
    try:
        with said.open("a+", encoding="utf-8", errors="replace") as file:
            file.seek(0)
            if f"{text}\n" in file.read(_MAX_SAID):
                return False
            file.write(f"{text}\n")
    except OSError:
        return True
    return True


def _without_secrets(text: str, env: Mapping[str, str]) -> str:
    """Return a text without what the job's variables hold that nobody else may read."""
    for name, value in env.items():
        if names_secret(name) and len(value) >= _MIN_SECRET:
            text = text.replace(value, HIDDEN)
    return hide_password(text)


if __name__ == "__main__":
    sys.exit(main())
