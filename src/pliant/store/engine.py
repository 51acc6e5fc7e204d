"""Opens a database and hides what differs between SQLite and PostgreSQL.

Only `postgresql.py`, `fence.py` and `leadership.py` know a dialect too.

A transaction that writes is begun with `write_transaction`, so that SQLite takes its write lock at once. If it took it
with the first write only, two transactions that have both read, and now both want to write, would each wait for the
other to end, which SQLite refuses with "database is locked" without waiting.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    URL,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Engine,
    Executable,
    Select,
    Table,
    Text,
    bindparam,
    collate,
    create_engine,
    event,
    make_url,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    DataError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    NoSuchModuleError,
    ProgrammingError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.pool import ConnectionPoolEntry
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.dml import ReturningInsert
from sqlalchemy.sql.functions import FunctionElement

from pliant.core.errors import InvalidInput, NotFound, Unavailable
from pliant.store import postgresql as postgres

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


class CommitInDoubt(Unavailable):
    """The connection was lost at the instant of a commit: it was made, or it was not."""


def open_engine(url: str, *, name: str | None = None, session: Mapping[str, str] | None = None) -> Engine:
    """Return an engine for a database URL; nothing is read yet.

    Args:
        name: how PostgreSQL shows our sessions; default: this process.
        session: further settings of PostgreSQL sessions.

    Raises:
        InvalidInput: the URL names no database that we can use.
    """
    try:
        parsed = _with_driver(make_url(url))
        dialect = parsed.get_dialect().name
    except (ArgumentError, NoSuchModuleError) as error:
        raise _bad_url(f"{error}; give sqlite:////folder/pliant.db or postgresql://user@host/database") from error
    if parsed.drivername not in ("sqlite", "sqlite+pysqlite", postgres.DRIVER):
        raise _bad_url(f"{parsed.drivername!r} is not supported; use sqlite or postgresql")
    if dialect == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise _bad_url("a database in memory cannot be shared between threads; name a file")
    if dialect == "postgresql":
        args = postgres.connect_args(parsed, name=name or postgres.session_name(), session=session or {})
        return create_engine(parsed, connect_args=args, **postgres.POOL)
    engine = create_engine(parsed)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def display_url(engine: Engine) -> str:
    """Return the database's URL without its secrets."""
    return postgres.display_url(engine.url)


def _with_driver(url: URL) -> URL:
    """Return the URL with the one driver that we use."""
    return url.set(drivername=postgres.DRIVER) if url.drivername in postgres.NAMES else url


@contextmanager
def read_transaction(engine: Engine) -> Iterator[Connection]:
    """Begin a transaction that only reads.

    Raises:
        Unavailable: the database does not answer.
    """
    with translate_database_errors(engine), engine.connect() as connection, connection.begin():
        yield connection


@contextmanager
def snapshot_transaction(engine: Engine) -> Iterator[Connection]:
    """Begin a transaction that only reads, and sees the database as it is now until it ends.

    Raises:
        Unavailable: the database does not answer.
    """
    level = "REPEATABLE READ" if engine.dialect.name == "postgresql" else "SERIALIZABLE"
    with (
        translate_database_errors(engine),
        engine.connect().execution_options(isolation_level=level) as connection,
        connection.begin(),
    ):
        yield connection


@contextmanager
def write_transaction(engine: Engine) -> Iterator[Connection]:
    """Begin a transaction that writes; committed when the block ends, rolled back if it raises.

    Raises:
        NotFound: a row refers to another one that does not exist.
        CommitInDoubt: it may have been committed, or not.
        Unavailable: the database does not answer, or is full; nothing was written.
    """
    with translate_database_errors(engine), engine.connect().execution_options(**{_WRITES: True}) as connection:
        transaction = connection.begin()
        try:
            yield connection
        except BaseException:
            transaction.rollback()
            raise
        try:
            transaction.commit()
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
            raise CommitInDoubt(
                f"the connection to {display_url(engine)} was lost during a commit: {_driver_message(error)}"
            ) from error


def lock_tables(connection: Connection) -> None:
    """Let no other process change the tables until this transaction ends, which may take as long as it needs.

    SQLite's write lock does that already.
    """
    if connection.dialect.name == "postgresql":
        for statement in postgres.LOCK_TABLES:
            connection.exec_driver_sql(statement)


def upsert(
    connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]], *, keep: Sequence[str] = ()
) -> None:
    """Insert rows, or replace those whose primary key exists; columns in `keep` stay as they were first written."""
    if not rows:
        return
    changed = tuple(name for name in rows[0] if name not in table.primary_key.columns and name not in keep)
    connection.execute(_upsert(connection.dialect.name, table, changed), [dict(row) for row in rows])


