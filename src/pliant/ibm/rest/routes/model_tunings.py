"""Tunings of models: searches whose trials train a model with other hyperparameters, in IBM's words.

The best of them changes the model, or makes a new one. Each is a search like any other: `/hypersearch` shows it, too.
"""

import importlib.util
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from pliant.api.models import ModelRequest
from pliant.catalog.models.model import Model
from pliant.catalog.models.models import apply_changes
from pliant.catalog.models.trial_code import changes_of_values
from pliant.core.access import Permission, Principal
from pliant.core.errors import Conflict, InvalidInput, NotFound, Problem
from pliant.core.job import JobSpec
from pliant.core.model import ModelDefinition
from pliant.core.search import Search, SearchState
from pliant.files.space import translate_disk_errors
from pliant.ibm.rest.credentials import Caller
from pliant.ibm.rest.errors import DEEP_LEARNING, name_fields
from pliant.ibm.rest.groups import queue_names
from pliant.ibm.rest.hpo_records import describe, find_record, keep_record, searches_of
from pliant.ibm.rest.lookup import read_pages
from pliant.ibm.rest.routes.hpo_algorithms import plugin_names
from pliant.ibm.rest.routes.hypersearch import MAX_SEED, check_name, force_search, forget, stop_search
from pliant.ibm.rest.routes.models import model_json, validate_body
from pliant.ibm.rest.routes.trainings import engine_of, find_weights
from pliant.ibm.rest.routing import ibm_routes
from pliant.ibm.rest.translate.hpo.model_tuning import AskedTuning, TunedModel, to_tuning
from pliant.ibm.rest.translate.hpo.record import HpoRecord
from pliant.ibm.rest.translate.hpo.request import ResDef, TuningRequest, read_tuning
from pliant.ibm.rest.translate.hpo.search import name_fields_of_search
from pliant.ibm.rest.translate.hpo.shapes import tuning_json
from pliant.ibm.rest.translate.hyper import NAMES
from pliant.ibm.rest.translate.job_request import find_queue
from pliant.ibm.rest.wording import reword
from pliant.server.body import read_small
from pliant.server.context import Context, InContext
from pliant.tune.searches.new_search import FirstTrials

routes = ibm_routes(DEEP_LEARNING)

_FIELDS: Final = {
    "max_workers": "resDef.workerNum",
    "slots_per_worker": "resDef.gpuNum",
    "engine": "resDef.framework",
    "queue": "resDef.resourceInstanceId",
    "weights": "resDef.initWeightPath",
    "hyperparameters.batch_size": "resDef.batchsize",
}
_BASE: Final = "/models/{model}/hypersearch"
_ONE: Final = f"{_BASE}/{{search}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What was sent, read."""

    request: TuningRequest
    given: Mapping[str, Any]
    changes: Mapping[str, Any]
    """Of the model, for these experiments."""
    weights: str | None
    tuning: AskedTuning


@routes.post(_BASE, Permission.MODELS_WRITE)
async def create(request: Request, context: InContext, caller: Caller, model: str) -> dict[str, Any]:
    """Begin to tune a model; what has no effect is told in `notes`."""
    text = (await read_small(request.stream())).decode("utf-8", "replace")
    return await run_in_threadpool(_begin, context, caller, model, text)


def _begin(context: Context, caller: Principal, name: str, text: str) -> dict[str, Any]:
    model = context.models.models.get(caller, name).noun
    asked = _read(context, caller, model, text)
    tuning, code = asked.tuning, context.models.trial_code
    with translate_disk_errors(context.uploads), tempfile.TemporaryDirectory(dir=context.uploads) as folder:
        archive = Path(folder) / "code.tar.gz"
        with name_fields(_names(asked)):
            spec = code.pack(caller, name, asked.changes, tuning.samples, archive)
        search, remarks = _create(context, caller, asked, spec, archive)
    record = _record(asked, search, name, (*tuning.notes, *remarks))
    keep_record(context, record)
    shown = tuning_json(search, describe(context, caller, search, extra=False), record)
    return {"uid": search.name, "href": f"{DEEP_LEARNING}/models/{name}/hypersearch/{search.name}"} | shown


def _create(
    context: Context, caller: Principal, asked: _Asked, spec: JobSpec, archive: Path
) -> tuple[Search, tuple[str, ...]]:
    tuning, visible = asked.tuning, context.sharing.visible_jobs(caller)
    if asked.weights is not None:
        spec = replace(spec, weights=asked.weights)
    try:
        search, remarks = searches_of(context).create(
            caller,
            asked.request.hpoName or None,
            tuning.settings,
            spec,
            archive,
            visible,
            FirstTrials(enqueued=tuning.enqueued),
        )
    except InvalidInput as error:
        with name_fields(_names(asked)):
            raise InvalidInput(*name_fields_of_search(error.problems)) from error
    return search, tuple(remarks)


