"""How searches stand: how long they will still run, and why as many of their trials train. Changes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from pliant.core.errors import Problem
from pliant.core.search import Search, SearchSettings, SearchState, Trial, TrialState
from pliant.policy.tuning.places import Places
from pliant.policy.tuning.standing import explain_search
from pliant.policy.tuning.time_left import seconds_left
from pliant.tune.searches.at_once import find_places
from pliant.tune.searches.book import SearchBook
from pliant.tune.searches.new_search import FirstTrials, notes_of_new, problems_of_new
from pliant.tune.searches.ports import SearchPorts
from pliant.tune.searches.settings_rules import algorithm_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a search stands at one instant."""

    search: Search
    training: tuple[Trial, ...]
    """Those that train, or wait for slots."""
    sentences: tuple[str, ...]
    """Why there are as many, and what waits for what."""


class SearchOutlook:
    """How all searches stand. Safe to call from any thread; who may see one is not its business."""

    def __init__(self, book: SearchBook, ports: SearchPorts) -> None:
        self._book = book
        self._ports = ports

    def colour(self, name: str) -> int | None:
        """Return the colour of a search in charts; None before it has a trial."""
        return self._ports.colour_of(name)

    def seconds_left(self, name: str) -> float | None:
        """Return how many seconds a search will still run, about; None if nobody can tell, or it does not run."""
        with self._book.lock:
            found = self._book.find(name) if name in self._book.running() else None
            search, trials = (None, ()) if found is None else (found.search, tuple(found.trials))
        return None if search is None else seconds_left(search, trials, self._ports.now())

    def places(self, search: Search) -> Places | None:
        """Return how many trials of a search train at once, and why; None if it does not run."""
        return find_places(search, self._ports.jobs) if search.state is SearchState.RUNNING else None

    def foresee(
        self, owner: str, name: str, settings: SearchSettings, first: FirstTrials
    ) -> tuple[tuple[Problem, ...], tuple[str, ...]]:
        """Return what is wrong with a search of somebody's that is not there yet, and what they should know.

        Its job and its code are not looked at.
        """
        algorithm = algorithm_of(settings, owner, self._ports)
        problems = problems_of_new(settings, owner, algorithm, self._ports, first)
        if self._book.find(name) is not None:
            problems = (Problem(field="name", message=f"there is a search {name!r}; give another name"), *problems)
        return problems, notes_of_new(settings, first)

    def explain(self, name: str) -> Standing:
        """Return how a search stands, and why.

        Raises:
            NotFound: there is none.
        """
        with self._book.lock:
            found = self._book.require(name)
            search, trials = found.search, tuple(found.trials)
        places = self.places(search)
        return Standing(
            search=search,
            training=() if places is None else _training(trials),
            sentences=explain_search(search, trials, places),
        )


def _training(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    return tuple(trial for trial in trials if trial.state is TrialState.RUNNING)
