"""The tuning of a model, as IBM's clients ask for it, as a search of Pliant's. Pure: what the server knows is given.

Hyperband without a `ResourceName` has rungs at steps of the optimizer, from `miniteration` below `maxiteration`. How
long an experiment trains that no rung ends is up to the epochs of the model.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pliant.core.errors import InvalidInput, Problem
from pliant.core.hyperparameters import Engine
from pliant.core.parameter import Parameter
from pliant.core.search import SAMPLERS, SearchSettings
from pliant.core.space import SearchParameter, Values
from pliant.ibm.rest.translate.hpo.model_space import kinds_of, names_of, read_own, samples_of, to_model_space
from pliant.ibm.rest.translate.hpo.request import AlgoDef, AlgoParam, ResDef, TuningRequest
from pliant.ibm.rest.translate.hpo.search import AskedSearch, to_search

_HYPERBAND: Final = "hyperband"
_ITERATIONS: Final = "optimizer_iterations"
"""What stands for a resource that no program is told."""
_EPOCHS: Final = ("epoch", "epochs")
_MAX_RESOURCE: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedModel:
    """What is known of the model."""

    parameters: Sequence[Parameter]
    """Its template's own."""
    engine: Engine
    """That which trains the experiments."""
    batch_size: int
    epochs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedTuning:
    """What the tuning of a model means."""

    settings: SearchSettings
    enqueued: tuple[Values, ...]
    """Its experiments, if they were given."""
    samples: Sequence[Values]
    """Values that a trial may have, to see whether they fit the model."""
    names: Mapping[str, str]
    """IBM's names of hyperparameters, by Pliant's."""
    notes: tuple[str, ...]


def to_tuning(
    request: TuningRequest, model: TunedModel, *, has_scipy: bool, seed: int, plugins: Collection[str] = ()
) -> AskedTuning:
    """Return the search that the tuning of a model means.

    Args:
        has_scipy: Gaussian processes can be had.
        seed: for an algorithm that is given none.
        plugins: the names of installed algorithms that who asks may use.

    Raises:
        InvalidInput: with everything that is wrong with it.
    """
    problems: list[Problem] = []
    sent: Mapping[str, str] = {}
    asked: AskedSearch | None = None
    resource = _resource(request.algoDef)
    try:
        sent = names_of(request, model.parameters)
        problems += kinds_of(request, sent, model.parameters)
    except InvalidInput as error:
        problems += error.problems
    try:
        algorithm = _with_resource(_with_objective(request.algoDef), request.resDef, resource)
        least = _whole(request.resDef.miniteration, "resDef.miniteration") if request.resDef.miniteration else 1
        asked = to_search(
            request.model_copy(update={"algoDef": algorithm}),
            can_pause=model.engine != "distributed",
            has_scipy=has_scipy,
            seed=seed,
            least=least,
            plugins=plugins,
        )
    except InvalidInput as error:
        problems += error.problems
    if resource in _EPOCHS and "epochs" in sent.values():
        message = f"{resource!r} is among the hyperParams, too, but how long to train is not chosen; remove it there"
        problems.append(Problem(field="algoDef.algoParams.ResourceName", message=message))
    if asked is None or problems:
        raise InvalidInput(*problems)
    return _of_model(request, model, asked, {**sent, **{name: "epochs" for name in _EPOCHS if name not in sent}})


