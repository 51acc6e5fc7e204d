"""Migrations, on both databases: from every older revision, with rows in every table, and what comes out of them."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import JSON, Boolean, Column, Connection, Engine, Float, Integer, MetaData, String, Table, func, select
from tests.contracts.store import a_job, an_event

from pliant.core.job import JobId, JobSpec
from pliant.core.job_filter import JobFilter
from pliant.core.ports import EventFilter, Writes
from pliant.store.engine import open_engine, read_transaction, write_transaction
from pliant.store.migrate import MIGRATIONS, migrate, revision_of
from pliant.store.rollups import NUM_LEVELS
from pliant.store.sql import SqlStore
from pliant.store.tables import METADATA

REVISIONS = [script.revision for script in reversed(list(ScriptDirectory(str(MIGRATIONS)).walk_revisions()))]
SPEC = {"name": "größe", "script": "train.py", "args": ["--lr", "1", "☃"], "virtual_workers": 8, "env": {"A": "ü'\""}}
FITTING: dict[str, Any] = {
    "jobs.state": "running",
    "jobs.spec": SPEC,
    "jobs.progress": None,
    "jobs.claim": None,
    "jobs.after": ["job-7"],
    "jobs.after_any": [],
    "tasks.state": "lost",
    "tasks.slots": [0, 3],
    "generations.state": "abandoned",
    "generations.members": ["job-1.1"],
    "events.kind": "decision",
    "events.data": {"loss": {"float": "NaN"}, "from": None, "note": "\u2028 and 'quotes'"},
    "events.noun": None,  # these are shown to whoever sees the noun alone
    "events.noun_name": None,
    "events.viewer": None,
    "metric_rollups.level": NUM_LEVELS,
    "metric_rollups.first_step": 1,
    "metric_rollups.last_step": 1,
    "nouns.body": json.dumps({"name": "x", "owner": "ä"}),
    "searches.body": json.dumps({"name": "x", "settings": {"shared_with": ["bob"]}, "best_result": float("nan")}),
}
"""Columns whose values have a meaning; the others take anything of their type."""
NUM_ROWS = 3


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """A database without tables."""
    opened = open_engine(request.getfixturevalue(f"new_{request.param}_url"))
    yield opened
    opened.dispose()


def url_of(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=False)


def populate(connection: Connection) -> dict[str, list[dict[str, Any]]]:
    """Fill every table that there is; return the rows by table."""
    tables = MetaData()
    tables.reflect(connection)
    filled: dict[str, list[dict[str, Any]]] = {}
    for table in tables.sorted_tables:
        if table.name == "alembic_version":
            continue
        rows = [row_of(table, number) for number in range(1, NUM_ROWS + 1)]
        if table.name == "counters":
            rows += [{"name": f"ordinal/{name}", "value": NUM_ROWS} for name in ("jobs", "tasks", "usage")]
            rows += [{"name": f"seq/{name}", "value": NUM_ROWS} for name in ("events", "audit")]
        connection.execute(table.insert(), rows)
        filled[table.name] = rows
    return filled


def row_of(table: Table, number: int) -> dict[str, Any]:
    return {column.name: value_of(table, column, number) for column in table.columns}


def value_of(table: Table, column: Column[Any], number: int) -> Any:
    """Return an awkward value that the column takes; every other one that may be missing is."""
    name = f"{table.name}.{column.name}"
    if name in FITTING:
        return FITTING[name]
    if column.foreign_keys or name in ("jobs.id", "searches.name"):
        return f"job-{number}"
    if column.nullable and number % 2:
        return None
    if isinstance(column.type, JSON):
        return {"nested": [number, None, "☃"]}
    if isinstance(column.type, Float):
        return (1.5e308, -0.1, 5e-324)[number % 3]
    if isinstance(column.type, Boolean):
        return number % 2 == 0
    if isinstance(column.type, Integer):
        return number if column.primary_key or column.name == "ordinal" else (2**31 - 1, 0, 7)[number % 3]
    assert isinstance(column.type, String), column.type
    text = f"{number} größe 'x' \"y\" %s :z \\ \N{SNOWMAN}\n{'ä' * 500}"
    return text[: column.type.length] if column.type.length else text * 10


def rows_of(connection: Connection, table_name: str, columns: list[str]) -> list[dict[str, Any]]:
    table = METADATA.tables[table_name]
    key = [column for column in table.primary_key if column.name in columns]
    query = select(*(table.c[name] for name in columns)).order_by(*key)
    return [dict(row) for row in connection.execute(query).mappings()]


def in_order(rows: list[dict[str, Any]], table_name: str) -> list[str]:
    key = [column.name for column in METADATA.tables[table_name].primary_key]
    ordered = sorted(rows, key=lambda row: [str(row[name]) for name in key])
    return [json.dumps(row, sort_keys=True) for row in ordered]


@pytest.mark.parametrize("revision", REVISIONS[:-1])
def test_a_populated_database_of_every_revision_keeps_every_value(engine: Engine, revision: str) -> None:
    migrate(engine, revision)
    with write_transaction(engine) as connection:
        assert revision_of(connection) == revision
        before = populate(connection)
    migrate(engine)
    with read_transaction(engine) as connection:
        assert revision_of(connection) == REVISIONS[-1]
        for name, rows in before.items():
            after = rows_of(connection, name, list(rows[0]))
            assert in_order(after, name) == in_order(rows, name), name
        assert_same_as_metadata(connection)
    assert_usable(url_of(engine))


def assert_usable(url: str) -> None:
    """The store reads what is there, and numbers go on from it."""
    with closing(SqlStore(url)) as store:
        jobs = store.jobs()
        assert [job.id for job in jobs] == ["job-3", "job-2", "job-1"]
        spec = JobSpec(name="größe", script="train.py", args=("--lr", "1", "☃"), virtual_workers=8, env={"A": "ü'\""})
        assert [job.spec for job in jobs] == [spec] * NUM_ROWS
        assert len(store.tasks()) == len(store.events(EventFilter())) == NUM_ROWS
        assert len(store.generations(JobId("job-1"))) == len(store.metrics(JobId("job-1"))) == 1
        (series,) = store.chart(JobId("job-1"))
        assert sum(bucket.num_points for bucket in series.buckets) == 1
        (written,) = store.write(Writes(jobs=(a_job("job-9"),), events=(an_event("after"),)))
        assert written.seq == NUM_ROWS + 1
        assert store.jobs()[0] == a_job("job-9")


def assert_same_as_metadata(connection: Connection) -> None:
    context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
    assert compare_metadata(context, METADATA) == []


def test_migrations_make_exactly_the_tables_of_the_metadata(engine: Engine) -> None:
    migrate(engine)
    with read_transaction(engine) as connection:
        assert_same_as_metadata(connection)
        assert connection.execute(select(func.count()).select_from(METADATA.tables["jobs"])).scalar_one() == 0


def test_trials_of_before_are_found_by_their_search(engine: Engine) -> None:
    migrate(engine, "0011")
    trial = {"search": "größe", "number": 4, "values": {"lr": 0.1}, "pass_as": ["config"]}
    with write_transaction(engine) as connection:
        populate(connection)
        found = MetaData()
        found.reflect(connection, only=["jobs"])
        jobs = found.tables["jobs"]
        connection.execute(jobs.update().where(jobs.c.id == "job-2").values(spec={**SPEC, "trial": trial}))
        connection.execute(jobs.update().where(jobs.c.id == "job-3").values(spec={**SPEC, "trial": None}))
    migrate(engine)
    with closing(SqlStore(url_of(engine))) as store:
        assert [job.id for job in store.jobs(JobFilter(searches=("größe",)))] == ["job-2"]
        assert [job.id for job in store.jobs(JobFilter(without_trials=True))] == ["job-3", "job-1"]


def test_slots_of_before_are_summed_by_hour_and_trials_and_versions_share_a_colour(engine: Engine) -> None:
    migrate(engine, "0012")
    endpoint = {"name": "größe", "version": 1, "runner": "python", "profile": {}}
    with write_transaction(engine) as connection:
        populate(connection)
        found = MetaData()
        found.reflect(connection, only=["jobs", "usage"])
        jobs, usage = found.tables["jobs"], found.tables["usage"]
        connection.execute(jobs.update().values(search=None))
        connection.execute(jobs.update().where(jobs.c.id != "job-1").values(spec={**SPEC, "endpoint": endpoint}))
        connection.execute(usage.delete())
        steps = [(10.0, 4), (3000.0, 2), (3700.0, 0), (1.5e308, 9)]
        rows = [{"ordinal": n, "job_id": "job-1", "at": at, "num_slots": num} for n, (at, num) in enumerate(steps, 1)]
        connection.execute(usage.insert(), rows)
    migrate(engine)
    with closing(SqlStore(url_of(engine))) as store:
        assert [job.colour for job in store.jobs()] == [2, 2, 1]
        assert [job.id for job in store.jobs(JobFilter(endpoints=("größe",)))] == ["job-3", "job-2"]
        records = store.slot_history(0.0, 7200.0, max_steps=0, by_hour=True)
        assert records is not None
        assert list(records.hours) == [(0, "job-1", 2, 4 * 3590.0 - 2 * 600.0), (1, "job-1", -2, -2 * 3500.0)]


def test_jobs_of_before_are_found_by_their_kind_and_by_their_text(engine: Engine) -> None:
    migrate(engine, "0012")
    trial = {"search": "x", "number": 4, "values": {"lr": 0.1}, "pass_as": ["config"]}
    with write_transaction(engine) as connection:
        populate(connection)
        found = MetaData()
        found.reflect(connection, only=["jobs"])
        jobs = found.tables["jobs"]
        for number, search, spec in (
            (1, None, {**SPEC, "fixed": False}),
            (2, None, {**SPEC, "fixed": True, "trial": None, "endpoint": None}),
            (3, "x", {**SPEC, "trial": trial}),
        ):
            values = {"spec": spec, "search": search, "name": f"GRÖSSE-{number}%", "owner": "Ann"}
            connection.execute(jobs.update().where(jobs.c.id == f"job-{number}").values(**values))
        connection.execute(jobs.update().where(jobs.c.id == "job-1").values(tags={"lr": "0.1"}))
    migrate(engine)
    with closing(SqlStore(url_of(engine))) as store:

        def ids(**asked: Any) -> list[str]:
            return [job.id for job in store.jobs(JobFilter(**asked))]

        assert ids(kinds=("training",)) == ["job-1"]
        assert ids(kinds=("fixed", "trial")) == ["job-3", "job-2"]
        assert (ids(text="größe-3%"), ids(text="LR=0.1"), ids(text="ann", kinds=("endpoint",))) == (
            ["job-3"],
            ["job-1"],
            [],
        )


def test_an_upgrade_that_fails_half_way_leaves_the_tables_as_they_were(engine: Engine) -> None:
    migrate(engine, "0001")
    with write_transaction(engine) as connection:
        before = populate(connection)
        connection.exec_driver_sql("CREATE TABLE audit (something_else INTEGER)")
    with pytest.raises(Exception, match="already exists"):
        migrate(engine)
    with read_transaction(engine) as connection:
        assert revision_of(connection) == "0001"
        found = MetaData()
        found.reflect(connection)
        assert set(found.tables) == {*before, "audit", "alembic_version"}
        assert "claim" not in found.tables["jobs"].columns
