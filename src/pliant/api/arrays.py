"""Bodies of REST about arrays: one script, run for every combination of some values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from pydantic import model_validator

from pliant.api.jobs import JobRequest
from pliant.api.request import refuse
from pliant.core.array import ArraySettings, faults_of
from pliant.core.job import Job, JobSpec
from pliant.core.lifecycle import JobState


class ArrayRequest(JobRequest, ArraySettings):
    """What the jobs of an array have in common, and the values of each; travels beside their packed code."""

    def spec(self) -> JobSpec:
        """Return what the jobs have in common."""
        return JobRequest.model_construct(**{name: getattr(self, name) for name in JobRequest.model_fields}).spec()

    @model_validator(mode="after")
    def _combines(self) -> Self:
        return refuse(self, faults_of(self.array))


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayView:
    """An array and its jobs."""

    id: str
    name: str
    owner: str
    num_jobs: int
    """As many were made."""
    max_running: int | None
    """So many of them run at once at most."""
    states: Mapping[JobState, int]
    """How many of its jobs are in each state; states that none is in are left out."""
    jobs: tuple[Job, ...]
    """In the order of their values; those that are there still."""
    notes: tuple[str, ...] = ()
    """Of a new array: what its owner should know, in sentences; each is an event of every job, too."""
