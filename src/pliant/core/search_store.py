"""What remembers searches, as a protocol (`Searches`); `store` has the adapter over SQL, `sim` one in memory."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from pliant.core.search import Decision, Search, SearchState, SearchWrites, Trial, TrialState


class Searches(Protocol):
    """Remembers searches, in the same place as the store. Safe to call from any thread; a call is one transaction."""

    def search(self, name: str) -> Search | None: ...

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
        ...

    def add(self, search: Search, trials: Sequence[Trial] = ()) -> None:
        """Keep a new search with the trials that it begins with; all or nothing.

        Raises:
            Conflict: the name is taken, or differs from another one only by capital letters.
        """
        ...

    def write(self, writes: SearchWrites) -> None:
        """Write all or nothing.

        Raises:
            NotFound: there is no such search (any more).
        """
        ...

    def sampler_state(self, name: str) -> str:
        """Return what the sampler continues from; empty if it has not begun."""
        ...

    def trials(
        self, name: str, *, after: int = -1, limit: int = 1000, states: Sequence[TrialState] = ()
    ) -> tuple[Trial, ...]:
        """Return trials in the order of their numbers, those in one of the states, or all."""
        ...

    def best_trials(self, name: str, *, maximize: bool, limit: int = 10) -> tuple[Trial, ...]:
        """Return completed trials that have jobs and keep all constraints, by their first result, the best first.

        Of equal ones the first by number; NaN is no result.
        """
        ...

    def trial(self, name: str, number: int) -> Trial | None: ...

    def num_trials(self, name: str) -> Mapping[TrialState, int]:
        """Return how many trials are in each state; states that none is in are left out."""
        ...

    def decisions(self, name: str, *, after: int = 0, limit: int = 1000) -> tuple[Decision, ...]:
        """Return decisions in order of their position."""
        ...

    def remove(self, name: str) -> None:
        """Forget a search with its trials and decisions.

        Raises:
            NotFound: there is none.
        """
        ...
