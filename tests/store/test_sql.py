"""The SQL store on SQLite: the contract, its durability, its migrations and its indexes."""

import json
import logging
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import make_url
from tests.contracts.store import StoreContract, a_job, a_metric, an_event
from tests.contracts.store_deletion import DeletionContract
from tests.contracts.store_filters import FilterContract
from tests.contracts.store_histograms import HistogramContract
from tests.contracts.store_noun_events import NounEventsContract
from tests.contracts.store_series import SeriesContract
from tests.contracts.store_slots import SlotsContract
from tests.contracts.store_writes import DurabilityContract, WritesContract
from tests.databases import new_sqlite

from pliant.core.access import VisibleJobs
from pliant.core.errors import Conflict, InvalidInput, Unavailable
from pliant.core.event import EventKind
from pliant.core.job import JobId, JobSpec
from pliant.core.job_filter import JobFilter, JobOrder
from pliant.core.lifecycle import JobState
from pliant.core.ports import EventFilter, Store, Writes
from pliant.store import queries
from pliant.store.engine import open_engine, read_transaction
from pliant.store.migrate import MIGRATIONS, migrate
from pliant.store.sql import SqlStore
from pliant.store.tables import METADATA

_SQLITE = make_url("sqlite://").get_dialect()()
_POSTGRESQL = make_url("postgresql+psycopg://").get_dialect()()
RUNNING = JobFilter(states=(JobState.RUNNING,))
TAGGED = JobFilter(tags={"lr": ("0.1", "0.01"), "best": ()})
SIGHT = VisibleJobs(owner="ann", shared=frozenset({JobId("job-1"), JobId("job-3")}))


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/pliant.db"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = SqlStore(new_sqlite(tmp_path))
    yield opened
    opened.close()


@pytest.fixture
def open_store_source(url: str) -> str:
    return f"from pliant.store.sql import SqlStore\nstore = SqlStore({url!r})"


class TestSqlite(
    StoreContract,
    SeriesContract,
    HistogramContract,
    SlotsContract,
    FilterContract,
    DeletionContract,
    WritesContract,
    DurabilityContract,
    NounEventsContract,
):
    """SQLite keeps the contract."""


def test_what_was_written_is_there_after_closing_and_opening_again(url: str) -> None:
    first = SqlStore(url)
    first.write(Writes(jobs=(a_job(),), events=(an_event("before"),)))
    number = first.next_id("job")
    first.close()
    second = SqlStore(url)
    assert second.job(JobId("job-1")) == a_job()
    assert [event.seq for event in second.write(Writes(events=(an_event("after"),)))] == [2]
    assert second.next_id("job") == number + 1
    second.close()


def test_two_stores_on_one_file_share_the_numbers(url: str) -> None:
    one, two = SqlStore(url), SqlStore(url)
    seqs = [store.write(Writes(events=(an_event("x"),)))[0].seq for store in (one, two, two, one)]
    assert seqs == [1, 2, 3, 4]
    assert (one.next_id("job"), two.next_id("job")) == (1, 2)
    one.close()
    two.close()


def test_migrations_make_exactly_the_tables_of_the_metadata(url: str) -> None:
    engine = open_engine(url)
    migrate(engine)
    with read_transaction(engine) as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, METADATA) == []
    engine.dispose()


def test_migrating_twice_changes_nothing(url: str) -> None:
    SqlStore(url).close()
    store = SqlStore(url)
    assert store.last_seq() == 0
    store.close()


def test_migrations_leave_logging_alone(url: str) -> None:
    root = logging.getLogger()
    before = (root.level, list(root.handlers), logging.getLogger("sqlalchemy.engine").level)
    SqlStore(url).close()
    assert (root.level, list(root.handlers), logging.getLogger("sqlalchemy.engine").level) == before


def test_a_database_of_a_newer_pliant_is_refused_and_left_as_it_was(url: str, tmp_path: Path) -> None:
    SqlStore(url).close()
    _execute(tmp_path / "pliant.db", "UPDATE alembic_version SET version_num = 'f00d'")
    with pytest.raises(Conflict, match=r"revision 'f00d'.*upgrade Pliant"):
        SqlStore(url)
    assert _execute(tmp_path / "pliant.db", "SELECT version_num FROM alembic_version") == [("f00d",)]


