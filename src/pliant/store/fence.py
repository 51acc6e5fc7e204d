"""What every writing transaction passes: on PostgreSQL it checks that its server leads, and settles commits in doubt.

Laws: a transaction commits only while its server's term is the newest. If the connection is lost at the instant of the
commit nobody knows whether it was made; then the database is asked (`pg_xact_status`) before anything else is written,
so that whoever wrote learns the truth. If it cannot be asked in time the writer learns that it failed; should it turn
out later that it was made, memory is behind the database, and the server has to read it again (`Diverged`).

An example: server A leads with term 3 and is stopped for a minute. PostgreSQL ends its lock after five seconds, and
server B takes it and writes term 4. A wakes up and begins a transaction: it reads the row of the term under a share
lock, finds 4 instead of 3, and writes nothing (`Deposed`). Had A been stopped within a transaction it would hold the
share lock, and B's new term would wait for it: so PostgreSQL ends a transaction that stands still for four seconds, and
B itself ends one that stands still within a batch of statements, which PostgreSQL does not count (`Leadership.take`).
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy import Connection, Engine, text

from pliant.core.errors import Deposed, Diverged, Unavailable
from pliant.store.engine import CommitInDoubt, read_transaction, write_transaction
from pliant.store.leadership import TERM

_STILL_MS: Final = 4000
"""A transaction that does nothing for so long is ended; less than a lease."""
_SETTLE_S: Final = 5.0
_ASK_S: Final = 0.1

_STILL: Final = f"set_config('idle_in_transaction_session_timeout', '{_STILL_MS}', true)"
_BEGIN: Final = f"CAST(pg_current_xact_id() AS text), {_STILL}"
_ENTER: Final = text(f"SELECT {_BEGIN}")
_ENTER_AS_LEADER: Final = text(f"SELECT {_BEGIN}, value FROM counters WHERE name = '{TERM}' FOR SHARE")
_STATUS: Final = text("SELECT pg_xact_status(CAST(CAST(:xid AS text) AS xid8))")


class Fence:
    """Begins the writing transactions of one store, one at a time.

    Args:
        term: this server's; None if there is no leader, because the database is a file that one server holds.
    """

    def __init__(self, engine: Engine, term: int | None) -> None:
        self.diverged = False
        """Whether the database holds a write that was reported as failed."""
        self._engine = engine
        self._term = term
        self._doubt: str | None = None

    @contextmanager
    def write_transaction(self) -> Iterator[Connection]:
        """Begin a transaction that writes; committed when the block ends, rolled back if it raises.

        Raises:
            Deposed: another server leads; nothing was written.
            Diverged: a write before, which was reported as failed, was made after all.
            NotFound, Unavailable: see `pliant.store.engine.write_transaction`.
        """
        if self._engine.dialect.name != "postgresql":
            with write_transaction(self._engine) as connection:
                yield connection
            return
        self._settle_before()
        xid = ""
        try:
            with write_transaction(self._engine) as connection:
                xid = self._enter(connection)
                yield connection
        except CommitInDoubt as doubt:
            self._doubt = xid
            self._settle(doubt)

    def _enter(self, connection: Connection) -> str:
        if self._term is None:
            return str(connection.execute(_ENTER).scalar_one())
        row = connection.execute(_ENTER_AS_LEADER).one_or_none()
        if row is None or row.value != self._term:
            now = None if row is None else row.value
            raise Deposed(f"another server leads (its term is {now}, ours was {self._term}); nothing was written")
        return str(row[0])

    def _settle(self, doubt: CommitInDoubt) -> None:
        """Learn what became of a commit; return if it was made.

        Raises:
            Unavailable: it was not made, or the database did not say in time.
        """
        deadline = time.monotonic() + _SETTLE_S
        while (status := self._status()) is None and time.monotonic() < deadline:
            time.sleep(_ASK_S)
        if status is None:
            raise doubt
        self._doubt = None
        if status != "committed":
            raise Unavailable(f"the connection to the database was lost and nothing was written ({doubt})") from doubt

    def _settle_before(self) -> None:
        if self.diverged:
            raise Diverged("the database is ahead of this server's memory; the server must start again")
        if self._doubt is None:
            return
        status = self._status()
        if status is None:
            raise Unavailable("the database does not say yet whether the write before was made; try again")
        self._doubt = None
        if status == "committed":
            self.diverged = True
            self._settle_before()

    def _status(self) -> str | None:
        """Return `committed` or `aborted`; None if that cannot be known now."""
        try:
            with read_transaction(self._engine) as connection:
                status = connection.execute(_STATUS, {"xid": self._doubt}).scalar_one()
        except Unavailable:
            return None
        return None if status == "in progress" else str(status)
