"""A search's trials as Optuna has them, and the storage in memory that holds them.

A study is what its trials are now: which came first, and what they were before, leaves no trace in it. So an adviser
that lives long and one that is made anew have the same study.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

from optuna.storages import InMemoryStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState

from pliant.core.search import SearchSettings, Trial, TrialState
from pliant.core.search_text import write_constraint
from pliant.tune.advice import AdviserFailure
from pliant.tune.adviser.distributions import Distributions

STATES: Final[Mapping[TrialState, OptunaState]] = MappingProxyType(
    {
        TrialState.RUNNING: OptunaState.RUNNING,
        TrialState.PAUSED: OptunaState.RUNNING,
        TrialState.COMPLETED: OptunaState.COMPLETE,
        TrialState.PRUNED: OptunaState.PRUNED,
        TrialState.FAILED: OptunaState.FAIL,
        TrialState.STOPPED: OptunaState.FAIL,
    }
)
CONSTRAINTS: Final = "constraints:"
"""How Optuna's names of such notes begin."""
_STUDY: Final = 0
"""The number of a storage's only study."""
_AT: Final = datetime.fromtimestamp(0, UTC)
"""Optuna wants times and uses none here."""


def frozen(trial: Trial, distributions: Distributions, settings: SearchSettings) -> FrozenTrial:
    """Return a trial as Optuna keeps it.

    Raises:
        AdviserFailure: it has values that it cannot have, or results of another search.
    """
    params, chosen_from = distributions.internal(trial.values)
    state, results, num_objectives = STATES[trial.state], trial.results, len(settings.objectives)
    if results is not None and len(results) != num_objectives:
        raise AdviserFailure(f"trial {trial.number} has {len(results)} results for {num_objectives} objectives")
    if results is None or any(map(math.isnan, results)):
        results = None
        state = OptunaState.FAIL if state is OptunaState.COMPLETE else state
    return FrozenTrial(
        number=trial.number,
        trial_id=trial.number,
        state=state,
        value=None,
        values=results if state in (OptunaState.COMPLETE, OptunaState.PRUNED) else None,
        datetime_start=_AT,
        datetime_complete=_AT if state.is_finished() else None,
        params=params,
        distributions=chosen_from,
        user_attrs={},
        system_attrs={**trial.attributes, **constraint_attributes(trial, settings)},
        intermediate_values=dict(trial.reports),
    )


def constraint_attributes(trial: Trial, settings: SearchSettings) -> dict[str, float]:
    """Return how far a trial violates each constraint, as Optuna's `Trial.set_constraint` notes it.

    Raises:
        AdviserFailure: it has violations of another search.
    """
    if not trial.violations:
        return {}
    names = [f"{CONSTRAINTS}{write_constraint(one)}" for one in settings.constraints]
    if len(names) != len(trial.violations):
        said = f"trial {trial.number} has {len(trial.violations)} violations for {len(names)} constraints"
        raise AdviserFailure(said)
    return {name: math.inf if math.isnan(one) else one for name, one in zip(names, trial.violations, strict=True)}


class TrialStorage(InMemoryStorage):
    """One study in memory. Its trials can be put there as they are, without being told one by one."""

    def put(self, trial: FrozenTrial) -> None:
        """Take a trial, instead of the one that has its number, or as the next.

        Raises:
            AdviserFailure: the one before it is missing.
        """
        trials = self.trials
        if trial.number > len(trials):
            raise AdviserFailure(f"trial {trial.number} is there, but not the one before it")
        if trial.number < len(trials):
            trials[trial.number] = trial
            return
        trials.append(trial)
        self._trial_id_to_study_id_and_number[trial.number] = (_STUDY, trial.number)
        self._max_trial_id = trial.number
        self._studies[_STUDY].param_distribution.update(trial.distributions)

    def cut(self, number: int) -> None:
        """Forget the trials from this number on."""
        for trial in self.trials[number:]:
            del self._trial_id_to_study_id_and_number[trial.number]
        del self.trials[number:]
        self._max_trial_id = number - 1
        self._prev_waiting_trial_number[_STUDY] = number

    @property
    def trials(self) -> list[FrozenTrial]:
        """All of them, by number; not to be changed."""
        return self._studies[_STUDY].trials

    @property
    def attributes(self) -> dict[str, Any]:
        """What samplers have noted with the study."""
        return self._studies[_STUDY].system_attrs

    @attributes.setter
    def attributes(self, noted: dict[str, Any]) -> None:
        self._studies[_STUDY].system_attrs = noted

    def get_best_trial(self, study_id: int) -> FrozenTrial:
        """Return the best trial; of equals the first by number, whichever was there first.

        Raises:
            ValueError: none has completed.
        """
        complete = [trial for trial in self.trials if trial.state is OptunaState.COMPLETE]
        if not complete:
            raise ValueError("No trials are completed yet.")
        (direction,) = self.get_study_directions(study_id)
        sign = -1.0 if direction is StudyDirection.MAXIMIZE else 1.0
        return min(complete, key=lambda trial: sign * (trial.values or (math.inf,))[0])

    def _update_cache(self, trial_id: int, study_id: int) -> None:
        """Note nothing: the best is looked for when somebody asks for it."""
