"""Which of several servers may write to a PostgreSQL database. Knows no process and no thread.

The leader holds a session lock on a connection of its own and says a word on it every second. If it says nothing for
the lease (it was stopped, its machine is gone), PostgreSQL itself ends the session, and the lock is free. Whoever takes
it begins a new term: a number in the database that every writing transaction compares with its own while it holds the
row (`pliant.store.fence`). So a leader of before cannot write any more from the instant at which a new term begins, and
a new term waits for what the leader of before is just writing. If that stands still PostgreSQL ends it, but for one
case: it counts no time while a batch of statements has begun and its rest does not come. Such sessions the new leader
ends.

A leader whose connection was lost goes on as the leader if no other term has begun meanwhile: then nobody has written.
"""

import os
import socket
from contextlib import suppress
from typing import Final

from sqlalchemy import Connection, text

from pliant.core.errors import Deposed, Unavailable
from pliant.store.engine import advance_counter, open_engine, translate_database_errors
from pliant.store.migrate import migrate
from pliant.store.tables import COUNTERS

LEASE_S: Final = 5.0
"""A leader that says nothing for so long has lost the lead."""
TERM: Final = "leader/term"
"""The counter of terms."""

_LOCK: Final = text("SELECT pg_try_advisory_lock(hashtext('pliant'), hashtext(current_schema()))")
_UNLOCK: Final = text("SELECT pg_advisory_unlock_all()")
_TABLES: Final = text("SELECT to_regclass('counters') IS NOT NULL")
_END_STALLED: Final = text(
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
    "WHERE usename = current_user AND pid <> pg_backend_pid() "
    "AND wait_event = 'ClientRead' AND xact_start < clock_timestamp() - interval '1 second' "
    "AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'relation' AND relation = to_regclass('counters') "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
)
"""Transactions that hold the term and wait for their client, who has the lead no longer."""
_TERM_NOW: Final = text("SELECT value FROM counters WHERE name = :name")


class Leadership:
    """The lead of the database at `url`; nobody holds it at first.

    Raises:
        InvalidInput: the URL names no database that we can use.
    """

    def __init__(self, url: str, *, lease_s: float = LEASE_S) -> None:
        self.term: int | None = None
        """Ours; None until we lead."""
        name = f"pliant leader {os.getpid()} on {socket.gethostname()}"
        session = {"idle_session_timeout": f"{lease_s * 1000:.0f}"}
        self._engine = open_engine(url, name=name, session=session)
        self._connection: Connection | None = None

    def take(self) -> bool:
        """Begin a new term unless another server leads; tell whether we lead now.

        Raises:
            Unavailable: the database does not answer.
        """
        with translate_database_errors(self._engine):
            connection = self._connect()
            try:
                if not connection.execute(_LOCK).scalar_one():
                    connection.close()
                    return False
                if not connection.execute(_TABLES).scalar_one():
                    migrate(self._engine)
                connection.execute(_END_STALLED)
                self.term = advance_counter(connection, COUNTERS, TERM, 1)
            except BaseException:
                connection.invalidate()
                connection.close()
                raise
            self._connection = connection
            return True

    def keep(self) -> None:
        """Say that we live; more often than once in a lease.

        Raises:
            Deposed: another server has begun a term.
            Unavailable: the database does not answer now; call again.
        """
        with translate_database_errors(self._engine):
            if self._connection is not None:
                with suppress(Unavailable), translate_database_errors(self._engine):
                    self._connection.execute(text("SELECT 1"))
                    return
            self.release()
            self._take_again()

    def release(self) -> None:
        """Give up the lock, so that another server can take the lead at once."""
        connection, self._connection = self._connection, None
        if connection is not None:
            if not connection.invalidated:
                with suppress(Unavailable), translate_database_errors(self._engine):
                    connection.execute(_UNLOCK)
            connection.invalidate()
            connection.close()

    def close(self) -> None:
        """Give up the lock and close all connections."""
        self.release()
        self._engine.dispose()

    def _take_again(self) -> None:
        connection = self._connect()
        try:
            locked = connection.execute(_LOCK).scalar_one()
            now = connection.execute(_TERM_NOW, {"name": TERM}).scalar_one_or_none()
            if now != self.term:
                raise Deposed(f"another server leads: its term is {now}, ours was {self.term}; this one must end")
            if not locked:
                raise Unavailable("the session before holds the lead still; it ends when its lease is over")
        except BaseException:
            connection.invalidate()
            connection.close()
            raise
        self._connection = connection

    def _connect(self) -> Connection:
        return self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
