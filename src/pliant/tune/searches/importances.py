"""How important the parameters of a search are, computed in a process of its own; for one search at a time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from threading import Lock
from typing import Final

from pliant.core.errors import Unavailable
from pliant.core.search import Sampler, Search, Trial, TrialState
from pliant.tune.advice import Adviser, AdviserFailure, AdviserInput, AdviserLost

_MIN_TRIALS: Final = 5
"""Of fewer results the best tenth and the rest do not differ by more than chance."""
_PATIENCE_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Importances:
    """What is known of them."""

    values: Mapping[str, float] = field(default_factory=dict)
    """By parameter, the largest first; together 1. Empty: nobody can tell."""
    reason: str = ""
    """Why it is empty."""


class ImportanceCalculator:
    """Computes them. Safe to call from any thread; one after the other."""

    def __init__(self, open_adviser: Callable[[AdviserInput], Adviser]) -> None:
        self._open_adviser = open_adviser
        self._lock = Lock()

    def of(self, search: Search, trials: Sequence[Trial]) -> Importances:
        """Return how important the parameters of a search are.

        Raises:
            Unavailable: others are computed now, or what computes them was lost.
        """
        results = [one.results[0] for one in trials if one.state is TrialState.COMPLETED and one.results]
        numbers = [result for result in results if isfinite(result)]
        if len(numbers) < _MIN_TRIALS:
            return Importances(reason=f"{len(numbers)} trials have completed; {_MIN_TRIALS} are needed at least")
        if min(numbers) == max(numbers):
            return Importances(reason=f"all {len(numbers)} results are {numbers[0]:g}")
        if not self._lock.acquire(timeout=_PATIENCE_S):
            raise Unavailable("the importances of another search are computed now; ask again in a minute")
        try:
            return self._ask(search, trials)
        finally:
            self._lock.release()

    def _ask(self, search: Search, trials: Sequence[Trial]) -> Importances:
        settings = replace(search.settings, sampler=Sampler(name="random"), pruner=None)
        bare = tuple(map(_bare, trials))
        try:
            adviser = self._open_adviser(AdviserInput(name=search.name, settings=settings, trials=bare))
            try:
                return Importances(values=adviser.importances())
            finally:
                adviser.close()
        except AdviserFailure as error:
            return Importances(reason=str(error))
        except AdviserLost as error:
            raise Unavailable(f"importances cannot be computed now: {error}") from error


def _bare(trial: Trial) -> Trial:
    """Return a trial with its values and its result alone; an infinite one counts for nothing."""
    is_good = trial.state is TrialState.COMPLETED and trial.results is not None and all(map(isfinite, trial.results))
    state = TrialState.COMPLETED if is_good else TrialState.FAILED
    return replace(trial, attributes={}, reports=(), state=state, results=trial.results if is_good else None)
