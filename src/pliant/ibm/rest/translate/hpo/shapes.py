"""A search and its trials as IBM's HPO task and its experiments, field by field. Pure.

Every search is shown as one, however it was begun; what was sent through IBM's API is given back as it came.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from pliant.core.job import Job
from pliant.core.lifecycle import JobState
from pliant.core.search import SAMPLERS, Objective, Sampler, Search, SearchState, Trial, TrialState
from pliant.core.space import SearchParameter, Value, Values, text_of_value
from pliant.ibm.rest.translate.hpo.record import HpoRecord
from pliant.ibm.rest.translate.ids import app_id, driver_id
from pliant.ibm.rest.translate.shapes import notes_text
from pliant.ibm.rest.wording import reword

STATES: Final[Mapping[SearchState, str]] = {
    SearchState.RUNNING: "RUNNING",
    SearchState.STOPPED: "STOPPED",
    SearchState.COMPLETED: "FINISHED",
    SearchState.FAILED: "FAILED",
}
RECOVERING: Final = "RECOVERPEND"
"""It ran before the server did, and has not been gone on with since."""
UNRECOVERED: Final = "recoverfailed"
"""What chooses its values could not go on."""
EXPERIMENT_STATES: Final[Mapping[TrialState, str]] = {
    TrialState.RUNNING: "RUNNING",
    TrialState.PAUSED: "SUBMITTED",
    TrialState.COMPLETED: "FINISHED",
    TrialState.PRUNED: "FINISHED",
    TrialState.FAILED: "FAILED",
    TrialState.STOPPED: "STOPPED",
}
"""A trial that was pruned has trained as long as it was to, as in IBM's Hyperband."""
_OF_JOBS: Final[Mapping[JobState, str]] = {
    JobState.PENDING: "SUBMITTED",
    JobState.PAUSED: "SUBMITTED",
    JobState.COMPLETED: "FINISHED",
    JobState.FAILED: "FAILED",
    JobState.STOPPED: "KILLED",
}
_ALGORITHMS: Final = {"random": "Random", "tpe": "Tpe", "gp": "Bayesian"}
_SEED: Final = "RandomSeed"
_UNDER_WAY: Final = ("SUBMITTED", "RUNNING")
_WITHOUT_RESULT: Final = ("FAILED", "KILLED", "ERROR")

Series = Mapping[str, Sequence[float]]
"""Values of metrics in the order in which they were reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A trial, and what is known of its job."""

    trial: Trial
    job: Job | None = None
    """None: it is not queued yet, or was deleted."""
    series: Series = field(default_factory=dict)
    """Of metrics besides the objective."""


def hpo_json(search: Search, tried: Sequence[Tried], record: HpoRecord, now: float) -> dict[str, Any]:
    """Return the description of an HPO task, for clients of both generations."""
    experiments = [_experiment(search, one, record) for one in tried]
    states = Counter(one["state"] for one in experiments)
    waiting = [_to_come(search, record, search.num_trials + place) for place in range(len(search.enqueued))]
    ended = sum(one.trial.ended for one in tried)
    total = search.settings.max_trials or search.num_trials
    best = next((one for one, of in zip(experiments, tried, strict=True) if of.trial.number == search.best), None)
    return {
        "hpoName": search.name,
        "state": _state(search, states),
        "stateReason": reword(search.reason),
        "running": sum(states[state] for state in _UNDER_WAY),
        "complete": states["FINISHED"],
        "failed": sum(states[state] for state in _WITHOUT_RESULT),
        "progress": f"{ended}/{max(total, ended)}",
        "createtime": time_text(search.created_at),
        "creator": search.owner,
        "duration": _duration(search, now),
        "modelSpec": {"sigName": record.instance_group or search.job.queue, "args": record.args},
        "algoDef": record.algorithm or _algorithm(search),
        "hyperParams": list(record.hyper_params) or _hyper_params(search.settings.parameters, record),
        **({} if best is None else {"best": best}),  # IBM's client reads no null here
        "experiments": [*experiments, *waiting],
        "notes": notes_text(record.notes),
    }


