"""A search: many trainings of one script (`Trial`), each with values that a sampler has chosen, to find the best.

Example: 9 trials, halving by epochs 1, 3, 9 by the factor 3. All nine train one epoch and pause. The best three go on
from where they are to epoch 3, the others are pruned; the best of these goes on to the end. A trial is a job.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Literal, Self, get_args

from annotated_types import Ge, Gt, Le, Len, MaxLen

from pliant.core.access import SharedWith
from pliant.core.algorithm import AlgorithmCode
from pliant.core.input import FINITE, NUMBER, Input, Pattern
from pliant.core.job import JobId, JobSpec
from pliant.core.parameter import Text
from pliant.core.population import Population
from pliant.core.registry import CatalogName
from pliant.core.space import Scalar, Space, Values
from pliant.core.trial_part import PassAs

MAX_TRIALS: Final = 100_000
MAX_REPORTS: Final = 2000
"""So many values of a metric are kept for each trial; of later ones those at its rungs."""

SearchName = Annotated[
    str,
    Input(
        Pattern(
            r"^[A-Za-z0-9][A-Za-z0-9._-]{0,49}$",
            "letters, digits, '.', '_' and '-', 50 at most, a letter or digit first",
        ),
    ),
]
MetricName = Annotated[str, Input(Len(1, 200), Pattern(r"^[^\x00-\x1f]+$", "one line of text"))]
Direction = Literal["minimize", "maximize"]
Reading = Literal["last", "min", "max"]
"""Which of a trial's values of a metric counts: its last, its lowest, its highest."""
SamplerName = Literal["tpe", "random", "grid", "gp", "cmaes", "nsga2", "qmc"]
SAMPLERS: Final[tuple[SamplerName, ...]] = get_args(SamplerName)
"""Those that are built in."""
PrunerName = Literal["median", "percentile", "wilcoxon", "patient", "threshold"]
Resource = Literal["epoch", "step"]
Order = Literal["rungs", "arrival"]


@dataclass(frozen=True, kw_only=True)
class Objective:
    """A metric that the search makes small or large."""

    metric: MetricName
    """As the script reports it."""
    direction: Direction
    reading: Reading = "last"
    """Which of a trial's values counts."""


_Bound = Annotated[float, Input(FINITE, NUMBER)]


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """A bound that a metric has to keep: only a trial that keeps all of them can be the best."""

    metric: MetricName
    """As the script reports it."""
    upper: _Bound | None = None
    """It may not be above this."""
    lower: _Bound | None = None
    """It may not be below this. One of the two is given."""
    reading: Reading = "last"
    """Which of a trial's values counts."""


@dataclass(frozen=True, kw_only=True)
class Sampler:
    """What chooses values."""

    name: CatalogName = "tpe"
    """tpe, random, grid, gp (Gaussian process), cmaes, nsga2 (several objectives) or qmc (an even cover); or an
    algorithm that somebody has installed."""
    seed: Annotated[int, Input(Ge(0), Le(2**32 - 1))] = 0
    """The same search with the same results in the same order chooses the same values."""
    options: Annotated[Mapping[str, Scalar], Input(MaxLen(50))] = field(default_factory=dict)
    """Arguments of the sampler, as Optuna calls them; of an algorithm, as it calls them."""


@dataclass(frozen=True, kw_only=True)
class Pruner:
    """What ends a trial early that is worse than others were at the same point, without rungs."""

    name: PrunerName
    """median, percentile, wilcoxon, patient or threshold."""
    options: Annotated[Mapping[str, Scalar], Input(MaxLen(50))] = field(default_factory=dict)
    """Arguments of the pruner, as Optuna calls them."""


_Amount = Annotated[int, Input(Ge(1), Le(2**31 - 1))]


