"""Searches over jobs that are played: what a trial comes to is known, and it trains as many epochs as it is told to."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from pathlib import Path

from pliant.core.access import Principal, Role, VisibleJobs
from pliant.core.errors import Conflict
from pliant.core.job import JobId, JobSpec
from pliant.core.known_trial import KnownTrial
from pliant.core.lifecycle import JobState
from pliant.core.search import Constraint, Objective, Sampler, Search, SearchSettings, SearchWrites, Trial
from pliant.core.space import SearchParameter, Values
from pliant.policy.tuning.intake import JobNews, SeriesPoint
from pliant.sim.searches import MemorySearches
from pliant.tune.advice import Adviser, AdviserInput
from pliant.tune.adviser.optuna_adviser import OptunaAdviser
from pliant.tune.sampler_rules import problems_of_sampler
from pliant.tune.searches.archives import SearchArchives
from pliant.tune.searches.asking import Asker
from pliant.tune.searches.book import SearchBook
from pliant.tune.searches.keeper import SearchKeeper
from pliant.tune.searches.new_search import FirstTrials
from pliant.tune.searches.ports import LiveTrial, SearchPorts
from pliant.tune.searches.use_cases import SearchRequests

ANNA = Principal(name="anna", role=Role.USER)
BEN = Principal(name="ben", role=Role.USER)
SPACE = {
    "lr": SearchParameter(kind="float", low=1e-4, high=1.0, log=True),
    "width": SearchParameter(kind="int", low=1, high=32),
}
JOB = JobSpec(name="digits", script="train.py", virtual_workers=8, max_tasks=4)
Curve = Callable[[Values, int], float | None]
"""What a trial with these values reports at the end of an epoch; None: it raises in that epoch."""


class Killed(BaseException):
    """The server was killed at this point."""


def loss(values: Values, epoch: int) -> float:
    """Return a loss that falls with the epochs, and is smallest at lr 0.1 and width 16."""
    lr, width = values.get("lr", 0.5), values.get("width", 16)
    assert isinstance(lr, float | int)
    assert isinstance(width, int)
    return abs(lr - 0.1) + abs(width - 16) / 16 + 1 / epoch


def settings_of(**changes: object) -> SearchSettings:
    """Return settings of a search for a small val_loss."""
    values: dict[str, object] = {
        "parameters": SPACE,
        "objectives": (Objective(metric="val_loss", direction="minimize"),),
        "sampler": Sampler(name="random", seed=1),
        "max_trials": 8,
    }
    return SearchSettings(**(values | changes))  # type: ignore[arg-type]


@dataclass(slots=True)
class PlayedJob:
    """A job that trains when it is told to."""

    spec: JobSpec
    epoch: int = 0
    state: JobState = JobState.PENDING
    held: str = ""
    stopped: str = ""
    """Why, of one that was stopped."""

    @property
    def ended(self) -> bool:
        return self.state in (JobState.COMPLETED, JobState.FAILED, JobState.STOPPED)


@dataclass(slots=True)
class PlayedJobs:
    """The jobs of trials; they outlive a killed server."""

    curve: Curve = loss
    num_epochs: int = 9
    places: int = 4
    jobs: dict[JobId, PlayedJob] = field(default_factory=dict)
    deleted: set[JobId] = field(default_factory=set)
    num_reserved: int = 0
    refuse: Exception | None = None
    """What queueing a job raises."""
    metrics: Sequence[str] = ("val_loss",)
    """What every trial reports at each epoch."""
    measures: Mapping[str, Callable[[Values, int], float]] = field(default_factory=dict)
    """What it reports besides, by metric, with values of its own."""

    def reserve(self) -> JobId:
        self.num_reserved += 1
        return JobId(f"job-{self.num_reserved}")

    def check(self, spec: JobSpec, archive: Path, owner: str, visible: VisibleJobs | None) -> Sequence[str]:
        return ()

    def submit(self, job_id: JobId, spec: JobSpec, archive: Path, owner: str, visible: VisibleJobs | None) -> None:
        if self.refuse is not None:
            raise self.refuse
        if job_id not in self.jobs and job_id not in self.deleted:
            assert spec.trial is not None
            parent = spec.trial.parent_job
            assert not parent or self.jobs[JobId(parent)].epoch >= spec.trial.parent_epoch
            self.jobs[job_id] = PlayedJob(spec=spec, epoch=spec.trial.parent_epoch)

    def live(self) -> Sequence[LiveTrial]:
        return [
            LiveTrial(job_id=job_id, search=part.search, number=part.number, held=bool(job.held))
            for job_id, job in self.jobs.items()
            if (part := job.spec.trial) is not None and not job.ended
        ]

    def news(self, job_id: JobId, read: Sequence[Objective | Constraint], after_step: int) -> JobNews:
        if job_id in self.deleted:
            return JobNews(state="deleted")
        job = self.jobs[job_id]
        first = 0 if job.spec.trial is None else job.spec.trial.parent_epoch  # it reports that one again
        points = [
            SeriesPoint(
                epoch=epoch, step=10 * epoch, value=nan if (value := self._value(job, epoch)) is None else value
            )
            for epoch in range(max(1, first), job.epoch + 1)
            if job.ended or 10 * epoch > after_step
        ]
        series = {name: points for name in self.metrics if points}
        series |= {name: self._measured(job, name) for name in self.measures if points and job.ended}
        return JobNews(state=job.state, reason="ValueError: no" if job.ended else "", series=series, reported=[*series])

    def values_at_rung(
        self, job_id: JobId, settings: SearchSettings, rung: int
    ) -> Mapping[str, Sequence[SeriesPoint]] | None:
        job = self.jobs[job_id]
        if job.state is JobState.RUNNING:
            return None
        return {name: self._measured(job, name)[:rung] for name in self.measures}

    def hold(self, job_id: JobId, why: str) -> None:
        job = self.jobs[job_id]
        if job.spec.fixed and job.state is JobState.RUNNING:
            raise Conflict("a fixed job cannot be paused")
        job.held = why
        job.state = JobState.PAUSED if job.state is JobState.RUNNING else job.state

    def release(self, job_id: JobId, why: str) -> None:
        self.jobs[job_id].held = ""

    def stop(self, job_id: JobId, why: str) -> None:
        if not self.jobs[job_id].ended:
            self.jobs[job_id].state = JobState.STOPPED
            self.jobs[job_id].stopped = why

    def num_places(self, spec: JobSpec) -> int:
        return self.places

    def slot_hours(self, job_ids: Collection[JobId]) -> float:
        return sum(self.jobs[job_id].epoch for job_id in job_ids if job_id in self.jobs) / 10

    def _measured(self, job: PlayedJob, name: str) -> list[SeriesPoint]:
        assert job.spec.trial is not None
        measure, values = self.measures[name], job.spec.trial.values
        return [
            SeriesPoint(epoch=epoch, step=10 * epoch, value=measure(values, epoch)) for epoch in range(1, job.epoch + 1)
        ]

    def train(self, epochs: int = 1) -> None:
        """Let all jobs train that may: so many epochs."""
        for job in self.jobs.values():
            if job.held or job.ended:
                continue
            job.state = JobState.RUNNING
            for _ in range(epochs):
                if self._value(job, job.epoch + 1) is None:
                    job.state = JobState.FAILED
                    break
                job.epoch += 1
                if job.epoch == self.num_epochs:
                    job.state = JobState.COMPLETED
                    break

    def _value(self, job: PlayedJob, epoch: int) -> float | None:
        assert job.spec.trial is not None
        return self.curve(job.spec.trial.values, epoch)


class MortalSearches(MemorySearches):
    """A store whose server is killed at one of its writes: just before it, or just after."""

    def __init__(self) -> None:
        super().__init__()
        self.num_writes = 0
        self.kill_at: tuple[int, bool] | None = None
        """At which write, counted from 1; and whether that write was done."""

    def write(self, writes: SearchWrites) -> None:
        self.num_writes += 1
        number, done = self.kill_at or (0, False)
        if number == self.num_writes and not done:
            raise Killed
        super().write(writes)
        if number == self.num_writes:
            raise Killed


class InlineAsker:
    """Asks at once, in the thread that wakes it."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        self.has_ended = False

    def wake(self) -> None:
        while self._asker.ask_next():
            pass

    def close(self) -> None:
        self._asker.drop()
        self.has_ended = True


