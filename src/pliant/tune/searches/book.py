"""Searches in memory, in front of the store: a step is written first, then remembered, then acted on by others.

Whoever decides something about a search holds the lock from the moment when it looks to the moment when that is
written. Invariant: memory never runs ahead of the store.
"""

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pliant.core.errors import NotFound
from pliant.core.search import Search, SearchState, SearchWrites, Trial
from pliant.core.search_store import Searches
from pliant.policy.tuning.advance import SearchStep
from pliant.policy.tuning.rankings import Rankings

_PAGE: Final = 500


@dataclass(slots=True, kw_only=True)
class OpenSearch:
    """A search and all its trials, as they stand."""

    search: Search
    trials: list[Trial]
    """By number."""
    rankings: Rankings = field(default_factory=Rankings)
    """Of its rungs."""


class SearchBook:
    """All searches. Safe to call from any thread."""

    def __init__(self, searches: Searches, changed: Callable[[Search], None]) -> None:
        self.lock = threading.RLock()
        self._searches = searches
        self._changed = changed
        self._open: dict[str, OpenSearch] = {}
        self._running: set[str] | None = None
        """The names of those that run; None before the store was asked."""
        self._taken_up: set[str] = set()
        """The names of those that have begun here, or were gone on with."""

    def find(self, name: str) -> OpenSearch | None:
        """Return a search with its trials; None if there is none."""
        with self.lock:
            if name not in self._open:
                search = self._searches.search(name)
                if search is None:
                    return None
                self._open[name] = OpenSearch(search=search, trials=[*self._read_trials(name)])
            return self._open[name]

    def require(self, name: str) -> OpenSearch:
        """Return a search with its trials.

        Raises:
            NotFound: there is none.
        """
        found = self.find(name)
        if found is None:
            raise NotFound(f"there is no search {name!r:.80}; list them to see which there are")
        return found

    def all(self, after: str = "", states: Sequence[SearchState] = (), part: str = "") -> Iterator[Search]:
        """Yield searches in the order of their names, those behind a name: in one of the states, or all.

        With `part` only those whose names hold it, whatever its capitals.
        """
        while page := self._searches.searches(after=after, limit=_PAGE, states=states, part=part):
            yield from page
            if len(page) < _PAGE:
                return
            after = page[-1].name

    def running(self) -> list[str]:
        """Return the names of those that run; the store is asked once."""
        with self.lock:
            if self._running is None:
                self._running = {search.name for search in self.all(states=(SearchState.RUNNING,))}
            return sorted(self._running)

    def unended(self) -> list[str]:
        """Return the names of those that run, or were stopped and may be resumed."""
        return [search.name for search in self.all(states=(SearchState.RUNNING, SearchState.STOPPED))]

    def add(self, search: Search, trials: Sequence[Trial] = ()) -> None:
        """Keep a new search with the trials that it begins with.

        Raises:
            Conflict: the name is taken.
        """
        with self.lock:
            self._searches.add(search, trials)
            self._open[search.name] = OpenSearch(search=search, trials=[*trials])
            self._taken_up.add(search.name)
            self._note(search)
        self._changed(search)

    def begin(self, found: OpenSearch, now: float) -> SearchStep:
        """Return a step of a search, to be changed and committed while the lock is held."""
        return SearchStep(search=found.search, trials=[*found.trials], now=now, rankings=found.rankings)

    def commit(self, step: SearchStep, sampler_state: str | None = None) -> bool:
        """Write what was decided; tell whether that was anything.

        Raises:
            NotFound: the search was removed meanwhile.
            Unavailable: the store does not answer; nothing has changed.
        """
        found = self.require(step.search.name)
        if step.search == found.search and not step.changed and sampler_state is None:
            return False
        search = replace(step.search, revision=found.search.revision + 1)
        self._searches.write(
            SearchWrites(
                search=search,
                trials=step.changed_trials,
                decisions=tuple(step.decisions),
                sampler_state=sampler_state,
            )
        )
        found.search, found.trials = search, step.trials
        self._note(search)
        self._changed(search)
        return True

    def remove(self, name: str) -> None:
        """Forget a search with its trials.

        Raises:
            NotFound: there is none.
        """
        with self.lock:
            self._searches.remove(name)
            self._open.pop(name, None)
            self._taken_up.discard(name)
            if self._running is not None:
                self._running.discard(name)

    def keep_open(self, names: Collection[str]) -> None:
        """Keep no others in memory, until somebody asks for them."""
        with self.lock:
            self._open = {name: found for name, found in self._open.items() if name in names}

    def take_up(self, name: str) -> None:
        """Note that a search, which may have begun under another server, is gone on with here."""
        self._taken_up.add(name)

    def is_taken_up(self, name: str) -> bool:
        """Tell whether a search began here, or is gone on with."""
        return name in self._taken_up

    def sampler_state(self, name: str) -> str:
        """Return what the sampler of a search continues from."""
        return self._searches.sampler_state(name)

    def _note(self, search: Search) -> None:
        """Note whether a search runs."""
        if self._running is not None:
            (self._running.add if search.state is SearchState.RUNNING else self._running.discard)(search.name)

    def _read_trials(self, name: str) -> Iterator[Trial]:
        after = -1
        while page := self._searches.trials(name, after=after, limit=_PAGE):
            yield from page
            after = page[-1].number
