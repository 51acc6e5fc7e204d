"""The REST bodies and answers of searches: what is searched, what is changed, and how a search stands."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Self

from annotated_types import Ge, Le, Len, MaxLen
from pydantic import (
    Field,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from pliant.api.derive import settable, with_checks
from pliant.api.faults import sentence_of
from pliant.api.jobs import JobRequest
from pliant.api.request import Patch, Request, refuse_fields
from pliant.api.view import fill
from pliant.core.errors import InvalidInput, Problem
from pliant.core.input import Input
from pliant.core.job import JobId, JobSpec
from pliant.core.known_trial import MAX_KNOWN, KnownTrial
from pliant.core.lifecycle import JobState
from pliant.core.notice import NoticeSettings
from pliant.core.population import Population
from pliant.core.search import (
    ENDED,
    MAX_REPORTS,
    Constraint,
    Decision,
    Halving,
    Objective,
    Pruner,
    Sampler,
    Search,
    SearchName,
    SearchSettings,
    SearchState,
    Trial,
    TrialState,
)
from pliant.core.search_rules import problems_of_settings
from pliant.core.secret_names import hide_secrets
from pliant.core.space import MAX_CHOICES, MAX_PARAMETERS, ParameterName, Scalar, SearchParameter, Value

MAX_GIVEN_TRIALS: Final = 1000
_NAME: Final[TypeAdapter[str]] = TypeAdapter(with_checks(SearchName))
_CHANGEABLE: Final = (
    "max_trials",
    "parallel",
    "max_time_s",
    "max_slot_hours",
    "target",
    "description",
    "shared_with",
)
_NOTICES: Final = tuple(one.name for one in settable(NoticeSettings))
_FIXED: Final = tuple(one.name for one in settable(SearchSettings) if one.name not in _CHANGEABLE)


def _one_sentence(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """Say of a list or an object that is no value what values are, instead of what each kind of them is not."""
    try:
        return read(value)
    except ValidationError:
        if value is None or isinstance(value, bool | int | float | str):
            raise
        raise ValueError("it is no value; give a text, a number, true, false, null, or a list of those") from None


_Value = Annotated[Value, WrapValidator(_one_sentence)]
_Scalar = Annotated[Scalar, WrapValidator(_one_sentence)]
_Place = Annotated[int, Input(Ge(0), Le(2**53))]


class SearchParameterRequest(Request, SearchParameter):
    """What one parameter may be."""

    choices: Annotated[tuple[_Value, ...], Input(MaxLen(MAX_CHOICES))] = ()
    value: _Value = None

    def noun(self) -> SearchParameter:
        """Return the noun."""
        return SearchParameter(**self.given())


class ObjectiveRequest(Request, Objective):
    """A metric that the search makes small or large."""

    def noun(self) -> Objective:
        """Return the noun."""
        return Objective(**self.given())


class ConstraintRequest(Request, Constraint):
    """A bound that a metric has to keep: only a trial that keeps all of them can be the best."""

    def noun(self) -> Constraint:
        """Return the noun."""
        return Constraint(**self.given())


_Options = Annotated[Mapping[str, _Scalar], Input(MaxLen(50))]


class SamplerRequest(Request, Sampler):
    """What chooses values."""

    options: _Options = Field(default_factory=dict)

    def noun(self) -> Sampler:
        """Return the noun."""
        return Sampler(**self.given())


class PrunerRequest(Request, Pruner):
    """What ends a trial early that is worse than others were at the same point, without rungs."""

    options: _Options = Field(default_factory=dict)

    def noun(self) -> Pruner:
        """Return the noun."""
        return Pruner(**self.given())


class HalvingRequest(Request, Halving):
    """Rungs: trials pause at each, and only the best part of them goes on, from where it is."""

    def noun(self) -> Halving:
        """Return the noun."""
        return Halving(**self.given())


class PopulationRequest(Request, Population):
    """Trials that train side by side; now and then the worst go on from the state of the best, with other values."""

    def noun(self) -> Population:
        """Return the noun."""
        return Population(**self.given())


class KnownTrialRequest(Request, KnownTrial):
    """A trial of another study, from which a search learns."""

    values: Annotated[Mapping[ParameterName, _Value], Input(MaxLen(MAX_PARAMETERS))]
    reports: Annotated[tuple[tuple[_Place, float | None], ...], Input(MaxLen(MAX_REPORTS))] = ()  # type: ignore[assignment]
    """Values of the first objective: (epoch or step, value), each once, growing; null is NaN."""
    violations: Annotated[tuple[float | None, ...], Input(MaxLen(10))] = ()  # type: ignore[assignment]
    """By how much it violates each constraint, 0 or less: it keeps it; needed if it has completed. null is infinity."""

    def noun(self) -> KnownTrial:
        """Return the noun."""
        reports = tuple((at, math.nan if value is None else value) for at, value in self.reports)
        violations = tuple(math.inf if value is None or math.isnan(value) else value for value in self.violations)
        return KnownTrial(**{**self.given(), "reports": reports, "violations": violations})


class SearchRequest(JobRequest, SearchSettings):
    """What the trials of a search have in common, and what is searched; travels beside their packed code.

    The name of the job is that of the search.
    """

    # a body takes bodies, which check what is given; `settings` makes the nouns
    parameters: Annotated[Mapping[ParameterName, SearchParameterRequest], Input(Len(1, MAX_PARAMETERS))]
    objectives: Annotated[tuple[ObjectiveRequest, ...], Input(Len(1, 10))]
    constraints: Annotated[tuple[ConstraintRequest, ...], Input(MaxLen(10))] = ()
    sampler: SamplerRequest = Field(default_factory=SamplerRequest)
    halving: HalvingRequest | None = None
    pruner: PrunerRequest | None = None
    population: PopulationRequest | None = None
    known: Annotated[tuple[KnownTrialRequest, ...], Input(MaxLen(MAX_KNOWN))] = ()
    """Trials of another study, which have ended: they become its first ones, and count for no limit."""

    def settings(self) -> SearchSettings:
        """Return what is searched."""
        given: dict[str, Any] = {one.name: getattr(self, one.name) for one in settable(SearchSettings)}
        given |= {
            "parameters": {name: one.noun() for name, one in self.parameters.items()},
            "objectives": tuple(one.noun() for one in self.objectives),
            "constraints": tuple(one.noun() for one in self.constraints),
            "sampler": self.sampler.noun(),
            "halving": None if self.halving is None else self.halving.noun(),
            "pruner": None if self.pruner is None else self.pruner.noun(),
            "population": None if self.population is None else self.population.noun(),
        }
        return SearchSettings(**given)

    def spec(self) -> JobSpec:
        """Return what the trials have in common."""
        return JobRequest.model_construct(**{name: getattr(self, name) for name in JobRequest.model_fields}).spec()

    @model_validator(mode="after")
    def _can_be_searched(self) -> Self:
        return refuse_fields(self, (*self._wrong_job(), *problems_of_settings(self.settings())))

    def _wrong_job(self) -> Iterator[Problem]:
        if self.name is None:
            yield Problem(field="name", message="a search needs a name; give one, such as 'digits'")
        elif message := _no_name(self.name):
            yield Problem(field="name", message=message)
        for name in _NOTICES:
            if getattr(self, name) != type(self).model_fields[name].default:
                yield Problem(field=name, message="a search sends no messages at its end; leave it out")
        if self.fixed and self.halving is not None:
            message = "a fixed job cannot pause at a rung; leave --fixed out, or use a pruner"
            yield Problem(field="halving", message=message)
        if self.fixed and self.population is not None:
            message = "a fixed job cannot pause, nor start from another one's state; leave --fixed out, or use a pruner"
            yield Problem(field="population", message=message)


class SearchPatch(Patch, of=SearchSettings, but=_FIXED):
    """What of a search to change, also while it runs; what is left out stays. `null` takes a limit away."""

    described_by = "doc"
    can_be_none = frozenset({"max_trials", "parallel", "max_time_s", "max_slot_hours", "target"})


class TrialsRequest(Request):
    """Values that are to be tried, before others; what is left out of them is chosen."""

    trials: Annotated[
        tuple[Annotated[Mapping[ParameterName, _Value], Input(Len(1, MAX_PARAMETERS))], ...],
        Input(Len(1, MAX_GIVEN_TRIALS)),
    ]
    """The values of each, by the names of its parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchView:
    """A search."""

    name: str
    owner: str
    settings: SearchSettings
    job: JobSpec
    """What all its trials have in common; values of variables that are called like secrets are hidden."""
    state: SearchState
    reason: str
    """Why it is in its state."""
    created_at: float
    ended_at: float | None
    """When it last came to rest; null while it runs."""
    ran_s: float
    """Seconds that it has run in all."""
    num_trials: int
    """As many there are."""
    num_known: int
    """So many of them came with it from another study, and count for no limit."""
    trials: Mapping[TrialState, int]
    """How many trials are in each state; states that none is in are left out."""
    best: Trial | None
    """The best that has completed and keeps all constraints; null before there is one, and of several objectives."""
    progress: float | None
    """The part of `max_trials` that has ended, 0 to 1; null without such a limit."""
    eta_s: float | None
    """Seconds left, about, as its trials went so far; null if nobody can tell."""
    revision: int
    nearest: int | None = None
    """While no trial that has completed keeps all constraints: the number of the one that violates them least."""
    num_at_once: int | None = None
    """So many trials train at once at most; null if it does not run."""
    why_at_once: str = ""
    """Why so many."""
    remark: str = ""
    """What is odd about it, in a sentence; empty if nothing is."""
    colour: int | None = None
    """Of its trials in charts, 0 to 23; null before the first."""
    notes: tuple[str, ...] = ()
    """Of a new search: what its owner should know, in sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """Searches in the order of their names; ask again with `after=next`."""

    searches: tuple[SearchView, ...]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPage:
    """Trials; ask again with `after=next`."""

    trials: tuple[Trial, ...]
    next: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionPage:
    """What a search decided, in order; ask again with `after=last`."""

    decisions: tuple[Decision, ...]
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialWhy:
    """A trial that trains or waits for slots, and why it has as many."""

    number: int
    job_id: JobId
    job_state: JobState | None
    """Null: it is not queued yet, or is not the caller's to see."""
    num_slots: int
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchWhy:
    """Why a search has the slots it has."""

    name: str
    state: SearchState
    num_slots: int
    """What all its trials hold, also while they leave."""
    sentences: tuple[str, ...]
    """Why as many trials train, and what waits for what."""
    trials: tuple[TrialWhy, ...]
    """Those that train or wait for slots."""
    remark: str = ""
    """What is odd about it, in a sentence; empty if nothing is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportancesView:
    """How much of the differences in the first objective comes from each parameter; together 1, the largest first."""

    importances: Mapping[str, float]
    """Empty if nobody can tell; without parameters that only some trials have."""
    reason: str
    """Why it is empty."""


def search_view(
    search: Search, *, trials: Mapping[TrialState, int], best: Trial | None, eta_s: float | None, now: float
) -> SearchView:
    """Return a search as it may be shown.

    Args:
        search: as it is kept.
        trials: how many of its trials are in each state.
        best: the best that has completed.
        eta_s: seconds left, about.
        now: the time.
    """
    ran_s = search.ran_s + (0.0 if search.running_since is None else max(0.0, now - search.running_since))
    limit, ended = search.settings.max_trials, sum(trials.get(state, 0) for state in ENDED) - search.num_known
    return fill(
        SearchView,
        search,
        job=_without_secrets(search.job),
        ran_s=ran_s,
        trials=trials,
        best=best,
        progress=None if limit is None else min(1.0, ended / limit),
        eta_s=eta_s,
        num_at_once=None,
        why_at_once="",
        colour=None,
        notes=(),
    )


def require_search_name(name: str) -> None:
    """Refuse what no search can be called.

    Raises:
        InvalidInput: it is no name of one.
    """
    if message := _no_name(name):
        raise InvalidInput.at("name", message)


def _no_name(name: str) -> str:
    try:
        _NAME.validate_python(name)
    except ValidationError as error:
        return sentence_of(error.errors()[0])
    return ""


def _without_secrets(spec: JobSpec) -> JobSpec:
    return replace(spec, env=hide_secrets(spec.env))
