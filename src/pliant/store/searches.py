"""Searches, their trials and decisions in a SQL database. Knows no search in particular, and decides nothing.

What a sampler continues from lies in the row of its search, and is read only when it is asked for.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from sqlalchemy import CompoundSelect, Connection, Engine, RowMapping, Select, delete, func, select, union_all, update

from pliant.core.errors import Conflict, NotFound
from pliant.core.search import Decision, Search, SearchState, SearchWrites, Trial, TrialState
from pliant.store.engine import bytewise, insert_new, read_transaction, upsert
from pliant.store.noun_events import NounEvents, write_change, write_removal
from pliant.store.registry import WriteTransaction
from pliant.store.search_rows import decision_of, decision_row, search_of, search_row, trial_of, trial_row
from pliant.store.tables import SEARCH_DECISIONS, SEARCHES, TRIALS

T = TypeVar("T")

_SEARCH: Final = select(SEARCHES.c.body)
_TRIAL: Final = select(TRIALS.c.body)


class SqlSearches:
    """The `Searches` of a SQL database."""

    def __init__(self, engine: Engine, write_transaction: WriteTransaction, events: NounEvents) -> None:
        self._engine = engine
        self._write_transaction = write_transaction
        self._events = events

    def search(self, name: str) -> Search | None:
        """Return a search, or None if there is none of that name."""
        return _first(self._read(_SEARCH.where(SEARCHES.c.name == name), search_of))

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
        name = bytewise(self._engine, SEARCHES.c.name)
        query = _SEARCH.where(name > after).order_by(name).limit(limit)
        if states:
            query = query.where(SEARCHES.c.state.in_([state.value for state in states]))
        if part:
            query = query.where(SEARCHES.c.name.icontains(part, autoescape=True))
        return self._read(query if owner is None else query.where(SEARCHES.c.owner == owner), search_of)

    def add(self, search: Search, trials: Sequence[Trial] = ()) -> None:
        """Keep a new search with the trials that it begins with.

        Raises:
            Conflict: the name is taken, or differs from another one only by capital letters.
        """
        with self._write_transaction() as connection:
            _refuse_twin(connection, search.name)
            if not insert_new(connection, SEARCHES, search_row(search)):
                raise Conflict(f"there is a search {search.name!r} already; choose another name, or remove that one")
            upsert(connection, TRIALS, [trial_row(trial) for trial in trials])
            write_change(connection, search, "added", self._events.now())
        self._events.notify(search.KIND)

    def write(self, writes: SearchWrites) -> None:
        """Write all or nothing.

        Raises:
            NotFound: there is no such search (any more).
            Conflict: the position of a decision is taken.
        """
        row = search_row(writes.search)
        if writes.sampler_state is not None:
            row["sampler_state"] = writes.sampler_state
        with self._write_transaction() as connection:
            found = connection.execute(update(SEARCHES).where(SEARCHES.c.name == writes.search.name).values(row))
            if not found.rowcount:
                raise _missing(writes.search.name)
            upsert(connection, TRIALS, [trial_row(trial) for trial in writes.trials])
            _append(connection, writes.decisions)
            write_change(connection, writes.search, "changed", self._events.now())
        self._events.notify(writes.search.KIND)

    def sampler_state(self, name: str) -> str:
        """Return what the sampler continues from; empty if it has not begun, or if there is no such search."""
        query = select(SEARCHES.c.sampler_state).where(SEARCHES.c.name == name)
        return _first(self._read(query, lambda row: str(row["sampler_state"]))) or ""

    def trials(
        self, name: str, *, after: int = -1, limit: int = 1000, states: Sequence[TrialState] = ()
    ) -> tuple[Trial, ...]:
        """Return trials in the order of their numbers, those in one of the states, or all."""
        number = TRIALS.c.number
        page = _TRIAL.where(TRIALS.c.search == name, number > after).order_by(number).limit(limit)
        if states:
            page = page.where(number.in_(_numbers(name, after, limit, states)))
        return self._read(page, trial_of)

    def best_trials(self, name: str, *, maximize: bool, limit: int = 10) -> tuple[Trial, ...]:
        """Return completed trials that have jobs and keep all constraints, by their first result, the best first.

        Of equal ones the first by number; NaN is no result.
        """
        result, completed = TRIALS.c.result, TRIALS.c.state == TrialState.COMPLETED.value
        of_jobs = (TRIALS.c.search == name, completed, result.is_not(None), TRIALS.c.job_id != "")
        order = result.desc() if maximize else result.asc()
        return self._read(_TRIAL.where(*of_jobs).order_by(order, TRIALS.c.number).limit(limit), trial_of)

    def trial(self, name: str, number: int) -> Trial | None:
        """Return a trial, or None if there is none of that number."""
        return _first(self._read(_TRIAL.where(TRIALS.c.search == name, TRIALS.c.number == number), trial_of))

    def num_trials(self, name: str) -> Mapping[TrialState, int]:
        """Return how many trials are in each state; states that none is in are left out."""
        query = select(TRIALS.c.state, func.count()).where(TRIALS.c.search == name).group_by(TRIALS.c.state)
        with read_transaction(self._engine) as connection:
            return {TrialState(state): number for state, number in connection.execute(query)}

    def decisions(self, name: str, *, after: int = 0, limit: int = 1000) -> tuple[Decision, ...]:
        """Return decisions in order of their position."""
        position = SEARCH_DECISIONS.c.position
        query = select(SEARCH_DECISIONS).where(SEARCH_DECISIONS.c.search == name, position > after)
        return self._read(query.order_by(position).limit(limit), decision_of)

    def remove(self, name: str) -> None:
        """Forget a search with its trials and decisions.

        Raises:
            NotFound: there is none.
        """
        with self._write_transaction() as connection:
            for table in (SEARCH_DECISIONS, TRIALS):
                connection.execute(delete(table).where(table.c.search == name))
            if not connection.execute(delete(SEARCHES).where(SEARCHES.c.name == name)).rowcount:
                raise _missing(name)
            write_removal(connection, Search.KIND, name, self._events.now())
        self._events.notify(Search.KIND)

    def _read(self, query: Select[Any], noun_of: Callable[[RowMapping], T]) -> tuple[T, ...]:
        with read_transaction(self._engine) as connection:
            rows = connection.execute(query).mappings().all()
        return tuple(map(noun_of, rows))


def _first(found: Sequence[T]) -> T | None:
    return found[0] if found else None


def _numbers(name: str, after: int, limit: int, states: Iterable[TrialState]) -> CompoundSelect[int]:
    """Ask for the next numbers of trials in each of some states.

    An index has the trials of each state in order; if they are asked for together, SQLite reads those in all states.
    """
    number = TRIALS.c.number
    page = select(number).where(TRIALS.c.search == name, number > after).order_by(number).limit(limit)
    pages = [page.where(TRIALS.c.state == state.value).subquery() for state in frozenset(states)]
    return union_all(*(select(page.c.number) for page in pages))


def _refuse_twin(connection: Connection, name: str) -> None:
    """Refuse a name that differs from another one only by capital letters."""
    alike = (func.lower(SEARCHES.c.name) == name.lower(), SEARCHES.c.name != name)
    twin = connection.execute(select(SEARCHES.c.name).where(*alike).limit(1)).scalar()
    if twin is not None:
        raise Conflict(
            f"there is a search {twin!r}, whose name differs from {name!r} only by capital letters, and people would "
            f"take one for the other; choose another name"
        )


def _append(connection: Connection, decisions: Sequence[Decision]) -> None:
    """Write decisions.

    Raises:
        Conflict: the position of one is taken; somebody else goes on with the same search.
    """
    for decision in decisions:
        if not insert_new(connection, SEARCH_DECISIONS, decision_row(decision)):
            raise Conflict(
                f"the search {decision.search!r} has a decision {decision.position} already; nothing was written: "
                f"read the search again"
            )


def _missing(name: str) -> NotFound:
    return NotFound(f"there is no search {name!r}; list them to see which there are")
