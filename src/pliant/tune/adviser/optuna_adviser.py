"""An adviser in this process, over Optuna (`OptunaAdviser`).

It has a study in memory: the trials, in Optuna's form. A call first brings the study to what the trials are now, by
replacing those that have changed; then it asks Optuna. Nothing else of what happened before matters but the sampler's
state, which every answer comes with. So an adviser that is made anew, from the trials and the newest state, goes on as
this one does.
"""

from collections.abc import Mapping, Sequence
from math import isfinite

import optuna
from optuna.samplers import GridSampler, TPESampler
from optuna.search_space.group_decomposed import _GroupDecomposedSearchSpace
from optuna.trial import FrozenTrial

from pliant.core.search import Trial
from pliant.core.space import Values
from pliant.tune.advice import AdviserFailure, AdviserInput, Asked, Exhausted, Judgement
from pliant.tune.adviser.distributions import Distributions
from pliant.tune.adviser.pruners import make_pruner, reason
from pliant.tune.adviser.sampler_source import BuiltInSampler, SamplerSource
from pliant.tune.adviser.trials import TrialStorage, frozen

_GRID_SPACE = "search_space"
"""Optuna notes the whole grid with every trial of one; it follows from the settings, so it is not kept."""


class OptunaAdviser:
    """Chooses values. For one caller at a time; it is an `Adviser`."""

    def __init__(self, opening: AdviserInput, source: SamplerSource | None = None) -> None:
        """Rebuild the study.

        Args:
            opening: the search.
            source: makes its sampler; if left out, it is one of Optuna's own.

        Raises:
            AdviserFailure: Optuna cannot do it, or the state is not this search's.
        """
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._settings = opening.settings
        self._source = source or BuiltInSampler(opening.settings)
        self._distributions = Distributions(opening.settings.parameters)
        with self._source.failures("be made ready"):
            self._build(opening.trials, opening.state)

    def ask(self, number: int, changed: Sequence[Trial], given: Values | None = None) -> Asked | Exhausted:
        with self._source.failures("choose values"):
            self._apply(changed)
            if number != (there := len(self._storage.trials)):
                raise AdviserFailure(f"values are asked for as trial {number}, and there are {there} trials")
            if not given and (reason := self._exhausted()):
                return Exhausted(reason=reason)
            try:
                asked = self._ask(number, given or {})
            except BaseException:
                self._undo(number)
                raise
            if asked is None:
                self._undo(number)
                return Exhausted(reason="the sampler has no more to try: it stopped its study")
            return asked

    def judge(self, number: int, changed: Sequence[Trial]) -> Judgement:
        with self._source.failures("judge a trial"):
            self._apply(changed)
            trials, pruner = self._storage.trials, self._settings.pruner
            if pruner is None or number >= len(trials):
                raise AdviserFailure(f"trial {number} of {len(trials)} is to be judged, by the pruner {pruner}")
            trial = trials[number]
            if not trial.intermediate_values or not self._study.pruner.prune(self._study, trial):
                return Judgement(prune=False)
            return Judgement(prune=True, reason=reason(pruner, self._settings.objectives[0], trial, trials))

    def importances(self) -> Mapping[str, float]:
        with self._source.failures("tell how important parameters are"):
            found = optuna.importance.get_param_importances(
                self._study,
                evaluator=optuna.importance.PedAnovaImportanceEvaluator(),
                target=lambda trial: trial.values[0],
            )
            return {name: value for name, value in found.items() if isfinite(value)}

    def close(self) -> None:
        """Do nothing: there is nothing to end."""

    def _build(self, trials: Sequence[Trial], state: str) -> None:
        settings = self._settings
        self._sampler = self._source.make()
        self._storage = TrialStorage()
        self._study = optuna.create_study(
            storage=self._storage,
            sampler=self._sampler,
            pruner=optuna.pruners.NopPruner() if settings.pruner is None else make_pruner(settings.pruner),
            directions=[objective.direction for objective in settings.objectives],
        )
        self._storage.attributes = self._source.load(state, self._sampler) if state else {}
        self._state = state or self._source.dump(self._sampler, {})
        for trial in sorted(trials, key=lambda one: one.number):
            self._storage.put(self._frozen(trial))

    def _apply(self, changed: Sequence[Trial]) -> None:
        """Let the study have these trials."""
        before = self._storage.trials
        new = [self._frozen(trial) for trial in sorted(changed, key=lambda one: one.number)]
        reopened = any(
            one.number < len(before)
            and before[one.number].state.is_finished()
            and before[one.number].state is not one.state
            for one in new
        )
        for one in new:
            self._storage.put(one)
        self._study._thread_local.cached_all_trials = None
        if reopened:
            self._renew_sampler()

    def _renew_sampler(self) -> None:
        """Have a sampler look at all trials again, also those that the one so far takes for finished."""
        self._sampler = self._study.sampler = self._source.make()
        self._storage.attributes = self._source.load(self._state, self._sampler)

    def _undo(self, number: int) -> None:
        """Be as before the trial of this number was asked for."""
        self._storage.cut(number)
        self._renew_sampler()

    def _ask(self, number: int, given: Values) -> Asked | None:
        """Return values; None if the sampler stops the study instead."""
        if isinstance(self._sampler, TPESampler) and self._sampler._group:
            # It keeps groups in the order in which trials ended; they are to follow from the trials alone.
            self._sampler._group_decomposed_search_space = _GroupDecomposedSearchSpace(True)
        if given:
            self._study.enqueue_trial(self._enqueued(given))
        values = self._suggested()
        if values is None:
            return None
        if missing := [name for name in given if name not in values]:
            raise AdviserFailure(f"{', '.join(missing)} is given, but its condition does not hold")
        attributes = {
            name: one for name, one in self._storage.trials[number].system_attrs.items() if name != _GRID_SPACE
        }
        self._state = self._source.dump(self._sampler, self._storage.attributes)
        return Asked(values=values, state=self._state, attributes={number: attributes} if attributes else {})

    def _suggested(self) -> Values | None:
        """Return what the sampler chooses; None if it stops the study."""
        self._study._stop_flag = False
        self._study._thread_local.in_optimize_loop = True  # else it is not allowed to stop it
        try:
            values = self._distributions.suggest(self._study.ask())
        finally:
            self._study._thread_local.in_optimize_loop = False
        return None if self._study._stop_flag else values

    def _enqueued(self, given: Values) -> dict[str, object]:
        missing = [name for name in self._distributions.names if name not in given]
        if missing and isinstance(self._sampler, GridSampler):
            raise AdviserFailure(f"a grid chooses all values or none; give {', '.join(missing)} as well")
        return self._distributions.enqueued(given)

    def _exhausted(self) -> str:
        """Return why there is nothing more to try; empty if there is."""
        if not isinstance(self._sampler, GridSampler):
            return ""
        num_points = len(self._sampler._all_grids)
        asked = {trial.system_attrs.get("grid_id") for trial in self._storage.trials} - {None}
        return f"all {num_points} points of the grid have been tried" if len(asked) >= num_points else ""

    def _frozen(self, trial: Trial) -> FrozenTrial:
        one = frozen(trial, self._distributions, self._settings)
        if isinstance(self._sampler, GridSampler) and "grid_id" in one.system_attrs:
            one.system_attrs[_GRID_SPACE] = self._sampler._search_space
        return one
