"""Searches as studies in Optuna's storages, and studies as trials that a search can learn from.

A study holds choices as they are where Optuna can tell them apart, so that dashboards show them; else as JSON, and a
note with the study says of which parameters. What Optuna's samplers noted with a study is never read: some is pickled.
"""

import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState

from pliant.core.errors import InvalidInput
from pliant.core.search import SearchSettings, Trial, TrialState
from pliant.core.space import SearchParameter, Value
from pliant.tune.adviser.distributions import distribution_of
from pliant.tune.adviser.storages import opened, shown
from pliant.tune.adviser.trials import STATES, constraint_attributes
from pliant.tune.study_messages import FoundTrial, ReadStudy, StudyFound, StudyWritten, WriteStudy

_IN_JSON: Final = "pliant:in_json"
_JOB: Final = "pliant:job"
_STATE: Final = "pliant:state"
_REASON: Final = "pliant:reason"
_PARENT: Final = "pliant:parent"
_ENDED: Final = {
    OptunaState.COMPLETE: TrialState.COMPLETED,
    OptunaState.PRUNED: TrialState.PRUNED,
    OptunaState.FAIL: TrialState.FAILED,
}


def write_study(request: WriteStudy) -> StudyWritten:
    """Write a search as a new study, whole or not at all, unless this process is killed.

    Raises:
        InvalidInput: there is a study of this name, or the storage cannot be written.
    """
    with _quiet(), opened(request.storage, make=True) as storage:
        if request.study in optuna.get_all_study_names(storage):
            message = f"{shown(request.storage)} has a study {request.study!r} already; give another name"
            raise InvalidInput.at("study", message)
        columns = {name: _Column(one) for name, one in request.settings.parameters.items()}
        directions = [objective.direction for objective in request.settings.objectives]
        study = optuna.create_study(storage=storage, study_name=request.study, directions=directions)
        try:
            study.set_metric_names([objective.metric for objective in request.settings.objectives])
            study.set_user_attr(_IN_JSON, [name for name, column in columns.items() if column.in_json])
            study.add_trials([_frozen(trial, columns, request.settings) for trial in request.trials])
        except BaseException:
            optuna.delete_study(study_name=request.study, storage=storage)
            raise
    return StudyWritten(num_trials=len(request.trials))


def read_study(request: ReadStudy) -> StudyFound:
    """Return the trials of a study that have ended.

    Raises:
        InvalidInput: there is no such study, or several and none is named, or the storage cannot be read.
    """
    with _quiet(), opened(request.storage, make=False) as storage:
        study = optuna.load_study(study_name=_name(request, storage), storage=storage)
        in_json = study.user_attrs.get(_IN_JSON, ())
        trials = study.get_trials(deepcopy=False)
        ended = [trial for trial in trials if trial.state in _ENDED]
        return StudyFound(
            study=study.study_name,
            directions=tuple("maximize" if one.name == "MAXIMIZE" else "minimize" for one in study.directions),
            trials=tuple(_found(trial, in_json) for trial in ended[-request.max_trials :]),
            num_ended=len(ended),
            num_unended=len(trials) - len(ended),
        )


class _Column:
    """A parameter as a study has it."""

    def __init__(self, parameter: SearchParameter) -> None:
        is_number = parameter.kind in ("float", "int")
        choices = (parameter.value,) if parameter.kind == "fixed" else parameter.choices
        self.kind = parameter.kind
        self.in_json = not is_number and not _are_distinct(choices)
        self.distribution: BaseDistribution = (
            distribution_of(parameter) if is_number else CategoricalDistribution([*map(self.value, choices)])
        )

    def value(self, value: Value) -> Any:
        """Return a value as the study has it."""
        if self.in_json:
            return json.dumps(value)
        return float(value) if self.kind == "float" and isinstance(value, int | float) else value


def _are_distinct(choices: Sequence[Value]) -> bool:
    """Tell whether Optuna takes such choices for different ones: to it 1, 1.0 and true are the same."""
    return not any(isinstance(one, tuple | list) for one in choices) and len(set(choices)) == len(choices)


def _frozen(trial: Trial, columns: Mapping[str, _Column], settings: SearchSettings) -> FrozenTrial:
    state, results = STATES[trial.state], trial.results
    if results is None or any(map(math.isnan, results)):
        results = None
        state = OptunaState.FAIL if state is OptunaState.COMPLETE else state
    notes = {_JOB: trial.job_id, _STATE: trial.state.value, _REASON: trial.reason}
    if trial.parent is not None:
        notes[_PARENT] = f"{trial.parent} at epoch {trial.parent_epoch}"
    ended_at = trial.begun_at if trial.ended_at is None else trial.ended_at
    return FrozenTrial(
        number=trial.number,
        trial_id=trial.number,
        state=state,
        value=None,
        values=results if state in (OptunaState.COMPLETE, OptunaState.PRUNED) else None,
        datetime_start=_local(trial.begun_at),
        datetime_complete=_local(ended_at) if state.is_finished() else None,
        params={name: column.value(trial.values[name]) for name, column in columns.items() if name in trial.values},
        distributions={name: column.distribution for name, column in columns.items() if name in trial.values},
        user_attrs={name: text for name, text in notes.items() if text},
        system_attrs=constraint_attributes(trial, settings),
        intermediate_values=dict(trial.reports),
    )


def _local(at: float) -> datetime:
    """Return an instant as Optuna has it: in the time of this machine, without saying so."""
    return datetime.fromtimestamp(at, UTC).astimezone().replace(tzinfo=None)


def _name(request: ReadStudy, storage: BaseStorage) -> str:
    names = optuna.get_all_study_names(storage)
    if request.study in names:
        return request.study
    if request.study is None and len(names) == 1:
        return names[0]
    there = ", ".join(names[:20]) + " …" * (len(names) > 20)
    has = f"{shown(request.storage)} has {f'the studies {there}' if names else 'no study'}"
    asked = "" if request.study is None else f", and none is called {request.study!r:.80}"
    raise InvalidInput.at("study", f"{has}{asked}; name one of them" if names else f"{has}; name another storage")


def _found(trial: FrozenTrial, in_json: Sequence[str]) -> FoundTrial:
    state = _ENDED[trial.state]
    if state is TrialState.FAILED and trial.user_attrs.get(_STATE) == TrialState.STOPPED.value:
        state = TrialState.STOPPED
    noted: Mapping[str, object] = trial.constraints  # somebody else's
    return FoundTrial(
        values={name: json.loads(one) if name in in_json else one for name, one in trial.params.items()},
        state=state,
        results=None if trial.values is None else tuple(trial.values),
        reports=tuple(sorted(trial.intermediate_values.items())),
        constraints={name: float(one) for name, one in noted.items() if isinstance(one, int | float)},
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Let Optuna say nothing that is not an error."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
