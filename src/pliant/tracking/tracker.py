"""What a tracker must do to be logged to, and how it says that it cannot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from pliant.core.job_params import ParamValue
from pliant.tracking.journal import TrackedPoint


class Outcome(StrEnum):
    """What became of a training, as far as the task knows that led it."""

    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"
    PAUSED = "paused"
    HANDED_OVER = "handed over"
    """Another task leads now, and logs what is left."""

    @property
    def is_last(self) -> bool:
        """No task logs anything after this one. After a failure others may, after a pause the job's next ones."""
        return self in (Outcome.FINISHED, Outcome.STOPPED)


class TrackerDown(Exception):
    """The tracker could not take it now; it may later."""


class TrackerRefused(Exception):
    """The tracker does not take this, now or later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedJob:
    """Whose run it is."""

    job_id: str
    name: str
    run_id: str
    """No other job's, on no server; the same for all tasks of the job."""
    result_dir: Path
    tags: Mapping[str, str] = field(default_factory=dict)
    """Values by name; they may be empty."""


class Tracker(Protocol):
    """A run of a tracker. Its methods wait for the tracker, a few seconds each."""

    name: str
    replays: bool
    """It is given the journal from its beginning, since nobody knows how much of it has arrived."""

    def open(self) -> None:
        """Begin the job's run, or go on with it; from now on what it has already is left out.

        Raises:
            TrackerDown: try again later.
            TrackerRefused: what the person said of the tracker is wrong; the message says what.
        """
        ...

    def log(self, points: Sequence[TrackedPoint]) -> None:
        """Log points.

        Raises:
            TrackerDown: nothing, or a part of it, was logged; log the same again later.
            TrackerRefused: it will not be taken.
        """
        ...

    def log_params(self, params: Mapping[str, ParamValue]) -> None:
        """Log hyperparameters; raises as `log` does."""
        ...

    def close(self, outcome: Outcome) -> None:
        """End the run, or leave it to who goes on; raises as `log` does."""
        ...
