"""Logs to Weights & Biases, as WANDB_API_KEY, WANDB_MODE and their kin say, with the job's own package `wandb`.

How much has reached W&B of a run whose task was killed, W&B alone knows. Online, a run that is resumed says at which
step it goes on. Offline nobody can say, so each task writes the run from its beginning and removes those that it
replaces: one folder of one run is left, with every step once.
"""

import importlib
import shutil
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final

from pliant.core.job_params import ParamValue
from pliant.core.tag import words_of_tag
from pliant.tracking.journal import TrackedPoint
from pliant.tracking.tracker import Outcome, TrackedJob, TrackerDown, TrackerRefused

_OFFLINE: Final = ("offline", "dryrun")
_INIT_S: Final = 60.0
_MAX_TAG: Final = 64
"""W&B takes no longer ones."""


def is_asked_for(env: Mapping[str, str]) -> bool:
    """Tell whether the variables say that W&B is to be logged to."""
    mode = env.get("WANDB_MODE", "").lower()
    return mode in _OFFLINE or (bool(env.get("WANDB_API_KEY")) and mode in ("", "online", "run", "shared"))


class WandbTracker:
    """The job's run on W&B."""

    name = "Weights & Biases"
    replays = True

    def __init__(self, job: TrackedJob, env: Mapping[str, str]) -> None:
        self._job = job
        self._env = env
        self._is_offline = env.get("WANDB_MODE", "").lower() in _OFFLINE
        self._id = env.get("WANDB_RUN_ID") or job.run_id
        self._run: Any = None
        self._next_step = 0
        """Earlier ones are there, or can be logged no more."""

    def open(self) -> None:
        """Begin or resume the run."""
        if self._run is not None:
            return
        try:
            wandb = importlib.import_module("wandb")  # whether it is there is the job's environment's business
        except ImportError as error:
            message = "the job's environment has no package wandb; name it in the job's requirements"
            raise TrackerRefused(message) from error
        folder = Path(self._env.get("WANDB_DIR") or self._job.result_dir)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._run = wandb.init(
                id=self._id,
                resume=None if self._is_offline else "allow",
                name=self._env.get("WANDB_NAME") or f"{self._job.name} ({self._job.job_id})",
                dir=str(folder),
                config={"pliant_job": self._job.job_id},
                settings=wandb.Settings(console="off", silent=True, disable_git=True, init_timeout=_INIT_S),
            )
        except wandb.errors.CommError as error:
            raise TrackerDown(_in_a_line(error)) from error
        except (wandb.Error, OSError, ValueError) as error:
            raise TrackerRefused(_in_a_line(error)) from error
        if self._job.tags:  # those that were added to the run elsewhere stay
            ours = (words_of_tag(*tag)[:_MAX_TAG] for tag in self._job.tags.items())
            self._run.tags = tuple(dict.fromkeys((*(self._run.tags or ()), *ours)))
        self._next_step = 0 if self._is_offline else int(self._run.step)

    def log(self, points: Sequence[TrackedPoint]) -> None:
        """Log points; W&B takes the steps of a run in their order."""
        row: dict[str, float] = {}
        for point, following in zip(points, (*points[1:], None), strict=True):
            if point.step < self._next_step:
                continue
            row |= {point.name: point.value, "_timestamp": point.at}
            if following is None or following.step != point.step:
                self._run.log(row, step=point.step)
                self._next_step = point.step
                row = {}

    def log_params(self, params: Mapping[str, ParamValue]) -> None:
        """Put hyperparameters into the run's config."""
        self._run.config.update(dict(params), allow_val_change=True)

    def close(self, outcome: Outcome) -> None:
        """End the run; it can be resumed all the same."""
        if self._run is None:
            return
        mine = Path(str(self._run.dir)).parent
        self._run.finish(exit_code=1 if outcome is Outcome.FAILED else 0)
        if self._is_offline:
            _keep_only(mine, f"offline-run-*-{self._id}")


def _keep_only(mine: Path, pattern: str) -> None:
    """Remove the runs that this one replaces, and the links to the newest one, which no archive of results takes."""
    for other in mine.parent.iterdir():
        if other.is_symlink():
            other.unlink(missing_ok=True)
        elif other != mine and fnmatch(other.name, pattern):
            shutil.rmtree(other, ignore_errors=True)


def _in_a_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
