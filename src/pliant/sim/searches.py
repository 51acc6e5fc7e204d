"""Searches without a disk. Implements `pliant.core.search_store.Searches`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import isnan
from threading import Lock

from pliant.core.errors import Conflict, NotFound
from pliant.core.search import Decision, Search, SearchState, SearchWrites, Trial, TrialState
from pliant.sim.noun_events import MemoryNounEvents


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """All that there is of a search."""

    search: Search
    trials: tuple[Trial, ...] = ()
    """By number."""
    decisions: tuple[Decision, ...] = ()
    """By position."""
    sampler_state: str = ""


class MemorySearches:
    """One dictionary; what is kept of a search is replaced as a whole, so that who reads sees no half of a write."""

    def __init__(self, events: MemoryNounEvents | None = None) -> None:
        """Begin empty; changes are written to these events, or to some that nobody reads."""
        self._lock = Lock()
        self._events = events or MemoryNounEvents()
        self._kept: dict[str, _Kept] = {}

    def search(self, name: str) -> Search | None:
        """Return a search, or None if there is none of that name."""
        return None if (kept := self._kept.get(name)) is None else kept.search

    def searches(
        self,
        *,
        after: str = "",
        limit: int = 1000,
        owner: str | None = None,
        states: Sequence[SearchState] = (),
        part: str = "",
    ) -> tuple[Search, ...]:
        """Return searches in the order of their names, those in one of the states, or all.

        `after` is the last name of the page before; with `part` only those whose names hold it, whatever its capitals.
        """
        with self._lock:
            found = [
                kept.search
                for name, kept in sorted(self._kept.items())
                if name > after and part.casefold() in name.casefold()
            ]
        fitting = (
            search for search in found if owner in (None, search.owner) and (not states or search.state in states)
        )
        return tuple(islice(fitting, limit))

    def add(self, search: Search, trials: Sequence[Trial] = ()) -> None:
        """Keep a new search with the trials that it begins with.

        Raises:
            Conflict: the name is taken, or differs from another one only by capital letters.
        """
        with self._lock:
            if any(name != search.name and name.lower() == search.name.lower() for name in self._kept):
                raise Conflict(f"there is a search whose name differs from {search.name!r} only by capital letters")
            if search.name in self._kept:
                raise Conflict(f"there is a search {search.name!r} already; choose another name, or remove that one")
            self._kept[search.name] = _Kept(search=search, trials=tuple(trials))
        self._events.write_change(search, "added", self._events.now())

    def write(self, writes: SearchWrites) -> None:
        """Write all or nothing.

        Raises:
            NotFound: there is no such search (any more).
            Conflict: the position of a decision is taken.
        """
        name = writes.search.name
        with self._lock:
            kept = self._present(name)
            taken = {decision.position for decision in kept.decisions}
            if twice := taken & {decision.position for decision in writes.decisions}:
                raise Conflict(f"the search {name!r} has a decision {min(twice)} already; read the search again")
            trials = {trial.number: trial for trial in (*kept.trials, *writes.trials)}
            self._kept[name] = _Kept(
                search=writes.search,
                trials=tuple(trials[number] for number in sorted(trials)),
                decisions=tuple(sorted((*kept.decisions, *writes.decisions), key=lambda one: one.position)),
                sampler_state=kept.sampler_state if writes.sampler_state is None else writes.sampler_state,
            )
        self._events.write_change(writes.search, "changed", self._events.now())

    def sampler_state(self, name: str) -> str:
        """Return what the sampler continues from; empty if it has not begun, or if there is no such search."""
        return "" if (kept := self._kept.get(name)) is None else kept.sampler_state

    def trials(
        self, name: str, *, after: int = -1, limit: int = 1000, states: Sequence[TrialState] = ()
    ) -> tuple[Trial, ...]:
        """Return trials in the order of their numbers, those in one of the states, or all."""
        found = (trial for trial in self._trials(name) if trial.number > after)
        return tuple(islice((trial for trial in found if not states or trial.state in states), limit))

    def best_trials(self, name: str, *, maximize: bool, limit: int = 10) -> tuple[Trial, ...]:
        """Return completed trials that have jobs and keep all constraints, by their first result, the best first.

        Of equal ones the first by number; NaN is no result.
        """
        completed = [one for one in self._trials(name) if one.state is TrialState.COMPLETED and not one.is_known]
        completed = [one for one in completed if one.is_feasible]
        found = [(trial.results[0], trial) for trial in completed if trial.results and not isnan(trial.results[0])]
        return tuple(trial for _, trial in sorted(found, key=lambda pair: pair[0], reverse=maximize))[:limit]

    def trial(self, name: str, number: int) -> Trial | None:
        """Return a trial, or None if there is none of that number."""
        return next((trial for trial in self._trials(name) if trial.number == number), None)

    def num_trials(self, name: str) -> Mapping[TrialState, int]:
        """Return how many trials are in each state; states that none is in are left out."""
        return dict(Counter(trial.state for trial in self._trials(name)))

    def decisions(self, name: str, *, after: int = 0, limit: int = 1000) -> tuple[Decision, ...]:
        """Return decisions in order of their position."""
        kept = self._kept.get(name)
        found = () if kept is None else kept.decisions
        return tuple(decision for decision in found if decision.position > after)[:limit]

    def remove(self, name: str) -> None:
        """Forget a search with its trials and decisions.

        Raises:
            NotFound: there is none.
        """
        with self._lock:
            self._present(name)
            del self._kept[name]
        self._events.write_removal(Search.KIND, name)

    def _present(self, name: str) -> _Kept:
        if (kept := self._kept.get(name)) is None:
            raise NotFound(f"there is no search {name!r}; list them to see which there are")
        return kept

    def _trials(self, name: str) -> tuple[Trial, ...]:
        return () if (kept := self._kept.get(name)) is None else kept.trials