def _read(context: Context, caller: Principal, model: Model, text: str) -> _Asked:
    """Return what was sent.

    Raises:
        InvalidInput: with everything that is wrong with it.
    """
    request, given = read_tuning(text)
    problems: list[Problem] = []
    changes: Mapping[str, Any] = {}
    weights: str | None = None
    tuning: AskedTuning | None = None
    if request.modelName not in ("", model.name):
        message = f"{request.modelName!r:.60} is not {model.name!r}, whose address it is; give that, or leave it out"
        problems.append(Problem(field="modelName", message=message))
    try:
        check_name(request.hpoName)
    except InvalidInput as error:
        problems += error.problems
    try:
        changes = _changes(context, request.resDef)
    except InvalidInput as error:
        problems += error.problems
    try:
        weights = _weights(context, caller, model.name, request.resDef.initWeightPath)
    except InvalidInput as error:
        problems += error.problems
    try:
        known = TunedModel(
            parameters=model.template.parameters,
            engine=apply_changes(model, changes).engine,
            batch_size=model.hyperparameters.batch_size,
            epochs=model.hyperparameters.epochs,
        )
        seed = int(context.clock.now() * 1000) % MAX_SEED
        has_scipy = importlib.util.find_spec("scipy") is not None
        plugins = plugin_names(context, caller)
        tuning = to_tuning(request, known, has_scipy=has_scipy, seed=seed, plugins=plugins)
    except InvalidInput as error:
        problems += error.problems
    if tuning is None or problems:
        raise InvalidInput(*problems)
    return _Asked(request=request, given=given, changes=changes, weights=weights, tuning=tuning)


def _changes(context: Context, given: ResDef) -> Mapping[str, Any]:
    """Return what `resDef` changes of the model."""
    changes: dict[str, Any] = {}
    for field, name, most in (("workerNum", "max_workers", 10_000), ("gpuNum", "slots_per_worker", 1000)):
        number = getattr(given, field)
        if number is None:
            continue
        if not 1 <= number <= most:
            raise InvalidInput.at(f"resDef.{field}", f"{number:,} is not from 1 to {most:,}; give such a number")
        changes[name] = number
    engine = engine_of(given.framework, distribute=given.distribute)
    if engine is not None:
        changes["engine"] = engine
    if given.resourceInstanceId:
        group = find_queue(given.resourceInstanceId, queue_names(context), field="resDef.resourceInstanceId")
        changes["queue"] = group
    return changes


def _weights(context: Context, caller: Principal, model: str, name: str) -> str | None:
    """Return the job whose weights all experiments start from; None: they start from their own.

    Raises:
        InvalidInput: there is none of that name, or it is a file.
    """
    found, uploaded = find_weights(context, caller, name or None)
    if uploaded is not None:
        message = f"{name!r:.100} is a file that was uploaded; train once from it, and name that training or its exec"
        raise InvalidInput.at("resDef.initWeightPath", message)
    if found is None:
        return None
    if "job" in found:
        return found["job"]
    try:
        job_id = context.models.trainings.get(caller, model, found["training"]).noun.job_id
    except NotFound as error:
        message = f"{error}; or give an exec, such as wmla-3"
        raise InvalidInput.at("resDef.initWeightPath", message) from error
    if not job_id:
        raise InvalidInput.at("resDef.initWeightPath", f"the training {name!r:.80} is just being started; wait for it")
    return job_id


def _names(asked: _Asked) -> Mapping[str, str]:
    """Return where things were sent, by the fields of a model."""
    by_theirs = {f"hyperparameters.{ours}": f"hyperparameter.{theirs}" for theirs, ours in reversed([*NAMES.items()])}
    sent = {one.name: f"hyperParams.{place}" for place, one in enumerate(asked.request.hyperParams)}
    tuned: dict[str, str] = {}
    given = {one.name for experiment in asked.request.experiments for one in experiment.hyperParams}
    for ours, theirs in asked.tuning.names.items():
        if place := sent.get(theirs) or ("experiments" if theirs in given else ""):
            tuned |= {f"hyperparameters.{ours}": place, f"parameters.{ours}": place}
    return {**by_theirs, **_FIELDS, **tuned}


def _record(asked: _Asked, search: Search, model: str, notes: tuple[str, ...]) -> HpoRecord:
    request, given = asked.request, asked.given
    ids = tuple(one.id for one in request.experiments if one.id is not None)
    return HpoRecord(
        name=search.name,
        owner=search.owner,
        made_at=search.created_at,
        instance_group=request.resDef.resourceInstanceId,
        algorithm=given.get("algoDef") or {},
        hyper_params=tuple(given.get("hyperParams") or ()),
        experiment_ids=ids if len(set(ids)) == len(request.experiments) else (),
        model=model,
        resources=given.get("resDef") or {},
        names=asked.tuning.names,
        notes=notes,
    )


