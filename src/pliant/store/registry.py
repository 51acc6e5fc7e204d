"""The registry of nouns and the audit log over a SQL database. Knows how a noun becomes JSON, no noun in particular."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, Final, Protocol

from pydantic import TypeAdapter
from sqlalchemy import Connection, Engine, RowMapping, and_, delete, func, insert, or_, select, update

from pliant.core.errors import Conflict, NotFound, Stale
from pliant.core.event import EventKind
from pliant.core.noun_event import subject_of
from pliant.core.registry import NAMED_BY_PEOPLE, AuditEntry, Kept, N, Outcome
from pliant.store.engine import advance_counter, bytewise, insert_new, read_transaction
from pliant.store.noun_events import NounEvents, write_change, write_event, write_event_to, write_removal
from pliant.store.tables import AUDIT, COUNTERS, NOUNS

_AUDIT_COUNTER: Final = "seq/audit"
_FIRST_REFUSAL: Final = 400
_STATUSES: Final[dict[Outcome, tuple[int, int]]] = {"done": (0, 399), "refused": (400, 499), "failed": (500, 999)}


class WriteTransaction(Protocol):
    """Begins a transaction that writes, one at a time in this process."""

    def __call__(self) -> AbstractContextManager[Connection]: ...


class SqlRegistry:
    """A `Registry` in the table `nouns`."""

    def __init__(self, engine: Engine, write_transaction: WriteTransaction, events: NounEvents) -> None:
        self._engine = engine
        self._write_transaction = write_transaction
        self._events = events
        self.subscribe = events.subscribe

    def get(self, kind: type[N], name: str) -> Kept[N] | None:
        """Return a noun, or None if there is none of that name."""
        with read_transaction(self._engine) as connection:
            row = connection.execute(select(NOUNS).where(*_is(kind, name))).mappings().first()
        return None if row is None else _kept_of(kind, row)

    def list(
        self, kind: type[N], *, owner: str | None = None, after: str = "", limit: int = 1000, part: str = ""
    ) -> Sequence[Kept[N]]:
        """Return nouns in the order of their names."""
        name = bytewise(self._engine, NOUNS.c.name)
        query = select(NOUNS).where(NOUNS.c.kind == kind.KIND, name > after).order_by(name).limit(limit)
        if owner is not None:
            query = query.where(NOUNS.c.owner == owner)
        if part:
            query = query.where(NOUNS.c.name.icontains(part, autoescape=True))
        with read_transaction(self._engine) as connection:
            return tuple(_kept_of(kind, row) for row in connection.execute(query).mappings())

    def newest(self, kind: type[N], *, before: tuple[float, str] | None, limit: int) -> Sequence[Kept[N]]:
        """Return nouns, the last added first."""
        name, at = bytewise(self._engine, NOUNS.c.name), NOUNS.c.created_at
        query = select(NOUNS).where(NOUNS.c.kind == kind.KIND).order_by(at.desc(), name.desc()).limit(limit)
        if before is not None:
            query = query.where(or_(at < before[0], and_(at == before[0], name < before[1])))
        with read_transaction(self._engine) as connection:
            return tuple(_kept_of(kind, row) for row in connection.execute(query).mappings())

    def add(self, noun: N, *, at: float) -> Kept[N]:
        """Keep a new noun.

        Raises:
            Conflict: the name is taken, or differs from another one only by capital letters.
        """
        row = {"kind": noun.KIND, "name": noun.name, "owner": noun.owner, "revision": 1, "created_at": at}
        with self._write_transaction() as connection:
            _refuse_twin(connection, noun.KIND, noun.name)
            if not insert_new(connection, NOUNS, row | {"changed_at": at, "body": _body(noun)}):
                raise Conflict(f"there is a {noun.KIND} {noun.name!r} already; choose another name, or change that one")
            write_change(connection, noun, "added", at)
        self._events.notify(noun.KIND)
        return Kept(noun=noun, revision=1, created_at=at, changed_at=at)

    def replace(self, noun: N, *, at: float, revision: int | None = None) -> Kept[N]:
        """Replace the noun of this name.

        Raises:
            NotFound: there is none.
            Stale: it is not at `revision` any more.
        """
        with self._write_transaction() as connection:
            row = _require_row(connection, type(noun), noun.name, revision)
            number = row["revision"] + 1
            change = update(NOUNS).where(*_is(type(noun), noun.name))
            connection.execute(change.values(owner=noun.owner, revision=number, changed_at=at, body=_body(noun)))
            write_change(connection, noun, "changed", at)
        self._events.notify(noun.KIND)
        return Kept(noun=noun, revision=number, created_at=row["created_at"], changed_at=at)

    def remove(self, kind: type[N], name: str, *, revision: int | None = None) -> None:
        """Forget a noun.

        Raises:
            NotFound, Stale: as for `replace`.
        """
        with self._write_transaction() as connection:
            _require_row(connection, kind, name, revision)
            connection.execute(delete(NOUNS).where(*_is(kind, name)))
            write_removal(connection, kind.KIND, name, self._events.now())
        self._events.notify(kind.KIND)

    def announce(self, kind: type[N], name: str, *, at: float) -> None:
        """Write the event of a change of a noun whose record stays as it is; of one that is not there, nothing."""
        subject = subject_of(kind.KIND, name)
        if subject is None:
            return
        with self._write_transaction() as connection:
            if connection.execute(select(NOUNS.c.name).where(*_is(kind, name))).first() is None:
                return
            write_event(connection, subject, "changed", at)
        self._events.notify_all()

    def announce_to(self, user: str, kind: EventKind, *, at: float) -> None:
        """Write an event that only this user reads."""
        with self._write_transaction() as connection:
            write_event_to(connection, user, kind, at)
        self._events.notify_all()


class SqlAudit:
    """An `AuditLog` in the table `audit`."""

    def __init__(self, engine: Engine, write_transaction: WriteTransaction) -> None:
        self._engine = engine
        self._write_transaction = write_transaction

    def append(self, entry: AuditEntry) -> AuditEntry:
        """Write an entry; return it with its number."""
        with self._write_transaction() as connection:
            return append_entry(connection, entry)

    def entries(
        self,
        *,
        before: int | None = None,
        who: str | None = None,
        text: str | None = None,
        outcome: Outcome | None = None,
        limit: int = 100,
    ) -> Sequence[AuditEntry]:
        """Return entries, newest first."""
        query = select(AUDIT).order_by(AUDIT.c.seq.desc()).limit(limit)
        if before is not None:
            query = query.where(AUDIT.c.seq < before)
        if who is not None:
            query = query.where(AUDIT.c.who == who)
        if text is not None:
            parts = (AUDIT.c.action, AUDIT.c.target)
            query = query.where(or_(*(part.icontains(text, autoescape=True) for part in parts)))
        if outcome is not None:
            query = query.where(AUDIT.c.status.between(*_STATUSES[outcome]))
        with read_transaction(self._engine) as connection:
            return tuple(AuditEntry(**row) for row in connection.execute(query).mappings())

    def forget_refusals(self, *, before: float) -> None:
        """Remove old entries of refused requests that have no name."""
        with self._write_transaction() as connection:
            old = (AUDIT.c.who == "", AUDIT.c.status >= _FIRST_REFUSAL, AUDIT.c.at < before)
            connection.execute(delete(AUDIT).where(*old))


def append_entry(connection: Connection, entry: AuditEntry) -> AuditEntry:
    """Write an entry of the audit log; return it with its number."""
    row = {name: getattr(entry, name) for name in AuditEntry.__dataclass_fields__}
    row["seq"] = advance_counter(connection, COUNTERS, _AUDIT_COUNTER, 1)
    connection.execute(insert(AUDIT).values(**row))
    return AuditEntry(**row)


def _refuse_twin(connection: Connection, kind: str, name: str) -> None:
    """Refuse a name that differs from another one only by capital letters."""
    if kind not in NAMED_BY_PEOPLE:
        return
    alike = (NOUNS.c.kind == kind, func.lower(NOUNS.c.name) == name.lower(), NOUNS.c.name != name)
    if connection.execute(select(NOUNS.c.name).where(*alike).limit(1)).first() is not None:
        raise Conflict(
            f"there is a {kind} whose name differs from {name!r} only by capital letters, and people would take one "
            f"for the other; choose another name"
        )


def _is(kind: type[N], name: str) -> tuple[Any, ...]:
    return NOUNS.c.kind == kind.KIND, NOUNS.c.name == name


def _require_row(connection: Connection, kind: type[N], name: str, revision: int | None) -> RowMapping:
    row = connection.execute(select(NOUNS).where(*_is(kind, name)).with_for_update()).mappings().first()
    if row is None:
        raise NotFound(f"there is no {kind.KIND} {name!r}; list them to see which there are")
    if revision is not None and row["revision"] != revision:
        raise Stale(
            f"the {kind.KIND} {name!r} was changed meanwhile: it is at revision {row['revision']}, not {revision}; "
            f"read it again and repeat the change"
        )
    return row


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _body(noun: N) -> str:
    return _adapter(type(noun)).dump_json(noun).decode()


def _kept_of(kind: type[N], row: RowMapping) -> Kept[N]:
    noun = _adapter(kind).validate_json(row["body"])
    return Kept(noun=noun, revision=row["revision"], created_at=row["created_at"], changed_at=row["changed_at"])
