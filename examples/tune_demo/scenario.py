"""The scenario: a search beside a training, on slots that they share; then both again, with trials of a fixed size.

Everything goes through the public client. What is waited for is what the server reports, with a deadline.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from examples.demo.director import Director, has_ended
from examples.demo.recording import DemoFailed, Recording, Seen
from pliant.api.jobs import JobRequest
from pliant.api.searches import SearchView
from pliant.client import Client
from pliant.core.job import JobId
from pliant.core.search import SearchState, Trial
from pliant.core.space import arguments_of

NUM_SLOTS: Final = 8
NUM_WORKERS: Final = 4
"""Virtual workers of everything: a trial may have as many tasks."""
NUM_TRIALS: Final = 9
METRIC: Final = "val_loss"
SPACE: Final = {"lr": "log:1e-4..1e-1", "width": "choice:8,16,32", "momentum": "float:0.5..0.95"}
HALVING: Final = "1..9:3"
LABEL: Final = "A"
ELASTIC, RIGID = "elastic", "rigid"


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneSettings:
    """What is trained, and how long anything may take."""

    code: Path
    num_epochs: int
    """Of the training beside the searches."""
    seed: int = 0
    """Of the sampler."""
    rigid_tasks: int = 2
    """Of each trial of the search whose trials have a fixed size."""
    deadline_s: float = 180.0
    """For a search to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One search, with the training beside it."""

    label: str
    view: SearchView
    trials: tuple[Trial, ...]
    beside: JobId
    began_at: float
    ended_at: float
    """When the search had come to its end."""

    @property
    def took_s(self) -> float:
        return self.ended_at - self.began_at


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneOutcome:
    """Whom the scenario was about."""

    elastic: Run
    rigid: Run
    best_alone: JobId
    """The best trial once more, as an ordinary job on one slot."""
    training_alone: JobId
    """The training once more, on one slot."""


def play(client: Client, director: Director, recording: Recording, settings: TuneSettings) -> TuneOutcome:
    """Play all three stages.

    Raises:
        DemoFailed: something that must happen did not.
    """
    with director.stage(1, f"A trains; {NUM_TRIALS} trials beside it, on 1 to {NUM_WORKERS} slots each"):
        elastic = _search(client, director, recording, settings, label=ELASTIC)
    with director.stage(2, f"the same once more, each trial on {settings.rigid_tasks} slots, no more and no less"):
        rigid = _search(client, director, recording, settings, label=RIGID)
    with director.stage(3, "the best trial and A once more, each alone on one slot"):
        best = _best_alone(client, recording, settings, elastic)
        alone = _train(client, recording, settings, f"{LABEL} alone", max_tasks=1)
        director.wait("both have ended", lambda s: _have_ended(s, (best, alone)), within_s=settings.deadline_s)
    return TuneOutcome(elastic=elastic, rigid=rigid, best_alone=best, training_alone=alone)


def _search(client: Client, director: Director, recording: Recording, settings: TuneSettings, *, label: str) -> Run:
    """Run a search beside a training, from the first step of the training to the end of both."""
    beside = _train(client, recording, settings, LABEL if label == ELASTIC else f"{LABEL} again", max_tasks=NUM_WORKERS)
    director.wait("A trains", lambda s: s.size(beside) > 0, within_s=settings.deadline_s)
    num_tasks = None if label == ELASTIC else settings.rigid_tasks
    began_at = time.time()
    handle = client.tune(
        settings.code, parameters=SPACE, metric=METRIC, max_trials=NUM_TRIALS, name=label, script="tune.py",
        halving=HALVING, sampler={"name": "random", "seed": settings.seed}, min_tasks=num_tasks or 1,
        max_tasks=num_tasks or NUM_WORKERS, virtual_workers=NUM_WORKERS,
    )  # fmt: skip

    def over(seen: Seen) -> bool:
        _label_trials(recording, seen)
        return seen.search is not None and seen.search.name == label and seen.search.state is not SearchState.RUNNING

    director.wait("the search has ended", over, within_s=settings.deadline_s)
    view = handle.show()
    if view.state is not SearchState.COMPLETED or view.best is None or view.ended_at is None:
        raise DemoFailed(f"the search {label} is {view.state.value}: {view.reason}")
    director.wait("A has ended", lambda s: _have_ended(s, (beside,)), within_s=settings.deadline_s)
    return Run(
        label=label,
        view=view,
        trials=tuple(handle.trials()),
        beside=beside,
        began_at=began_at,
        ended_at=view.ended_at,
    )


def _label_trials(recording: Recording, seen: Seen) -> None:
    """Give trials that have come the name of their search, and their number."""
    for job_id, detail in seen.details.items():
        if (part := detail.job.spec.trial) is not None and job_id not in seen.labels:
            recording.add_job(job_id, f"{part.search} #{part.number}")


def _train(client: Client, recording: Recording, settings: TuneSettings, label: str, *, max_tasks: int) -> JobId:
    args = ("--epochs", str(settings.num_epochs), "--width", "16", "--seed", "1")
    return _submit(client, recording, settings, label, "elastic.py", args, max_tasks=max_tasks)


def _best_alone(client: Client, recording: Recording, settings: TuneSettings, run: Run) -> JobId:
    assert run.view.best is not None
    args = arguments_of(run.view.best.values)
    return _submit(client, recording, settings, "best alone", "tune.py", args, max_tasks=1)


def _submit(
    client: Client, recording: Recording, settings: TuneSettings, label: str, script: str, args: tuple[str, ...],
    *, max_tasks: int,
) -> JobId:  # fmt: skip
    request = JobRequest(
        name=label.lower().replace(" ", "-"), script=script, args=args, max_tasks=max_tasks,
        virtual_workers=NUM_WORKERS, checkpoint_freq=0,
    )  # fmt: skip
    job = client.submit(settings.code, request)
    recording.add_job(job.id, label)
    return job.id


def _have_ended(seen: Seen, job_ids: tuple[JobId, ...]) -> bool:
    return all(job_id in seen.details and has_ended(seen, job_id) for job_id in job_ids)
