"""Databases of a test's own: in SQLite, and on the PostgreSQL server that PLIANT_TEST_POSTGRES names.

CONTRIBUTING says how to get one.

Where no server answers the tests that need one are skipped, with the reason; they fail where one was named, and in CI.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, LiteralString

import psycopg
import pytest
from psycopg import sql

from pliant.store.sql import SqlStore
from pliant.store.tables import METADATA

VARIABLE: Final = "PLIANT_TEST_POSTGRES"
DEFAULT: Final = "postgresql://postgres@127.0.0.1:5432/postgres"
_ADVICE: Final = (
    f"no PostgreSQL answers at {{url}} ({{error}}); start one (`.ci/postgres` does) or name one in {VARIABLE}, as "
    f"{DEFAULT}"
)


def new_sqlite(folder: Path) -> str:
    """Make a SQLite database with all tables and no rows in a folder that has none; return its URL.

    It is a copy: to migrate a new database takes longer than many a test.
    """
    file = folder / "pliant.db"
    with file.open("xb") as out:
        out.write(_empty_sqlite())
    return f"sqlite:///{file}"


@cache
def _empty_sqlite() -> bytes:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "pliant.db"
        SqlStore(f"sqlite:///{file}").close()
        return file.read_bytes()


def server_url() -> str:
    """Return the URL of the server that tests use; ends the test if none answers."""
    url = os.environ.get(VARIABLE) or DEFAULT
    try:
        psycopg.connect(url, connect_timeout=30).close()  # at once refused if there is none
    except psycopg.OperationalError as error:
        message = _ADVICE.format(url=url, error=" ".join(str(error).split()))
        if os.environ.get(VARIABLE) or os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return url


@contextmanager
def new_database() -> Iterator[str]:
    """Make a database, give its URL, and drop it."""
    server = server_url()
    name = f"pliant_test_{os.getpid()}_{secrets.token_hex(4)}"
    execute(server, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        head, _, _ = server.rpartition("/")
        yield f"{head}/{name}"
    finally:
        execute(server, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def execute(url: str, statement: LiteralString | sql.Composed, *values: Any) -> list[tuple[Any, ...]]:
    """Run one statement by itself; return its rows."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement, values or None)
        return cursor.fetchall() if cursor.description is not None else []


def empty(url: str) -> None:
    """Remove every row of every table that there is but the revision of the tables.

    TRUNCATE would make a new file for every table and wait for the disk.
    """
    there = {name for (name,) in execute(url, "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")}
    with psycopg.connect(url) as connection:
        for table in reversed(METADATA.sorted_tables):
            if table.name in there:
                connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table.name)))


def cut_all(url: str) -> int:
    """End every other session of a database, as a restart of its server does; return how many there were."""
    statement: LiteralString = (
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    return int(execute(url, statement)[0][0])
