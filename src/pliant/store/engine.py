"""Opens a database and hides what differs between SQLite and PostgreSQL. The only file that names a dialect.

A transaction that writes is begun with `writing`, so that SQLite takes its write lock at once: two transactions that
both read and then both want to write could not wait for each other.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import Connection, Engine, Table, create_engine, event, make_url
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DatabaseError, DataError, IntegrityError, NoSuchModuleError, ProgrammingError
from sqlalchemy.pool import ConnectionPoolEntry

from pliant.core.errors import InvalidInput, NotFound, Problem, Unavailable

_BUSY_TIMEOUT_MS: Final = 30_000
"""How long a connection waits for another process's write; the server's own threads queue before that."""

_PRAGMAS: Final = (
    "PRAGMA journal_mode=WAL",
    f"PRAGMA busy_timeout={_BUSY_TIMEOUT_MS}",
    "PRAGMA foreign_keys=ON",
    "PRAGMA synchronous=NORMAL",
)
_WRITES: Final = "pliant_writes"

Row = Mapping[str, Any]


def open_engine(url: str) -> Engine:
    """Return an engine for a database URL; nothing is read yet.

    Raises:
        InvalidInput: the URL names no database that we can use.
    """
    try:
        parsed = make_url(url)
        dialect = parsed.get_dialect().name
    except (ArgumentError, NoSuchModuleError) as error:
        raise _bad_url(f"{error}; give sqlite:////folder/pliant.db or postgresql+psycopg://host/database") from error
    if dialect not in ("sqlite", "postgresql"):
        raise _bad_url(f"{dialect!r} is not supported; use sqlite or postgresql")
    if dialect == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise _bad_url("a database in memory cannot be shared between threads; name a file")
    engine = create_engine(url)
    if dialect == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Begin a transaction that only reads.

    Raises:
        Unavailable: the database does not answer.
    """
    with _told(engine), engine.connect() as connection, connection.begin():
        yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Begin a transaction that writes; committed when the block ends, rolled back if it raises.

    Raises:
        NotFound: a row refers to another one that does not exist.
        Unavailable: the database does not answer, or is full.
    """
    with _told(engine), engine.connect().execution_options(**{_WRITES: True}) as connection, connection.begin():
        yield connection


def upsert(
    connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]], *, keep: Sequence[str] = ()
) -> None:
    """Insert rows, or replace those whose primary key exists; columns in `keep` stay as they were first written."""
    if not rows:
        return
    insert = _insert(connection, table)
    key = [column.name for column in table.primary_key]
    changed = {name: insert.excluded[name] for name in rows[0] if name not in key and name not in keep}
    connection.execute(insert.on_conflict_do_update(index_elements=key, set_=changed), [dict(row) for row in rows])


def advance_counter(connection: Connection, counters: Table, name: str, by: int) -> int:
    """Add `by` to a counter and return its new value; the row stays locked until the transaction ends."""
    insert = _insert(connection, counters)
    statement = insert.values(name=name, value=by).on_conflict_do_update(
        index_elements=["name"], set_={"value": counters.c.value + by}
    )
    return int(connection.execute(statement.returning(counters.c.value)).scalar_one())


def _insert(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    if connection.dialect.name == "sqlite":
        return sqlite.insert(table)
    return postgresql.insert(table)


def _prepare_sqlite(dbapi: Any, _entry: ConnectionPoolEntry) -> None:
    dbapi.isolation_level = None  # the driver shall not begin transactions on its own; `_begin_sqlite` does
    cursor = dbapi.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(pragma)
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def _told(engine: Engine) -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        raise NotFound(
            f"a row refers to one that the store does not hold ({error.orig}); nothing was written"
        ) from error
    except (DataError, ProgrammingError):
        raise
    except DatabaseError as error:
        raise Unavailable(
            f"the database {engine.url.render_as_string(hide_password=True)} does not answer: {error.orig}; "
            f"see that it exists, can be written, and that its disk is not full"
        ) from error


def _bad_url(message: str) -> InvalidInput:
    return InvalidInput(Problem(field="url", message=message))
