"""An HPO task of IBM's as a search of Pliant's. Pure: what only the server knows is given."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from pliant.core.errors import InvalidInput, Problem
from pliant.core.search import MAX_TRIALS, Objective, Reading, SearchSettings
from pliant.core.space import MAX_PARAMETERS, SearchParameter, Values
from pliant.ibm.rest.translate.hpo.algorithm import EXPERIMENTS, HpoAlgorithm, to_algorithm
from pliant.ibm.rest.translate.hpo.request import AlgoDef, HpoRequest
from pliant.ibm.rest.translate.hpo.space import to_space, to_trials
from pliant.policy.tuning.rungs import size_of

MAX_EXPERIMENTS: Final = 10_000
_UNLIMITED: Final = -1
_MAX_PARALLEL: Final = 10_000
_MAX_MINUTES: Final = 1e9
_FIELDS: Final = {
    "sampler.name": "algoDef.algorithm",
    "name": "hpoName",
    "max_trials": "algoDef.maxJobNum",
    "parallel": "algoDef.maxParalleJobNum",
    "max_time_s": "algoDef.maxRunTime",
    "objectives.0.metric": "algoDef.objectiveMetric",
}
_PARTS: Final = {
    "low": "minDbVal or minIntVal",
    "high": "maxDbVal or maxIntVal",
    "choices": "discrete values",
    "value": "fixedVal",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedSearch:
    """What an HPO task means."""

    settings: SearchSettings
    enqueued: tuple[Values, ...]
    """Its experiments, if they were given."""
    notes: tuple[str, ...]
    """What of it has no effect, and why."""


@dataclass(slots=True)
class _Reading:
    """What has been found so far."""

    notes: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def wrong(self, name: str, message: str) -> None:
        self.problems.append(Problem(field=name, message=message))


def to_search(
    request: HpoRequest,
    *,
    can_pause: bool,
    has_scipy: bool,
    seed: int,
    least: int = 1,
    plugins: Collection[str] = (),
) -> AskedSearch:
    """Return the search that an HPO task means.

    Args:
        can_pause: its trainings are elastic ones, which can wait at rungs.
        has_scipy: Gaussian processes can be had.
        seed: for an algorithm that is given none.
        least: Hyperband compares no experiment before it had so much of the resource.
        plugins: the names of installed algorithms that who asks may use.

    Raises:
        InvalidInput: with everything that is wrong with it.
    """
    reading, given = _Reading(), request.algoDef
    algorithm: HpoAlgorithm | None = None
    space: dict[str, SearchParameter] = {}
    enqueued: tuple[Values, ...] = ()
    try:
        algorithm = to_algorithm(given, seed=seed, has_scipy=has_scipy, least=least, plugins=plugins)
    except InvalidInput as error:
        reading.problems += error.problems
    try:
        space, enqueued = _space(request)
    except InvalidInput as error:
        reading.problems += error.problems
    objective = _objective(reading, given)
    limits = _limits(reading, given)
    if algorithm is None or objective is None or reading.problems:
        raise InvalidInput(*reading.problems)
    if algorithm.resource is not None:
        _add_resource(space, algorithm)
    settings = SearchSettings(
        parameters=space,
        objectives=(objective,),
        sampler=algorithm.sampler,
        halving=algorithm.halving,
        pass_as=("config", "environment"),
        **limits,
    )
    settings = _with_limits(reading, settings, algorithm, enqueued)
    if algorithm.halving is not None and not can_pause:
        reading.notes.append(
            "Hyperband ends no experiment early: a program of this framework cannot pause, so all train to their end; "
            "edtPyTorch has programs that can"
        )
        settings = replace(settings, halving=None)
    return AskedSearch(settings=settings, enqueued=enqueued, notes=(*algorithm.notes, *reading.notes))


def name_fields_of_search(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return what is wrong with a search, by IBM's names of its fields."""
    return tuple(replace(one, field=_ibm_name(one.field)) for one in problems)


def _ibm_name(name: str) -> str:
    first, _, rest = name.partition(".")
    if first == "parameters" and rest:
        parameter, _, part = rest.rpartition(".")
        return f"hyperParams.{parameter or part}" + (f".{_PARTS.get(part, part)}" if parameter else "")
    if first in ("sampler", "halving") and name not in _FIELDS:
        return "algoDef.algoParams"
    return f"experiments.{rest}" if first == "trials" else _FIELDS.get(name, name)