@dataclass(frozen=True, kw_only=True)
class Halving:
    """Rungs: trials pause at each, and only the best part of them goes on, from where it is."""

    resource: Resource = "epoch"
    """What is counted: epochs, or optimizer steps."""
    min: _Amount = 1
    """The first rung."""
    max: _Amount
    """What a training needs that is never pruned; the rungs are `min` times the powers of `factor` below it."""
    factor: Annotated[int, Input(Ge(2), Le(100))] = 3
    """One in so many goes on."""
    size: _Amount | None = None
    """Trials that begin together. If left out: all; or, of a sampler that learns from results, as many as leave one
    for the end."""
    brackets: Annotated[int, Input(Ge(1), Le(20))] = 1
    """Hyperband: so many first rungs in turns, each `factor` times the one before."""
    order: Order = "rungs"
    """`rungs`: a rung is decided when all its trials are there, so results alone decide. `arrival`: trials go on as
    soon as they are among the best so far, so which ones do depends on who came first."""


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """What people say of a search, besides what its trials have in common. A field here is one of REST, too."""

    parameters: Space
    """What may be chosen, by the names of the script's parameters, in the order in which it is chosen."""
    objectives: Annotated[tuple[Objective, ...], Input(Len(1, 10))]
    """What is made small or large; the metrics as the script reports them."""
    constraints: Annotated[tuple[Constraint, ...], Input(MaxLen(10))] = ()
    """Bounds that a trial has to keep to be the best, or among the best."""
    sampler: Sampler = field(default_factory=Sampler)
    halving: Halving | None = None
    pruner: Pruner | None = None
    population: Population | None = None
    pass_as: Annotated[tuple[PassAs, ...], Input(Len(1, 4))] = ("arguments", "environment")
    """How the script gets its values: arguments (`--lr=0.1`), environment (`PLIANT_PARAM_LR`), config (`config.json`),
    or model (`ps.conf` and `parameters.json`, which have to be there)."""
    max_trials: Annotated[int, Input(Ge(1), Le(MAX_TRIALS))] | None = None
    """Begin so many trials at most; if left out, one of the other limits has to be there, or the sampler has to end by
    itself."""
    parallel: Annotated[int, Input(Ge(1), Le(10_000))] | None = None
    """So many trials train at once at most; if left out, as many as the queue has slots for."""
    max_time_s: Annotated[float, Input(Gt(0), FINITE)] | None = None
    """Begin no trial after so many seconds, and end those that train."""
    max_slot_hours: Annotated[float, Input(Gt(0), FINITE)] | None = None
    """The same after so many slots times hours."""
    target: Annotated[float, Input(FINITE, NUMBER)] | None = None
    """End when a trial is as good as this."""
    description: Text = ""
    shared_with: Annotated[SharedWith, Input(doc="Names of users; `*` is everybody.")] = ()
    """Who sees it besides its owner."""


class SearchState(StrEnum):
    """Where a search is in its life."""

    RUNNING = "running"
    """Trials are chosen and trained."""
    STOPPED = "stopped"
    """Somebody stopped it: its trials are paused, and go on when it is resumed."""
    COMPLETED = "completed"
    """It came to its limits, its target, or the end of its space."""
    FAILED = "failed"
    """Its trials fail, or its sampler does."""


class TrialState(StrEnum):
    """Where a trial is in its life."""

    RUNNING = "running"
    """Its job waits for slots, or trains."""
    PAUSED = "paused"
    """It waits at a rung, and holds no slots."""
    COMPLETED = "completed"
    """It trained to its end, and its values count."""
    PRUNED = "pruned"
    """It was ended early because others were better."""
    FAILED = "failed"
    """Its script failed, or did not report what is asked for."""
    STOPPED = "stopped"
    """Somebody stopped it, or the search came to a limit."""


