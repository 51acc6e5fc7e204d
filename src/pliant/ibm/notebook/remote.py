"""The server of a notebook: which it is, how a job there is followed, and what it leaves is fetched."""

import math
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from pliant.api.jobs import NotedJob
from pliant.client import Client
from pliant.client.nouns.notebook import display_of_kernel
from pliant.core.errors import Conflict, NotFound, Unavailable
from pliant.core.job import Job
from pliant.core.lifecycle import JobState
from pliant.ibm.notebook.show import ACCURACY, LOSS, Cell
from pliant.train import TrainingError

_POLL_S: Final = 1.0
_FINAL: Final = {JobState.COMPLETED: "FINISHED", JobState.STOPPED: "KILLED", JobState.FAILED: "FAILED"}
"""How IBM calls the states that a job ends in."""


def follow(client: Client, job: NotedJob, *, num_epochs: int) -> None:
    """Show how far a job is until it has ended.

    Raises:
        TrainingError: it did not complete.
        KeyboardInterrupt: the cell was interrupted; the job is stopped then, as a training here would be.
    """
    least, most = job.min_tasks, job.max_tasks
    slots = f"{most} slot{'s' * (most > 1)}" if least == most else f"{least} to {most} slots"
    print(f"{job.id} is submitted: {num_epochs} epoch{'s' * (num_epochs > 1)} on {slots} of {client.url}")
    for note in job.notes:
        print(f"note: {note}")
    cell = Cell(display_of_kernel())

    def show(now: Job) -> None:
        try:
            points = client.metrics(job.id, names=[LOSS, ACCURACY], after_step=cell.last_step).points
        except (Unavailable, NotFound):
            points = ()  # the server starts again, or nothing is reported yet
        cell.show(now, points)

    try:
        ended = client.wait(job.id, timeout_s=math.inf, poll_s=_POLL_S, on_poll=show)
    except KeyboardInterrupt:
        with suppress(Conflict):  # it has just ended
            client.stop(job.id)
        print(f"{job.id} is stopped; its checkpoints and logs are kept")
        raise
    print(f"Job {job.id} finishes with state {_FINAL[ended.state]}.")
    if ended.state is not JobState.COMPLETED:
        raise TrainingError(
            f"{job.id} is {ended.state.value} (`pliant logs {job.id}` shows what it printed): {ended.reason}"
        )


def find_client(*, is_needed: bool) -> Client | None:
    """Return a client of the server that the command line would speak to; None if none is known.

    Args:
        is_needed: raise instead.

    Raises:
        Unavailable: no server is known; or one is, and what is stored of it cannot be read.
        Unauthorized: nobody is logged in there.
    """
    try:
        return Client.connect()
    except Unavailable:
        if is_needed or os.environ.get("PLIANT_URL"):
            raise
        return None


def fetch_model(client: Client, job_id: str, out_dir: Path) -> Path:
    """Write the trained model of a job into a folder as JOB_ID.zip and return its path."""
    target = out_dir / f"{job_id}.zip"
    out_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{job_id}.", dir=out_dir) as folder:
        to = client.result(job_id, Path(folder) / "result", only=["model/"])
        packed = shutil.make_archive(str(Path(folder) / job_id), "zip", to / "model")
        os.replace(packed, target)
    return target