def tuning_json(search: Search, described: Mapping[str, Any], record: HpoRecord) -> dict[str, Any]:
    """Return the description of a model's tuning, out of that of its HPO task."""
    grid = ("experiments", "best", "running", "complete", "failed", "progress", "duration")
    given = {"hyperParams": described["hyperParams"]}
    if not record.hyper_params:
        tried = described["experiments"]
        given = {"experiments": [{"id": one["id"], "fixedHyperParams": one["hyperParams"]} for one in tried]}
    return {
        "input": {
            "modelName": record.model,
            "hpoName": search.name,
            "resDef": {"framework": "PyTorch", "maxiteration": "", "batchsize": None, **record.resources},
            "algoDef": described["algoDef"],
            **given,
        },
        "searchGrid": {name: described[name] for name in grid if name in described},
        "state": described["state"],
        "stateReason": described["stateReason"],
        "creator": search.owner,
        "createtime": described["createtime"],
        "sigId": search.job.queue,
        "sigName": search.job.queue,
        "consumerName": f"/pliant/{search.job.queue}",
        "notes": described["notes"],
    }


def time_text(at: float | None) -> str | None:
    """Return an instant as IBM's clients read it."""
    return None if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _duration(search: Search, now: float) -> str:
    ran = search.ran_s + (0.0 if search.running_since is None else max(0.0, now - search.running_since))
    minutes, seconds = divmod(int(ran), 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}"


def _state(search: Search, states: Mapping[str, int]) -> str:
    if search.unrecovered:
        return UNRECOVERED
    if search.state is SearchState.RUNNING and not any(states[state] for state in states if state != "SUBMITTED"):
        return "SUBMITTED"
    return STATES[search.state]


def _experiment(search: Search, tried: Tried, record: HpoRecord) -> dict[str, Any]:
    trial, job, objective = tried.trial, tried.job, search.settings.objectives[0]
    values = [value for _, value in trial.reports]
    value = trial.results[0] if trial.results else _best(objective, values)
    series = {objective.metric: values or list(trial.results or ()), **tried.series}
    beyond = {objective.metric: trial.results or ()}
    halving = search.settings.halving
    return {
        "id": _id(record, trial.number),
        "state": _experiment_state(trial, job),
        "stateReason": reword(trial.reason),
        "metricVal": _finite(value),
        "metrics": [_metric(name, points, beyond.get(name, ())) for name, points in series.items() if points],
        "maxiteration": 0 if halving is None else halving.max,
        "appId": None if job is None else app_id(job),
        "driverId": None if job is None else driver_id(job),
        "startTime": time_text(job.started_at if job is not None else None),
        "endTime": time_text(trial.ended_at),
        "hyperParams": _values(search.settings.parameters, trial.values, record),
    }


def _to_come(search: Search, record: HpoRecord, number: int) -> dict[str, Any]:
    """Return an experiment that was given and is not begun."""
    values = search.enqueued[number - search.num_trials]
    return {
        "id": _id(record, number),
        "state": "NOTRUN",
        "stateReason": "",
        "metricVal": None,
        "metrics": [],
        "maxiteration": 0,
        "appId": None,
        "driverId": None,
        "startTime": None,
        "endTime": None,
        "hyperParams": _values(search.settings.parameters, values, record),
    }


def _id(record: HpoRecord, number: int) -> int:
    return record.experiment_ids[number] if number < len(record.experiment_ids) else number


def _experiment_state(trial: Trial, job: Job | None) -> str:
    if trial.state is not TrialState.RUNNING:
        return EXPERIMENT_STATES[trial.state]
    return "SUBMITTED" if job is None else _OF_JOBS.get(job.state, "RUNNING")


def _best(objective: Objective, values: Sequence[float]) -> float | None:
    numbers = [value for value in values if not math.isnan(value)]
    if not numbers:
        return None
    return {"min": min, "max": max}[objective.reading](numbers) if objective.reading != "last" else numbers[-1]


