"""Searches in SQL: the contract on both databases, and what is special to them."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from tests.contracts.searches import SearchesContract, a_decision, a_search, a_trial, completed, write
from tests.databases import new_sqlite

from pliant.core.errors import Conflict, Deposed
from pliant.core.search import TrialState
from pliant.core.search_store import Searches
from pliant.store.engine import read_transaction
from pliant.store.leadership import Leadership
from pliant.store.sql import SqlStore
from pliant.store.tables import METADATA


@pytest.fixture
def searches(store: SqlStore) -> Searches:
    return store.searches


class TestSqliteSearches(SearchesContract):
    """SQLite keeps the contract."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[SqlStore]:
        with closing(SqlStore(new_sqlite(tmp_path))) as store:
            yield store


class TestPostgresSearches(SearchesContract):
    """PostgreSQL keeps the contract."""

    @pytest.fixture
    def store(self, postgres_url: str) -> Iterator[SqlStore]:
        with closing(SqlStore(postgres_url)) as store:
            yield store


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> Iterator[SqlStore]:
    kind = {"sqlite": "sqlite_url", "postgresql": "postgres_url"}[request.param]
    with closing(SqlStore(request.getfixturevalue(kind))) as store:
        yield store


def test_lists_of_a_sampler_are_tuples_when_they_are_read(searches: Searches) -> None:
    searches.add(a_search())
    write(searches, a_trial(attributes={"grid": [1, [True, {"x": [1.0]}]]}))
    assert searches.trials("one") == (a_trial(attributes={"grid": (1, (True, {"x": (1.0,)}))}),)


def test_text_loses_only_what_no_database_holds(searches: Searches) -> None:
    searches.add(a_search())
    reason = "a\x00b \ud800 größe \u2028 \N{SNOWMAN}"
    write(searches, a_trial(reason=reason, attributes={"\x00": "\ud800"}))
    trial = searches.trial("one", 0)
    assert trial == a_trial(reason=reason.replace("\ud800", "?"), attributes={"\x00": "?"})


def test_a_search_goes_on_in_another_process(store: SqlStore) -> None:
    store.searches.add(a_search())
    write(store.searches, completed(0, 0.5), state="1", decisions=[a_decision(1, 0)])
    with closing(SqlStore(url_of(store))) as again:
        write(again.searches, a_trial(1), decisions=[a_decision(2, 1)])
    assert store.searches.trials("one") == (completed(0, 0.5), a_trial(1))
    with pytest.raises(Conflict, match="read the search again"):
        write(store.searches, a_trial(9), decisions=[a_decision(2)])
    assert store.searches.trial("one", 9) is None


def test_a_server_that_was_deposed_writes_nothing(postgres_url: str) -> None:
    first, second = Leadership(postgres_url), Leadership(postgres_url)
    with closing(first), closing(second):
        assert first.take()
        with closing(SqlStore(postgres_url, term=first.term)) as old:
            old.searches.add(a_search())
            first.close()
            assert second.take()
            with pytest.raises(Deposed):
                old.searches.add(a_search("two"))
            with pytest.raises(Deposed):
                write(old.searches, a_trial(), decisions=[a_decision(1)])
            with pytest.raises(Deposed):
                old.searches.remove("one")
            assert [search.name for search in old.searches.searches()] == ["one"]
            assert (old.searches.trials("one"), old.searches.decisions("one")) == ((), ())


@pytest.mark.parametrize(
    ("ask", "index"),
    [
        (lambda searches: searches.trials("one", after=3), "sqlite_autoindex_trials_1"),
        (lambda searches: searches.trials("one", after=3, states=[TrialState.PAUSED]), "search_state_number"),
        (
            lambda searches: searches.trials("one", states=[TrialState.PAUSED, TrialState.RUNNING]),
            "search_state_number",
        ),
        (lambda searches: searches.best_trials("one", maximize=True), "search_state_result"),
        (lambda searches: searches.best_trials("one", maximize=False), "search_state_result"),
        (lambda searches: searches.num_trials("one"), "COVERING INDEX ix_trials_search_state"),
        (lambda searches: searches.decisions("one", after=3), "sqlite_autoindex_search_decisions_1"),
        (lambda searches: searches.searches(owner="ada"), "ix_searches_owner_name"),
    ],
)
def test_every_question_is_answered_from_an_index(
    tmp_path: Path, ask: Callable[[Searches], object], index: str
) -> None:
    with closing(SqlStore(new_sqlite(tmp_path))) as store:
        asked: list[tuple[str, Any]] = []
        event.listen(store._engine, "before_cursor_execute", lambda *of: asked.append((of[2], of[3])))
        ask(store.searches)
        (statement, parameters) = asked[-1]
        with read_transaction(store._engine) as connection:
            plan = [row[-1] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]
    assert index in " ".join(plan)
    assert not [step for step in plan if step.startswith("SCAN") and step.split()[1] in METADATA.tables]


def url_of(store: SqlStore) -> str:
    return store._engine.url.render_as_string(hide_password=False)
