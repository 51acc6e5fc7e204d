"""How a search stands, in words and in one line: what commands, notebooks and scripts say of it alike. Pure."""

from collections.abc import Iterator
from typing import Final

from pliant.api.searches import SearchView
from pliant.core.duration import rough_duration
from pliant.core.search import Trial, TrialState
from pliant.core.space import Value, text_of_value
from pliant.policy.tuning.constraints import say_infeasible

NOTHING: Final = "–"
_GOING: Final = (TrialState.RUNNING, TrialState.PAUSED)


def counted(view: SearchView) -> str:
    """Return how many trials have ended, of how many: `12/40`; of no limit those that were chosen."""
    limit = view.settings.max_trials
    return str(num_ended(view)) if limit is None else f"{num_ended(view)}/{limit}"


def num_ended(view: SearchView) -> int:
    """Return how many of the trials that it has chosen have ended."""
    return sum(view.trials.values()) - sum(view.trials.get(state, 0) for state in _GOING) - view.num_known


def best_of(view: SearchView) -> str:
    """Return the result of the best trial."""
    return NOTHING if view.best is None else results_of(view.best)


def results_of(trial: Trial) -> str:
    """Return what a trial came to, or has reported last."""
    if trial.results is not None:
        return ", ".join(map(_number, trial.results))
    return _number(trial.reports[-1][1]) if trial.reports else NOTHING


def words_of(trial: Trial) -> str:
    """Return the values of a trial in a line: `lr=0.1 act=relu`."""
    return " ".join(f"{name}={short(value)}" for name, value in trial.values.items())


def short(value: Value) -> str:
    """Return a value for a table: numbers with four digits."""
    return _number(value) if isinstance(value, float) else text_of_value(value)


def left_of(view: SearchView) -> str:
    """Return how long a search will still run, about; empty if nobody can tell."""
    return "" if view.eta_s is None else f"about {rough_duration(view.eta_s)} left"


def no_best(view: SearchView) -> str:
    """Return that no trial keeps the constraints, and which one is nearest; empty if one does, or none can tell."""
    return "" if view.nearest is None else say_infeasible(view.settings, view.nearest)


def headline(view: SearchView) -> str:
    """Return how a search stands, in a line."""
    number = counted(view)
    parts = [f"{view.name} is {view.state.value}", f"{number} trial{'s' * (number != '1')} ended"]
    parts += [f"{num} {state.value}" for state in _GOING if (num := view.trials.get(state, 0))]
    if left := left_of(view):
        parts.append(left)
    if view.best is not None:  # last: its values may be long, and a narrow terminal cuts them
        parts.append(f"best {results_of(view.best)} (trial {view.best.number}: {words_of(view.best)})")
    elif said := no_best(view):
        parts.append(said)
    return ", ".join(parts)


def outcome(view: SearchView) -> Iterator[str]:
    """Yield how a search has come to rest, and its best trial, each in a line."""
    yield f"{view.name} {view.state.value}" + (f": {view.reason}" if view.reason else "")
    if view.best is not None:
        yield f"best: trial {view.best.number}, {best_of(view)} with {words_of(view.best)}"
    elif said := no_best(view):
        yield said


def news_of(view: SearchView) -> object:
    """Return what is otherwise when a trial was chosen or has ended, or there is a better one."""
    return view.state, view.num_trials, num_ended(view), None if view.best is None else view.best.number


def _number(value: float) -> str:
    return f"{value:.4g}"