def _of_model(request: TuningRequest, model: TunedModel, asked: AskedSearch, names: Mapping[str, str]) -> AskedTuning:
    """Return a search with the values of a model instead of those that a program reads."""
    given = {name: one for name, one in asked.settings.parameters.items() if name != _ITERATIONS}
    chosen_here = asked.settings.sampler.name in SAMPLERS  # an algorithm of somebody's own may know no conditions
    space = to_model_space(given, names, model.parameters, conditional=chosen_here and not asked.enqueued)
    ours = [
        {names.get(name, name): read_own(names.get(name, name), value, model.parameters) for name, value in one.items()}
        for one in asked.enqueued
    ]
    batch = request.resDef.batchsize
    if batch is not None and batch != model.batch_size and "batch_size" not in space:
        space["batch_size"] = SearchParameter(kind="fixed", value=batch)
        ours = [{**one, "batch_size": batch} for one in ours]
    by_ours = {ours_name: theirs for theirs, ours_name in reversed([*names.items()])}
    shown = {name: by_ours.get(name, "batchsize") for name in space}
    return AskedTuning(
        settings=replace(asked.settings, parameters=space, pass_as=("model", "environment")),
        enqueued=tuple(ours),
        samples=tuple(samples_of(space, ours)),
        names=shown,
        notes=(*asked.notes, *_notes(request, model, asked, space)),
    )


def _notes(
    request: TuningRequest, model: TunedModel, asked: AskedSearch, space: Mapping[str, SearchParameter]
) -> Sequence[str]:
    given, notes = request.resDef, []
    if not request.algoDef.objectiveMetric.strip():
        objective = asked.settings.objectives[0]
        notes.append(f"objectiveMetric is not given: the experiments {objective.direction} {objective.metric}")
    counts_steps = asked.settings.halving is not None and asked.settings.halving.resource == "step"
    trains = "" if "epochs" in space else f" an experiment trains the {model.epochs} epochs of the model"
    if given.maxiteration.strip() and not counts_steps and trains:
        notes.append(f"maxiteration has no effect:{trains}; tune epoch, or change the model's, to have it otherwise")
    elif counts_steps and trains:
        notes.append(f"maxiteration says where experiments are compared; if none ends it,{trains}")
    if given.syncMode and given.syncMode.upper() != "SYNC":
        notes.append(f"syncMode {given.syncMode:.60} has no effect: gradients are always summed in step")
    return notes


def _with_objective(given: AlgoDef) -> AlgoDef:
    """Return an algorithm with an objective: IBM's package names no metric for a model's tuning, and may name none."""
    objective = given.objective.strip() or "minimize"
    metric = given.objectiveMetric.strip() or ("accuracy" if objective.lower() == "maximize" else "loss")
    return given.model_copy(update={"objective": objective, "objectiveMetric": metric})


def _resource(given: AlgoDef) -> str:
    """Return what Hyperband is said to count, in small letters; empty: nothing is said, or it is another algorithm."""
    if given.algorithm.strip().lower() != _HYPERBAND:
        return ""
    values = {one.name.strip().lower(): one.value for one in given.algoParams}
    return values.get("resourcename", "").strip().lower()


def _with_resource(given: AlgoDef, resources: ResDef, resource: str) -> AlgoDef:
    """Return an algorithm that says what an experiment gets more of, if it is Hyperband."""
    if given.algorithm.strip().lower() != _HYPERBAND:
        return given
    if resource and resource not in _EPOCHS:
        message = f"{resource!r:.60} is not what a model trains for; give epoch, or leave it out and give maxiteration"
        raise InvalidInput.at("algoDef.algoParams.ResourceName", message)
    kept = [one for one in given.algoParams if one.name.strip().lower() != "resourcename"]
    if resource:
        return given.model_copy(update={"algoParams": (*kept, AlgoParam(name="ResourceName", value="epochs"))})
    value = str(_whole(resources.maxiteration, "resDef.maxiteration"))
    kept = [one for one in kept if one.name.strip().lower() != "resourcevalue"]
    added = (AlgoParam(name="ResourceName", value=_ITERATIONS), AlgoParam(name="ResourceValue", value=value))
    return given.model_copy(update={"algoParams": (*kept, *added)})


def _whole(text: Any, field: str) -> int:
    try:
        number = float(text)
        if number == int(number) and 1 <= number <= _MAX_RESOURCE:
            return int(number)
    except (ValueError, OverflowError):
        pass
    said = f"{text!r:.60} is no whole number from 1 to {_MAX_RESOURCE:,}" if text else "it is missing"
    raise InvalidInput.at(field, f"{said}; give one")