def _require(context: Context, caller: Principal, model: str, name: str) -> tuple[Search, HpoRecord]:
    """Return a tuning of a model.

    Raises:
        NotFound: none that they see.
    """
    search = searches_of(context).get(caller, name)
    record = find_record(context, search)
    if record is None or record.model != model:
        raise NotFound(f"the model {model!r:.80} has no tuning {name!r:.80}; list them to see which it has")
    return search, record


def _show(context: Context, caller: Principal, model: str, name: str) -> dict[str, Any]:
    search, record = _require(context, caller, model, name)
    return tuning_json(search, describe(context, caller, search, extra=True), record)


@routes.get(_BASE, Permission.MODELS_READ)
def index(context: InContext, caller: Caller, model: str) -> list[dict[str, Any]]:
    """List the tunings of a model that who asks sees."""
    context.models.models.get(caller, model)
    found = read_pages(lambda after, limit: searches_of(context).page(caller, after, limit))
    pairs = [(search, record) for search in found if (record := find_record(context, search)) is not None]
    return [
        tuning_json(search, describe(context, caller, search, extra=False), record)
        for search, record in pairs
        if record.model == model
    ]


@routes.get(_ONE, Permission.MODELS_READ)
def show(context: InContext, caller: Caller, model: str, search: str) -> dict[str, Any]:
    """Show a tuning, its experiments and the best of them."""
    return _show(context, caller, model, search)


@routes.delete(_ONE, Permission.MODELS_WRITE)
def delete(context: InContext, caller: Caller, model: str, search: str) -> dict[str, Any]:
    """Delete a tuning; jobs of it that have not ended are stopped, and all of them stay as jobs."""
    _require(context, caller, model, search)
    forget(context, caller, search)
    return {"message": f"{search} is deleted", "hpoName": search}


@routes.put(f"{_ONE}/stop", Permission.MODELS_WRITE)
def stop(context: InContext, caller: Caller, model: str, search: str) -> dict[str, Any]:
    """Stop a tuning: elastic experiments pause, others train on to their end, and no further one begins."""
    _require(context, caller, model, search)
    stop_search(context, caller, search)
    return _show(context, caller, model, search)


@routes.put(f"{_ONE}/force", Permission.MODELS_WRITE)
def force(context: InContext, caller: Caller, model: str, search: str) -> dict[str, Any]:
    """Stop a tuning, and end those of its experiments that cannot pause."""
    _require(context, caller, model, search)
    force_search(context, caller, search)
    return _show(context, caller, model, search)


@routes.put(f"{_ONE}/restart", Permission.MODELS_WRITE)
def restart(context: InContext, caller: Caller, model: str, search: str) -> dict[str, Any]:
    """Let a tuning that was stopped go on where it was."""
    _require(context, caller, model, search)
    searches_of(context).resume(caller, search)
    return _show(context, caller, model, search)


@routes.put(f"{_ONE}/update", Permission.MODELS_WRITE)
def update(context: InContext, caller: Caller, model: str, search: str) -> dict[str, Any]:
    """Give the model the hyperparameters of the best experiment."""
    changes = changes_of_values(_best_values(context, caller, model, search))
    return model_json(context, context.models.models.change(caller, model, changes))


@routes.put(f"{_ONE}/create/{{new}}", Permission.MODELS_WRITE)
def create_model(context: InContext, caller: Caller, model: str, search: str, new: str) -> dict[str, Any]:
    """Make a model like this one, with the hyperparameters of the best experiment; of its template as it is now."""
    values = _best_values(context, caller, model, search)
    found = context.models.models.get(caller, model).noun
    best = apply_changes(found, changes_of_values(values))
    said = {one.name: getattr(best, one.name) for one in fields(ModelDefinition)}
    with name_fields({"name": "newmodelname", "template": "templatename"}):
        checked = validate_body(ModelRequest, {"name": new, "template": found.template.name})
        asked = ModelDefinition(**said | {"name": checked.name, "shared_with": ()})
        made = context.models.models.add(caller, found.template.name, asked)
    return model_json(context, made)


def _best_values(context: Context, caller: Principal, model: str, name: str) -> Mapping[str, Any]:
    """Return the values of the best trial.

    Raises:
        NotFound: there is no such tuning.
        Conflict: none of its experiments has come to a result, or none will.
    """
    search, _ = _require(context, caller, model, name)
    if search.best is None and search.state in (SearchState.COMPLETED, SearchState.FAILED):
        raise Conflict(f"no experiment of {name} came to a result: {reword(search.reason)}; mend that, and tune again")
    if search.best is None:
        raise Conflict(f"no experiment of {name} has come to a result yet; wait until one has")
    return searches_of(context).trial(caller, name, search.best).values