def _metric(name: str, points: Sequence[float], beyond: Sequence[float]) -> dict[str, Any]:
    """Return what is said of a metric; `beyond`: values that it has had between the points."""
    numbers = [point for point in (*points, *beyond) if not math.isnan(point)]
    return {
        "name": name,
        "min": _finite(min(numbers, default=None)),
        "max": _finite(max(numbers, default=None)),
        "latest": _finite(points[-1]),
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _values(space: Mapping[str, SearchParameter], values: Values, record: HpoRecord) -> list[dict[str, Any]]:
    sent = {str(one.get("name")): one for one in record.hyper_params}
    named = [(record.names.get(name, name), space.get(name), value) for name, value in values.items()]
    return [
        {
            "name": name,
            "type": sent.get(name, {}).get("type") or _type(parameter),
            "dataType": _data_type(parameter, value),
            "fixedVal": text_of_value(value),
            "userDefined": bool(sent.get(name, {}).get("userDefined", False)),
        }
        for name, parameter, value in named
    ]


def _type(parameter: SearchParameter | None) -> str:
    kind = "fixed" if parameter is None else parameter.kind
    return {"float": "Range", "int": "Range", "choice": "Discrete"}.get(kind, "fix")


def _data_type(parameter: SearchParameter | None, value: Value) -> str:
    if parameter is not None and parameter.kind == "float":
        return "DOUBLE"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "STR"
    return "INT" if isinstance(value, int) else "DOUBLE"


def _algorithm(search: Search) -> dict[str, Any]:
    """Return what chooses for a search that was not begun through IBM's API."""
    settings = search.settings
    name = "Hyperband" if settings.halving is not None else _name_of(settings.sampler)
    minutes = -1 if settings.max_time_s is None else settings.max_time_s / 60
    return {
        "algorithm": name,
        "maxRunTime": minutes,
        "maxJobNum": settings.max_trials or -1,
        "maxParalleJobNum": settings.parallel or -1,
        "objectiveMetric": settings.objectives[0].metric,
        "objective": settings.objectives[0].direction,
        "algoParams": [
            {"name": _SEED, "value": str(settings.sampler.seed)},
            *({"name": name, "value": text_of_value(value)} for name, value in _own_options(settings.sampler)),
        ],
    }


def _own_options(sampler: Sampler) -> Iterable[tuple[str, Value]]:
    """Return the options of an algorithm of somebody's own: those of built-in ones have no names of IBM's."""
    return () if sampler.name in SAMPLERS else ((name, one) for name, one in sampler.options.items() if name != _SEED)


def _name_of(sampler: Sampler) -> str:
    return _ALGORITHMS.get(sampler.name, sampler.name)


def _hyper_params(space: Mapping[str, SearchParameter], record: HpoRecord) -> list[dict[str, Any]]:
    return [
        {"name": record.names.get(name, name), "type": _type(one), "userDefined": False} | _bounds(one, _type(one))
        for name, one in space.items()
    ]


def _bounds(one: SearchParameter, kind: str) -> dict[str, Any]:
    if kind == "fix":
        return {"dataType": _data_type(one, one.value), "fixedVal": text_of_value(one.value)}
    if kind == "Discrete":
        types = {_data_type(one, value) for value in one.choices}
        data_type = types.pop() if len(types) == 1 else "STR"
        name = {"INT": "discreteIntVal", "DOUBLE": "discreteDbVal"}.get(data_type, "discreateStrVal")
        values = one.choices if data_type != "STR" else [text_of_value(value) for value in one.choices]
        return {"dataType": data_type, name: list(values)}
    step = {} if one.step is None else {"step": f"{one.step:g}"}
    if one.kind == "int":
        assert one.low is not None, "an int has bounds"
        assert one.high is not None, "an int has bounds"
        return {"dataType": "INT", "minIntVal": int(one.low), "maxIntVal": int(one.high), **step}
    return {"dataType": "DOUBLE", "minDbVal": one.low, "maxDbVal": one.high, **step}
