"""Makes the event file that the results of a job hold for TensorBoard, of the series that the store has.

It is made when somebody asks, also while the job runs, and of nothing that a task wrote: so it is one file without gaps
or repetitions, however often the training was resized and whichever workers it lost.
"""

import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from pliant.core.chart import Bucket, Series
from pliant.core.job import Job, JobId
from pliant.files import event_file
from pliant.files.untrusted.packing import MadeFile

MAX_POINTS: Final = 50_000
"""Of one series; a longer one is written as so many means."""
MAX_ALL_POINTS: Final = 200_000
_MIN_POINTS: Final = 10
_PARAMS: Final = "params/text_summary"


class Charts(Protocol):
    """What is needed of a store."""

    def chart(self, job_id: JobId, *, max_buckets: int = ...) -> tuple[Series, ...]:
        """Return all series of a job, each in so many buckets at most."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFile:
    """The event file of a job, to be made."""

    job: Job
    charts: Charts

    @property
    def name(self) -> str:
        return event_file.name_of_file(self.job.submitted_at, self.job.id)

    def make(self, name: str) -> MadeFile | None:
        """Make it under this name in the archive; return None if the job has no series."""
        job, chart = self.job, self.charts.chart
        series = chart(job.id, max_buckets=MAX_POINTS)
        if sum(len(one.buckets) for one in series) > MAX_ALL_POINTS:
            series = chart(job.id, max_buckets=max(_MIN_POINTS, MAX_ALL_POINTS // len(series)))
        if not series:
            return None
        content = tempfile.TemporaryFile()  # noqa: SIM115 - who packs it closes it
        content.writelines(_records(job, series))
        newest = max(bucket.at for one in series for bucket in one.buckets)
        return MadeFile(name=name, content=content, num_bytes=content.tell(), changed_at=newest)


def _records(job: Job, series: tuple[Series, ...]) -> Iterator[bytes]:
    yield event_file.header(job.submitted_at)
    if job.params:
        yield event_file.text(_PARAMS, job.submitted_at, event_file.table(job.params))
    for one in series:
        yield from event_file.scalars(one.name, map(_point, one.buckets))


def _point(bucket: Bucket) -> event_file.Scalar:
    mean = math.nan if bucket.mean is None else bucket.mean
    return event_file.Scalar(step=bucket.last_step, at=bucket.at, value=mean)