ENDED: Final = frozenset({TrialState.COMPLETED, TrialState.PRUNED, TrialState.FAILED, TrialState.STOPPED})
"""States in which nothing happens to a trial any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One training of a search."""

    search: str
    number: int
    """0, 1, 2, …, in the order in which they were chosen; never given again."""
    values: Values
    """What the sampler chose."""
    state: TrialState
    reason: str = ""
    """Why it is in its state."""
    job_id: JobId
    """Its job's, which may not be queued yet; or may have been deleted since. Empty: it came with its search, and has
    no job."""
    bracket: int = 0
    """Which halving it is of, counted from 0."""
    rung: int = 0
    """The rung that it trains towards, or waits at, counted from 0; the number of rungs if it trains to its end."""
    reports: tuple[tuple[int, float], ...] = ()
    """Values of the first objective: (epoch or step, value), each once, growing. NaN is one."""
    results: tuple[float, ...] | None = None
    """What it came to, one for each objective; of a pruned trial what it had at its last rung. None before its end."""
    violations: tuple[float, ...] = ()
    """By how much it violates each constraint of its search, 0 or less: it keeps it; at its end, or at the rung where
    it waits or was pruned. Infinity: its value is no number, or not finite. Empty: nobody knows yet."""
    rung_violations: tuple[float, ...] = ()
    """By how much it violated all constraints together at each rung that it has passed; 0: it kept them, or nobody
    knows."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """What the sampler has noted with it, for itself."""
    parent: int | None = None
    """The number of the trial of its population from whose state it began; null: it began at the beginning."""
    parent_epoch: int = 0
    """So many epochs its parent had trained then."""
    begun_at: float
    """When it was chosen."""
    ended_at: float | None = None

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def is_feasible(self) -> bool:
        """It violates no constraint of its search, as far as anybody knows."""
        return all(violation <= 0 for violation in self.violations)

    @property
    def is_known(self) -> bool:
        """It was known before its search began: samplers and pruners learn from it, and it counts for nothing else."""
        return not self.job_id

    def without_attributes(self) -> Self:
        """Return the trial without what its sampler has noted for itself."""
        return replace(self, attributes={})


DecisionKind = Literal[
    "ask", "exploit", "pause", "promote", "prune", "complete", "fail", "stop", "change", "resume", "warn", "end"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Something that a search decided, and why; never changes."""

    search: str
    position: int
    """1, 2, 3, … within the search."""
    at: float
    kind: DecisionKind
    trial: int | None
    """None: it is about the whole search."""
    reason: str
    """A sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search as it is kept."""

    KIND: ClassVar[str] = "search"

    name: SearchName
    owner: str
    settings: SearchSettings
    job: JobSpec
    """What all its trials have in common."""
    checksum: str
    """SHA-256 of the archive of their code, in hex; under it the archive is kept."""
    state: SearchState = SearchState.RUNNING
    reason: str = ""
    """Why it is in its state."""
    created_at: float
    ended_at: float | None = None
    """When it last came to rest; None while it runs."""
    ran_s: float = 0.0
    """It has run for this long before `running_since`."""
    running_since: float | None = None
    position: int = 0
    """The number of its newest decision."""
    num_trials: int = 0
    """As many there are; the number of the next one."""
    num_known: int = 0
    """So many of them came with it from another study; they count for no limit."""
    exhausted: str = ""
    """Why no further trial can be chosen, though no limit says so; empty: one can."""
    enqueued: tuple[Values, ...] = ()
    """What people want to be tried next; what is missing in each is chosen."""
    unrecovered: bool = False
    """It failed because what chooses its values could not go on from what is written, as after a restart of the server;
    it may be resumed."""
    remark: str = ""
    """What is odd about it, in a sentence; empty if nothing is."""
    algorithm: AlgorithmCode | None = None
    """What chooses its values, as it was when the search began; None: a sampler that is built in."""
    best: int | None = None
    """The number of the best trial that has completed and keeps all constraints; of several objectives None."""
    best_result: float | None = None
    nearest: int | None = None
    """While no trial keeps all constraints: the number of the one that violates them least; else None."""
    revision: int = 1
    """Grows with every change."""

    @property
    def shared_with(self) -> tuple[str, ...]:
        return self.settings.shared_with

    @property
    def num_chosen(self) -> int:
        """As many trials were chosen, which is what `max_trials` limits."""
        return self.num_trials - self.num_known


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchWrites:
    """Everything that one decision of a search changes; written in one transaction."""

    search: Search
    """Inserted or replaced."""
    trials: tuple[Trial, ...] = ()
    """Inserted or replaced."""
    decisions: tuple[Decision, ...] = ()
    """Appended."""
    sampler_state: str | None = None
    """What the sampler continues from, as JSON; None: as it was."""
