"""The load of a version over time: what the gateway reports four times a second, as points of its job's series.

A point stands for the time since the one before it, `SAMPLE_S` at least; its step is the age of the job in seconds, so
that a new server goes on where the one before was. What is as it was makes no point: an idle version has none.
A version that runs for long is sampled less often, at each 8,640th of its age: every 10 s on the first day, every 5
minutes after a month. So a version that is busy for a year has 60,000 points in each of its series.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pliant.control.jobs.draft import Draft
from pliant.core.job import Job, Metric
from pliant.core.serving import VersionLoad

SAMPLE_S: Final = 10.0
_SAMPLES_OF_AGE: Final = 8640


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadHistory:
    """What was reported since the newest point."""

    seconds: float = 0.0
    completed: int = 0
    failed: int = 0
    refused: int = 0
    num_batches: int = 0
    most_queued: int = 0
    sampled_at: float | None = None
    """When the newest point was made; None before the first."""
    values: Mapping[str, float] = field(default_factory=dict)
    """Of the newest point."""

    def add(self, load: VersionLoad) -> "LoadHistory":
        """Return this with one more report."""
        return replace(
            self,
            seconds=self.seconds + load.seconds,
            completed=self.completed + load.completed,
            failed=self.failed + load.failed,
            refused=self.refused + load.refused,
            num_batches=self.num_batches + load.num_batches,
            most_queued=max(self.most_queued, load.queued),
        )

    def is_due(self, now: float, age_s: float) -> bool:
        """Tell whether it is time for a point."""
        return self.sampled_at is None or now - self.sampled_at >= max(SAMPLE_S, age_s / _SAMPLES_OF_AGE)


def take_sample(draft: Draft, job: Job, history: LoadHistory, load: VersionLoad, wanted: int) -> LoadHistory:
    """Take in a report, and note a point of every series if that is due and something is not as it was."""
    history, age_s = history.add(load), max(0.0, draft.now - job.submitted_at)
    if not history.is_due(draft.now, age_s):
        return history
    values = _values(history, load, wanted)
    if values != history.values:
        step = int(age_s)
        draft.measure(
            *(
                Metric(job_id=job.id, name=name, step=step, epoch=0, at=draft.now, value=value)
                for name, value in values.items()
            )
        )
    return LoadHistory(sampled_at=draft.now, values=values)


def _values(history: LoadHistory, load: VersionLoad, wanted: int) -> dict[str, float]:
    seconds = max(history.seconds, 1e-9)
    values = {
        "requests_per_s": history.completed / seconds,
        "errors_per_s": history.failed / seconds,
        "refused_per_s": history.refused / seconds,
        "queued": float(history.most_queued),
        "kernels_ready": float(load.num_ready),
        "kernels_wanted": float(wanted),
    }
    if history.completed:
        values |= {f"latency_{name}_s": value for name, value in load.latency_s.items()}
    if history.num_batches:
        values["batch_size"] = history.completed / history.num_batches
    return values
