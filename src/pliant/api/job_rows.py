"""What lists of jobs show of each: little enough that a page of a hundred is read in a moment."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pliant.core.job import Job, JobKind, Progress
from pliant.core.lifecycle import JobState

MAX_SENTENCE: Final = 200
"""Of a longer sentence a list shows the beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingView:
    """Where a job that holds no slots stands."""

    place: int
    """1: the next of its queue that is given slots, if its minimum fits."""
    num_waiting: int
    """So many wait in its queue, itself among them."""
    num_needed: int
    """Slots of its minimum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressView:
    """How far a training is."""

    epoch: int
    num_epochs: int
    step: int
    num_steps: int
    fraction: float
    """Of its steps, 0 to 1."""
    samples_per_s: float | None
    """Null while it holds no slots."""
    eta_s: float | None
    """Seconds left at its present speed; null if that is not known, or it holds no slots."""
    loss: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job as a row of a table; `/v1/jobs/{id}` has all of it."""

    id: str
    name: str
    colour: int
    """The number of the colour that it has everywhere."""
    kind: JobKind
    owner: str
    state: JobState
    queue: str
    priority: int
    min_slots: int
    max_slots: int
    num_slots: int
    """That it holds now."""
    target_slots: int
    """That the newest decision gives it."""
    waiting: WaitingView | None
    """Null: it holds slots, has ended, or something else than slots keeps it from running."""
    progress: ProgressView | None
    """Null: it has not told any yet."""
    sentence: str
    """The newest one about it: why it has the slots it has, or how it ended; its beginning, if it is long."""
    submitted_at: float
    started_at: float | None
    ended_at: float | None
    search: str | None
    """The search that it is a trial of."""
    tags: Mapping[str, str]
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRowPage:
    """A part of a list of jobs."""

    rows: tuple[JobRow, ...]
    total: int
    """So many jobs fit what was asked for."""
    last_seq: int
    """The newest event that this is sure to show; the stream goes on after it."""
    now: float


def job_row(job: Job, *, target_slots: int, waiting: WaitingView | None) -> JobRow:
    """Return the row of a job."""
    is_over = job.ended or job.state is JobState.STOPPING
    return JobRow(
        id=job.id,
        name=job.spec.name,
        colour=job.colour,
        kind=job.spec.kind,
        owner=job.owner,
        state=job.state,
        queue=job.queue,
        priority=job.priority,
        min_slots=job.spec.num_slots_for(job.min_tasks),
        max_slots=job.spec.num_slots_for(job.max_tasks),
        num_slots=job.num_slots,
        target_slots=target_slots,
        waiting=waiting,
        progress=None if job.progress is None else _progress(job.progress, runs=job.num_slots > 0),
        sentence=shorten((job.reason if is_over else job.why) or job.reason),
        submitted_at=job.submitted_at,
        started_at=job.started_at,
        ended_at=job.ended_at,
        search=None if job.spec.trial is None else job.spec.trial.search,
        tags=job.tags,
        revision=job.revision,
    )


def shorten(sentence: str) -> str:
    """Return the first line of a sentence, or as much of it as a list has room for."""
    first = sentence.partition("\n")[0]
    return first if len(first) <= MAX_SENTENCE else f"{first[: MAX_SENTENCE - 1]}…"


def _progress(progress: Progress, *, runs: bool) -> ProgressView:
    return ProgressView(
        epoch=progress.epoch,
        num_epochs=progress.num_epochs,
        step=progress.step,
        num_steps=progress.num_steps,
        fraction=min(1.0, progress.step / progress.num_steps) if progress.num_steps > 0 else 0.0,
        samples_per_s=_finite(progress.samples_per_s) if runs else None,
        eta_s=_finite(progress.eta_s) if runs else None,
        loss=_finite(progress.loss),
    )


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None