def _space(request: HpoRequest) -> tuple[dict[str, SearchParameter], tuple[Values, ...]]:
    by_experiments = request.algoDef.algorithm.strip().lower() == EXPERIMENTS.lower()
    if request.hyperParams and request.experiments:
        raise InvalidInput.at("experiments", "there are hyperParams, too; give one of the two")
    if by_experiments and not request.experiments:
        raise InvalidInput.at("experiments", f"there are none, and {EXPERIMENTS} tries them alone; give them")
    if request.experiments and not by_experiments:
        raise InvalidInput.at("experiments", f"they are for {EXPERIMENTS} alone; give hyperParams, or that algorithm")
    if not request.hyperParams and not by_experiments:
        raise InvalidInput.at("hyperParams", "there are none; give what may be chosen")
    if len(request.experiments) > MAX_EXPERIMENTS:
        message = f"there are {len(request.experiments):,}; {MAX_EXPERIMENTS:,} are the most: give fewer"
        raise InvalidInput.at("experiments", message)
    if by_experiments:
        space, trials = to_trials(request.experiments)
    else:
        space, trials = to_space(request.hyperParams), ()
    if len(space) >= MAX_PARAMETERS:  # one is left for Hyperband's resource
        field_name = "experiments.0.hyperParams" if by_experiments else "hyperParams"
        raise InvalidInput.at(field_name, f"there are {len(space)}; {MAX_PARAMETERS - 1} are the most: give fewer")
    return dict(space), trials


def _objective(reading: _Reading, given: AlgoDef) -> Objective | None:
    metric, wanted = given.objectiveMetric.strip(), given.objective.strip().lower()
    if not metric:
        reading.wrong("algoDef.objectiveMetric", "it is missing; give the name of a metric in val_dict_list.json")
    elif len(metric) > 200 or not metric.isprintable():
        reading.wrong("algoDef.objectiveMetric", f"{metric!r:.60} is no line of 200 characters at most; give one")
    if wanted not in ("minimize", "maximize"):
        said = f"{given.objective!r:.60} is neither" if wanted else "it is missing"
        reading.wrong("algoDef.objective", f"{said}; give minimize or maximize")
        return None
    direction: Literal["minimize", "maximize"] = "minimize" if wanted == "minimize" else "maximize"
    best: Reading = "min" if direction == "minimize" else "max"
    return Objective(metric=metric, direction=direction, reading=best)


def _limits(reading: _Reading, given: AlgoDef) -> dict[str, Any]:
    """Return the limits that are given."""
    limits: dict[str, Any] = {}
    bounds: Sequence[tuple[str, str, float, float]] = (
        ("maxJobNum", "max_trials", given.maxJobNum, MAX_TRIALS),
        ("maxParalleJobNum", "parallel", given.maxParalleJobNum, _MAX_PARALLEL),
        ("maxRunTime", "max_time_s", given.maxRunTime, _MAX_MINUTES),
    )
    for name, ours, value, most in bounds:
        if value == _UNLIMITED:
            continue
        if not 0 < value <= most:
            reading.wrong(
                f"algoDef.{name}", f"{value:,g} is not from 1 to {most:,g}; give such a number, or -1 for any"
            )
        limits[ours] = value * 60.0 if ours == "max_time_s" else value
    return limits


def _add_resource(space: dict[str, SearchParameter], algorithm: HpoAlgorithm) -> None:
    resource = algorithm.resource
    assert resource is not None, "asked only of what has one"
    if resource.name in space:
        message = (
            f"{resource.name!r} is among the hyperParams, too, but how long to train is not chosen; remove it there"
        )
        raise InvalidInput.at("algoDef.algoParams.ResourceName", message)
    space[resource.name] = SearchParameter(kind="fixed", value=resource.value)


def _with_limits(
    reading: _Reading, settings: SearchSettings, algorithm: HpoAlgorithm, enqueued: Sequence[Values]
) -> SearchSettings:
    """Return a search that ends: with its experiments, with one round of Hyperband, or when it is told to."""
    if algorithm.one_by_one and settings.parallel != 1:
        reading.notes.append(f"maxParalleJobNum counts as 1: {algorithm.name} chooses by all results before")
        settings = replace(settings, parallel=1)
    if enqueued:
        if settings.max_trials not in (None, len(enqueued)):
            reading.notes.append(f"maxJobNum has no effect: all {len(enqueued)} experiments are tried")
        return replace(settings, max_trials=len(enqueued))
    if settings.max_trials is not None:
        return settings
    if algorithm.resource is not None:
        halving = settings.halving
        num = 1 if halving is None else sum(size_of(settings, bracket) for bracket in range(halving.brackets))
        return replace(settings, max_trials=min(num, MAX_TRIALS))
    if settings.max_time_s is None:
        reading.notes.append(
            f"neither maxJobNum nor maxRunTime ends it: it ends with experiment {MAX_TRIALS:,}, or is stopped"
        )
        return replace(settings, max_trials=MAX_TRIALS)
    return settings