def test_an_upgrade_that_fails_leaves_the_database_as_it_was(url: str, tmp_path: Path) -> None:
    _execute(tmp_path / "pliant.db", "CREATE TABLE usage (something_else INTEGER)")
    with pytest.raises(Unavailable, match="already exists"):
        SqlStore(url)
    names = _execute(tmp_path / "pliant.db", "SELECT name FROM sqlite_master WHERE type = 'table'")
    assert names == [("usage",)]


_OLD_SPEC = {"name": "old", "script": "train.py", "args": ["--lr", "1"], "virtual_workers": 8, "env": {}}


def test_a_database_of_before_keeps_its_jobs_and_gets_the_new_columns(url: str, tmp_path: Path) -> None:
    engine = open_engine(url)
    migrate(engine, "0001")
    engine.dispose()
    columns = "id, ordinal, name, queue, owner, state, priority, min_tasks, max_tasks, submitted_at, num_slots, "
    columns += "generation, reason, why, num_redone_steps, revision, spec"
    for number in (1, 2):
        values = f"'job-{number}', {number}, 'old', 'default', 'ann', 'running', 5000, 1, 8, 9.5, 0, 3, '', '', 1, 7"
        _execute(tmp_path / "pliant.db", f"INSERT INTO jobs ({columns}) VALUES ({values}, '{json.dumps(_OLD_SPEC)}')")
    _execute(tmp_path / "pliant.db", "INSERT INTO counters VALUES ('ordinal/jobs', 2)")
    store = SqlStore(url)
    newest, oldest = store.jobs()
    assert (oldest.after, oldest.spec.after_any, oldest.spec.array) == ((), (), None)
    assert (newest.id, oldest.id, oldest.num_redone_steps, oldest.revision) == ("job-2", "job-1", 1, 7)
    assert oldest.spec == JobSpec(name="old", script="train.py", args=("--lr", "1"), virtual_workers=8)
    assert (oldest.claim, oldest.claim_step, oldest.claim_reason, oldest.digest) == (None, 0, "", "")
    changed = replace(oldest, claim="exact", fingerprint="torch", digest="ab" * 32, num_restarts=1)
    store.write(Writes(jobs=(changed, a_job("job-3"))))
    assert store.jobs() == (a_job("job-3"), newest, changed)
    store.close()


def test_the_migrations_lie_inside_the_package() -> None:
    assert (MIGRATIONS / "env.py").is_file()
    assert sorted(MIGRATIONS.glob("versions/*.py"))


@pytest.mark.parametrize("bad", ["not a url", "mysql://host/db", "sqlite://", "sqlite:///:memory:", "oops://x"])
def test_a_url_that_names_no_usable_database_is_refused(bad: str) -> None:
    with pytest.raises(InvalidInput, match="url: "):
        SqlStore(bad)


def test_a_folder_that_does_not_exist_is_told_with_the_url(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"no-such-folder/pliant\.db does not answer"):
        SqlStore(f"sqlite:///{tmp_path}/no-such-folder/pliant.db")


def test_a_file_that_is_no_database_is_told_with_the_url(tmp_path: Path) -> None:
    (tmp_path / "pliant.db").write_text("these are not the tables that you are looking for" * 100)
    with pytest.raises(Unavailable, match="not a database"):
        SqlStore(f"sqlite:///{tmp_path}/pliant.db")


