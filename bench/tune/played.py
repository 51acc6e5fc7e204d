"""The jobs of trials, which train when they are told to."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pliant.core.access import VisibleJobs
from pliant.core.job import JobId, JobSpec
from pliant.core.lifecycle import JobState
from pliant.core.search import Constraint, Objective, SearchSettings
from pliant.policy.tuning.intake import JobNews, SeriesPoint
from pliant.tune.searches.ports import LiveTrial


@dataclass(slots=True)
class PlayedJob:
    """A job that has trained so many epochs."""

    spec: JobSpec
    epoch: int = 0
    state: JobState = JobState.RUNNING
    held: bool = False


@dataclass(slots=True, kw_only=True)
class PlayedJobs:
    """All jobs; they are the `TrialJobs` of searches."""

    most: int
    """So many train at once."""
    num_epochs: int
    num_reserved: int
    """Of trials that ended before; their jobs are not asked for."""
    jobs: dict[JobId, PlayedJob] = field(default_factory=dict)

    def reserve(self) -> JobId:
        """Return the id of a job to come."""
        self.num_reserved += 1
        return JobId(f"job-{self.num_reserved}")

    def check(self, spec: JobSpec, archive: Path, owner: str, visible: VisibleJobs | None) -> Sequence[str]:
        """Find nothing wrong."""
        return ()

    def submit(self, job_id: JobId, spec: JobSpec, archive: Path, owner: str, visible: VisibleJobs | None) -> None:
        """Begin a job, unless it is there."""
        self.jobs.setdefault(job_id, PlayedJob(spec))

    def live(self) -> Sequence[LiveTrial]:
        """Return the jobs that have not ended."""
        return [
            LiveTrial(job_id=job_id, search=part.search, number=part.number, held=job.held)
            for job_id, job in self.jobs.items()
            if job.state is JobState.RUNNING and (part := job.spec.trial) is not None
        ]

    def news(self, job_id: JobId, read: Sequence[Objective | Constraint], after_step: int) -> JobNews:
        """Return what a job has reported: a loss each epoch."""
        job = self.jobs[job_id]
        seed = int(job_id.removeprefix("job-"))
        points = [
            SeriesPoint(epoch=epoch, step=epoch, value=(1 + seed * 7919 % 1000) / 1000 / epoch)
            for epoch in range(1, job.epoch + 1)
            if epoch > after_step or job.state is not JobState.RUNNING
        ]
        return JobNews(state=job.state, series={"val_loss": points} if points else {}, reported=("val_loss",))

    def values_at_rung(
        self, job_id: JobId, settings: SearchSettings, rung: int
    ) -> Mapping[str, Sequence[SeriesPoint]] | None:
        """Return nothing: a job reports its loss alone."""
        return {}

    def hold(self, job_id: JobId, why: str) -> None:
        """Let a job train no further."""
        self.jobs[job_id].held = True

    def release(self, job_id: JobId, why: str) -> None:
        """Let a job go on."""
        self.jobs[job_id].held = False

    def stop(self, job_id: JobId, who: str) -> None:
        """End a job."""
        self.jobs[job_id].state = JobState.STOPPED

    def num_places(self, spec: JobSpec) -> int:
        """Return how many train at once."""
        return self.most

    def slot_hours(self, job_ids: Collection[JobId]) -> float:
        """Return what some jobs have used."""
        return float(len(job_ids))

    def train(self) -> None:
        """Let every job train an epoch that may, but for its last."""
        for job in self.jobs.values():
            if job.state is JobState.RUNNING and not job.held and job.epoch < self.num_epochs - 1:
                job.epoch += 1

    def end_one(self) -> None:
        """Let the first job that trains come to its end."""
        job = next((one for one in self.jobs.values() if one.state is JobState.RUNNING and not one.held), None)
        if job is not None:
            job.epoch, job.state = self.num_epochs, JobState.COMPLETED