@cache
def _upsert(dialect: str, table: Table, changed: tuple[str, ...]) -> sqlite.Insert | postgresql.Insert:
    """Return the statement, which takes longer to make than to run."""
    insert, key = _insert(dialect, table), [column.name for column in table.primary_key]
    return insert.on_conflict_do_update(index_elements=key, set_={name: insert.excluded[name] for name in changed})


def upsert_from(dialect: str, table: Table, names: Sequence[str], found: Select[Any]) -> Executable:
    """Return the statement that inserts what a query finds, in these columns; a row whose key exists is replaced."""
    insert, key = _insert(dialect, table).from_select(list(names), found), [column.name for column in table.primary_key]
    changed = {name: insert.excluded[name] for name in names if name not in key}
    return insert.on_conflict_do_update(index_elements=key, set_=changed)


def insert_new(connection: Connection, table: Table, row: Mapping[str, Any]) -> bool:
    """Insert a row unless its primary key exists; tell whether it was inserted."""
    key = list(table.primary_key)
    insert = _insert(connection.dialect.name, table).values(**row)
    statement = insert.on_conflict_do_nothing(index_elements=[column.name for column in key]).returning(*key)
    return connection.execute(statement).first() is not None


def bytewise(engine: Engine, column: Column[str]) -> ColumnElement[str]:
    """Return a text column that is compared byte by byte, also in a database that sorts by the rules of a language."""
    return collate(column, "C") if engine.dialect.name == "postgresql" else column


def advance_counter(connection: Connection, counters: Table, name: str, by: int) -> int:
    """Add `by` to a counter and return its new value; the row stays locked until the transaction ends."""
    statement = _advance(connection.dialect.name, counters)
    return int(connection.execute(statement, {"counter": name, "by": by}).scalar_one())


@cache
def _advance(dialect: str, counters: Table) -> ReturningInsert[Any]:
    by = bindparam("by", type_=counters.c.value.type)
    insert = _insert(dialect, counters).values(name=bindparam("counter"), value=by)
    statement = insert.on_conflict_do_update(index_elements=["name"], set_={"value": counters.c.value + by})
    return statement.returning(counters.c.value)


def _insert(dialect: str, table: Table) -> sqlite.Insert | postgresql.Insert:
    if dialect == "sqlite":
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
def translate_database_errors(engine: Engine) -> Iterator[None]:
    """Turn what the driver raises into our errors.

    Raises:
        NotFound: a row refers to another one that does not exist.
        InvalidInput: the database holds no such value.
        Unavailable: it does not answer.
    """
    try:
        yield
    except IntegrityError as error:
        raise NotFound(
            f"a row refers to one that the store does not hold ({error.orig}); nothing was written"
        ) from error
    except DataError as error:
        raise InvalidInput.at("", f"the database does not hold this value: {_driver_message(error)}") from error
    except ProgrammingError:
        raise
    except (DatabaseError, InterfaceError, PoolTimeoutError) as error:
        raise Unavailable(
            f"the database {display_url(engine)} does not answer: {_driver_message(error)}; "
            f"see that it exists, can be written, and that its disk is not full"
        ) from error


def _driver_message(error: DBAPIError | PoolTimeoutError) -> str:
    said = error.orig if isinstance(error, DBAPIError) else error
    return " ".join(str(said).split())


def _bad_url(message: str) -> InvalidInput:
    return InvalidInput.at("url", message)


class bytewise_text(FunctionElement[str]):
    """A text column that is compared byte by byte, in a statement that knows no dialect."""

    name = "bytewise_text"
    type = Text()
    inherit_cache = True


@compiles(bytewise_text)
def _bytewise_sqlite(element: "bytewise_text", compiler: SQLCompiler, **how: Any) -> str:
    (column,) = element.clauses
    return str(compiler.process(column, **how))


@compiles(bytewise_text, "postgresql")
def _bytewise_postgresql(element: "bytewise_text", compiler: SQLCompiler, **how: Any) -> str:
    (column,) = element.clauses
    return f'{compiler.process(column, **how)} COLLATE "C"'


class in_json_array(FunctionElement[bool]):
    """Whether a text column holds one of the strings in a JSON array: any number of them in one parameter."""

    name = "in_json_array"
    type = Boolean()
    inherit_cache = True


@compiles(in_json_array)
def _in_json_array_sqlite(element: "in_json_array", compiler: SQLCompiler, **how: Any) -> str:
    column, values = (compiler.process(clause, **how) for clause in element.clauses)
    return f"({column} IN (SELECT value FROM json_each({values})))"


@compiles(in_json_array, "postgresql")
def _in_json_array_postgresql(element: "in_json_array", compiler: SQLCompiler, **how: Any) -> str:
    column, values = (compiler.process(clause, **how) for clause in element.clauses)
    return f"({column} IN (SELECT jsonb_array_elements_text(CAST({values} AS jsonb))))"