@pytest.mark.parametrize(
    "query",
    [
        queries.job(JobId("job-1")),
        queries.jobs(),
        queries.jobs(before=JobId("job-1")),
        queries.jobs(RUNNING),
        queries.jobs(JobFilter(owners=("ann", "bob"))),
        queries.jobs(JobFilter(queues=("night",))),
        queries.jobs(JobFilter(searches=("digits",))),
        queries.jobs(JobFilter(searches=("digits",), states=RUNNING.states)),
        queries.jobs(JobFilter(without_trials=True)),
        queries.jobs(TAGGED),
        queries.jobs(TAGGED, JobId("job-1"), 100, SIGHT),
        queries.deleted_job(JobId("job-1")),
        queries.deleted_jobs(),
        queries.array_jobs("array-1"),
        queries.tasks(JobId("job-1"), False),
        queries.tasks(None, True),
        queries.generations(JobId("job-1")),
        queries.events(EventFilter(after=9000)),
        queries.events(EventFilter(job_id=JobId("job-1"))),
        queries.events(EventFilter(kinds=(EventKind.DECISION,))),
        queries.events(EventFilter(job_id=JobId("job-1"), kinds=(EventKind.DECISION,))),
        queries.events(EventFilter(newest=True)),
        queries.events(EventFilter(newest=True, before=1000, kinds=(EventKind.DECISION,))),
        queries.count_events(EventFilter(since=1.0, until=2.0)),
        queries.jobs(JobFilter(endpoints=("digits",))),
        queries.last_seq(),
        queries.metrics(JobId("job-1"), (), 5, 100),
        queries.metrics(JobId("job-1"), ("loss",), 5, 100),
        queries.usage(5.0, None),
        queries.usage(5.0, JobId("job-1")),
        queries.ordered_jobs(RUNNING, JobOrder(by="name"), 50, 10, None),
        queries.ordered_jobs(JobFilter(kinds=("trial",)), JobOrder(by="ended", descending=False), 0, 10, SIGHT),
        queries.ordered_jobs(JobFilter(), JobOrder(by="slots"), 0, 10, SIGHT),
        queries.num_jobs(JobFilter(), None),
        queries.jobs(visible=SIGHT),
        queries.jobs(RUNNING, JobId("job-1"), 100, SIGHT),
        queries.events(EventFilter(after=9000, visible=SIGHT)),
        queries.events(EventFilter(after=9000, visible=VisibleJobs(owner="ann"))),
        queries.usage(5.0, None, SIGHT),
    ],
    ids=lambda query: " ".join(str(query).split("WHERE")[-1].split())[:60],
)
def test_every_question_is_answered_from_an_index(filled: Path, query: queries.Query) -> None:
    compiled = query.compile(dialect=_SQLITE, compile_kwargs={"literal_binds": True})
    plan = [row[3] for row in _execute(filled, f"EXPLAIN QUERY PLAN {compiled}")]
    scans = [step for step in plan if step.startswith("SCAN") and not step.startswith(("SCAN anon_", "SCAN json_each"))]
    assert not [step for step in scans if "USING" not in step], plan
    if "FROM events" in str(compiled) or "FROM metrics" in str(compiled):
        assert not [step for step in plan if "TEMP B-TREE" in step], plan


def test_postgresql_understands_every_statement() -> None:
    some = (queries.jobs(RUNNING, JobId("job-1"), 5), queries.usage(1.0, None))
    events = queries.events(EventFilter(visible=SIGHT))
    for query in (
        *some,
        events,
        queries.jobs(TAGGED, visible=SIGHT),
        queries.deleted_jobs(),
        queries.ordered_jobs(TAGGED, JobOrder(by="owner"), 5, 10, SIGHT),
        queries.num_jobs(JobFilter(text="x"), SIGHT),
        queries.jobs(visible=SIGHT),
        queries.usage(1.0, None, SIGHT),
    ):
        assert str(query.compile(dialect=_POSTGRESQL))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with 2,000 events and 20,000 points, analysed."""
    file = tmp_path_factory.mktemp("filled") / "pliant.db"
    store = SqlStore(f"sqlite:///{file}")
    jobs = tuple(a_job(f"job-{number}") for number in range(1, 21))
    kinds = tuple(EventKind)
    store.write(Writes(jobs=jobs))
    for job in jobs:
        events = tuple(an_event("x", job_id=job.id, kind=kinds[n % len(kinds)]) for n in range(100))
        points = tuple(a_metric(n // 2, ("loss", "accuracy")[n % 2], job_id=job.id) for n in range(1000))
        store.write(Writes(events=events, metrics=points))
    assert store.last_seq() == 2000
    assert len(store.metrics(JobId("job-7"), after_step=400)) == 198
    store.close()
    _execute(file, "ANALYZE")
    return file


def _execute(file: Path, statement: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(file)
    try:
        with connection:
            return connection.execute(statement).fetchall()
    finally:
        connection.close()