@dataclass(slots=True)
class World:
    """Searches of one server after the other."""

    folder: Path
    jobs: PlayedJobs = field(default_factory=PlayedJobs)
    searches: MortalSearches = field(default_factory=MortalSearches)
    open_adviser: Callable[[AdviserInput], Adviser] = OptunaAdviser
    time: float = 1000.0
    keeper: SearchKeeper = field(init=False)
    requests: SearchRequests = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Begin as a new server, which knows what the store and the jobs know."""
        ports = SearchPorts(
            searches=self.searches,
            jobs=self.jobs,
            open_adviser=self.open_adviser,
            problems_of=problems_of_sampler,
            unknown_users=lambda names: [name for name in names if name not in ("anna", "ben")],
            now=lambda: self.time,
            changed=lambda _search: None,
        )
        book = SearchBook(self.searches, ports.changed)
        archives = SearchArchives(self.folder / "searches")
        self.keeper = SearchKeeper(book=book, archives=archives, ports=ports, run_asker=InlineAsker)
        self.requests = SearchRequests(book=book, archives=archives, ports=ports, new_name=lambda: "search-1")

    def create(
        self,
        settings: SearchSettings | None = None,
        job: JobSpec = JOB,
        name: str = "s",
        known: Sequence[KnownTrial] = (),
    ) -> Search:
        """Begin a search of Anna's."""
        archive = self.folder / "code.tar.gz"
        archive.write_bytes(b"code")
        return self.requests.create(
            ANNA, name or None, settings or settings_of(), job, archive, None, FirstTrials(known=known)
        )[0]

    def look(self, *, killed: bool = False) -> None:
        """Have the keeper look; a server that is killed meanwhile is followed by another one, which looks again."""
        try:
            self.keeper.look()
        except Killed:
            assert killed, "nobody was to be killed"
            self.searches.kill_at = None
            self.start()
            self.keeper.look()

    def play(self, epochs: int = 1, *, killed: bool = False) -> Search:
        """Train and look, until nothing more follows, again and again until the search has come to rest."""
        for _ in range(500):
            self.settle(killed=killed)
            if self.search.ended_at is not None:
                return self.search
            self.jobs.train(epochs)
        raise AssertionError(f"the search does not end: {self.search}")

    def settle(self, *, killed: bool = False) -> None:
        """Look until nothing more follows."""
        before: object = None
        while (now := (self.search, [(job.state, job.held) for job in self.jobs.jobs.values()])) != before:
            before = now
            self.look(killed=killed)

    @property
    def search(self) -> Search:
        found = self.searches.search("s")
        assert found is not None
        return found

    @property
    def trials(self) -> Sequence[Trial]:
        return self.searches.trials("s")

    def said(self, kind: str = "") -> list[tuple[int | None, str]]:
        """Return what was decided, of one kind or all: the trial, the reason."""
        return [(one.trial, one.reason) for one in self.searches.decisions("s") if kind in ("", one.kind)]

    def outcome(self) -> list[object]:
        """Return what became of all trials, without the instants and the ids of their jobs."""
        return [replace(one, begun_at=0.0, ended_at=None, job_id=JobId("")) for one in self.trials]
