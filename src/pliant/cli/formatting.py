"""Numbers and times as people read them. Pure."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from pliant.core.duration import duration as duration
from pliant.core.duration import rough_duration
from pliant.core.job import Job, Progress
from pliant.core.size import size as size

NOTHING: Final = "–"


def short_duration(seconds: float) -> str:
    """Return a length of time for a table: `8s`, `2m05s`, `3h20m`, `4d02h`."""
    return duration(seconds).replace(" min", "m").replace(" ", "")


def short_rough(seconds: float) -> str:
    """Return an estimated length of time for a table: `40s`, `12m`, `2h10m`, `3d04h`."""
    return rough_duration(seconds).replace(" min", "m").replace(" ", "")


def milliseconds(seconds: float) -> str:
    """Return a short time."""
    return f"{seconds * 1000:.0f} ms" if seconds < 10 else duration(seconds)


def clock_time(at: float) -> str:
    """Return the time of day where the person is."""
    return _local(at).strftime("%H:%M:%S")


def date_time(at: float) -> str:
    """Return day and time where the person is."""
    return _local(at).strftime("%Y-%m-%d %H:%M:%S")


def number(value: float) -> str:
    """Return a measured number with four digits."""
    return f"{value:.4g}"


def fraction_done(progress: Progress | None) -> float:
    """Return how much of a job is done, 0 to 1."""
    if progress is None or progress.num_steps <= 0:
        return 0.0
    return min(1.0, progress.step / progress.num_steps)


def epochs(progress: Progress | None) -> str:
    """Return epochs finished of all."""
    return NOTHING if progress is None else f"{progress.epoch}/{progress.num_epochs}"


def percent(progress: Progress | None) -> str:
    """Return how much is done."""
    return NOTHING if progress is None else f"{100 * fraction_done(progress):.0f}%"


def loss(progress: Progress | None) -> str:
    """Return the newest loss."""
    return NOTHING if progress is None or progress.loss is None else f"{progress.loss:.3g}"


def bounds(job: Job) -> str:
    """Return minimum and maximum of tasks."""
    return str(job.min_tasks) if job.min_tasks == job.max_tasks else f"{job.min_tasks}-{job.max_tasks}"


def num_tasks(job: Job) -> str:
    """Return `1 task`, `4 tasks`, `1-8 tasks`."""
    return f"{bounds(job)} task{'' if job.max_tasks == 1 else 's'}"


def time_left(job: Job, write: Callable[[float], str] = duration) -> str:
    """Return the time left for a job that runs, or how long an ended one took."""
    if job.ended:
        return NOTHING if job.started_at is None or job.ended_at is None else write(job.ended_at - job.started_at)
    eta_s = None if job.progress is None else job.progress.eta_s
    return NOTHING if eta_s is None or job.num_slots == 0 else write(eta_s)


def claim(job: Job) -> str:
    """Return what a job's results are worth."""
    because = f": {job.claim_reason}" if job.claim_reason else ""
    match job.claim:
        case None:
            return NOTHING
        case "exact":
            return "exact (bitwise the same for any number of workers)"
        case "statistical":
            return f"statistical since step {job.claim_step}{because}"
        case "fast":
            return f"fast (the same samples and batch, sums in any order){because}"


def count_of(how_many: int, noun: str) -> str:
    """Return `1 slot`, `2 slots`."""
    return f"{how_many} {noun}" if how_many == 1 else f"{how_many} {noun}s"


def _local(at: float) -> datetime:
    return datetime.fromtimestamp(at, tz=UTC).astimezone()
