"""A search that is played: trials whose curves are known, trained in any order, a few epochs at a time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random

from pliant.core.job import JobId, JobSpec
from pliant.core.lifecycle import JobState
from pliant.core.search import Halving, Objective, Sampler, Search, SearchSettings, SearchState, Trial, TrialState
from pliant.core.space import SearchParameter
from pliant.policy.tuning.advance import SearchStep, advance, bracket_to_ask
from pliant.policy.tuning.intake import JobNews, SeriesPoint
from pliant.policy.tuning.rankings import Rankings
from pliant.policy.tuning.rungs import has_arrived, is_to_begin, rungs_of

SPACE = {"lr": SearchParameter(kind="float", low=0.0, high=1.0)}
LOSS = Objective(metric="val_loss", direction="minimize")


def settings_of(halving: Halving | None = None, **changes: object) -> SearchSettings:
    """Return settings of a search for a small val_loss."""
    values: dict[str, object] = {"objectives": (LOSS,), "max_trials": 9, "sampler": Sampler(name="random")}
    return SearchSettings(parameters=SPACE, halving=halving, **(values | changes))  # type: ignore[arg-type]


def search_of(settings: SearchSettings) -> Search:
    """Return a new search."""
    job = JobSpec(name="s", script="train.py", virtual_workers=8)
    return Search(
        name="s", owner="anna", settings=settings, job=job, checksum="0" * 64, created_at=0.0, running_since=0.0
    )


def trial_of(number: int, **changes: object) -> Trial:
    """Return a trial that has just begun."""
    trial = Trial(
        search="s",
        number=number,
        values={"lr": 0.1},
        state=TrialState.RUNNING,
        job_id=JobId(f"job-{number + 1}"),
        begun_at=0.0,
    )
    return replace(trial, **changes)  # type: ignore[arg-type]


@dataclass(slots=True)
class Played:
    """A trial's training: `curve(number, epoch)` is its loss; None: it raises in that epoch."""

    epoch: int = 0
    first: int = 1
    """The first epoch that it reports; a child begins at the end of its parent's, and reports that again."""
    state: JobState = JobState.RUNNING
    told: int = 0


@dataclass(slots=True)
class Stage:
    """A search and its trainings."""

    search: Search
    curve: Callable[[int, int], float | None]
    num_epochs: int
    num_places: int = 4
    measures: Mapping[str, Callable[[int, int], float]] = field(default_factory=dict)
    """What trials report besides, by metric."""
    trials: list[Trial] = field(default_factory=list)
    jobs: list[Played] = field(default_factory=list)
    said: list[tuple[str, int | None]] = field(default_factory=list)
    rankings: Rankings = field(default_factory=Rankings)

    @property
    def runs(self) -> bool:
        return self.search.state is SearchState.RUNNING

    def ask(self) -> None:
        """Begin as many trials as may begin."""
        while (bracket := bracket_to_ask(self.search, self.trials, num_places=self.num_places)) is not None:
            self.trials.append(trial_of(len(self.trials), bracket=bracket))
            self.jobs.append(Played())
            self.search = replace(self.search, num_trials=len(self.trials))

    def play(self, chance: Random | None) -> None:
        """Play it to its end: all trials an epoch at a time, or some of them, by chance, some epochs."""
        for _ in range(2000):
            self.ask()
            if not self.runs:
                return
            numbers = [one.number for one in self.trials if not one.ended]
            chosen = numbers if chance is None else chance.sample(numbers, chance.randint(1, len(numbers)))
            for number in chosen:
                self.train(number, 1 if chance is None else chance.randint(1, 5))
            self.look(chosen)
        raise AssertionError("the search does not end")

    def train(self, number: int, epochs: int) -> None:
        """Let a trial train for so many epochs, as far as it may."""
        job = self.jobs[number]
        if self.trials[number].state is not TrialState.RUNNING:
            return
        for _ in range(epochs):
            if job.state is not JobState.RUNNING:
                return
            if self.curve(number, job.epoch + 1) is None:
                job.state = JobState.FAILED
                return
            job.epoch += 1
            if job.epoch == self.num_epochs:
                job.state = JobState.COMPLETED

    def look(self, numbers: Sequence[int]) -> None:
        """Take in what the jobs of some trials have come to."""
        settings = self.search.settings
        known = [one for one in numbers if not is_to_begin(self.trials[one], settings) and not self.trials[one].ended]
        news = {number: self._news(number) for number in known}
        step = SearchStep(search=self.search, trials=[*self.trials], now=1.0, rankings=self.rankings)
        ids = (JobId(f"job-{number}") for number in count(len(self.trials) + 1))
        advance(step, news, num_places=self.num_places, job_ids=ids)
        self.search, self.trials = step.search, step.trials
        self.jobs += [Played(epoch=one.parent_epoch, first=one.parent_epoch) for one in self.trials[len(self.jobs) :]]
        self.said += [(one.kind, one.trial) for one in step.decisions]

    def _news(self, number: int) -> JobNews:
        job = self.jobs[number]
        values = [self.curve(number, epoch) for epoch in range(1, job.epoch + 1)]
        points = [
            SeriesPoint(epoch=epoch, step=epoch * 10, value=value)
            for epoch, value in enumerate(values, start=1)
            if value is not None and epoch >= job.first
        ]
        measured = {
            name: [
                SeriesPoint(epoch=epoch, step=epoch * 10, value=measure(number, epoch))
                for epoch in range(1, job.epoch + 1)
            ]
            for name, measure in self.measures.items()
        }
        return JobNews(
            state=job.state,
            reason="it raised",
            series={"val_loss": points, **measured},
            at_rung=self._at_rung(number, measured),
            reported=("val_loss",),
        )

    def _at_rung(
        self, number: int, measured: Mapping[str, Sequence[SeriesPoint]]
    ) -> Mapping[str, Sequence[SeriesPoint]] | None:
        trial = self.trials[number]
        rungs = rungs_of(self.search.settings, trial.bracket)
        if trial.state is not TrialState.PAUSED or not has_arrived(trial, rungs):
            return None
        return {name: points[: rungs[trial.rung]] for name, points in measured.items()}

    def outcome(self) -> list[tuple[object, ...]]:
        """Return what became of every trial."""
        return [(one.number, one.state, one.rung, one.results, one.bracket, one.reason) for one in self.trials]
