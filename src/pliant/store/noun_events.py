"""Writes the events of nouns within the transactions that change them, and who sees each noun.

Laws (`pliant.core.noun_event` has their meaning): of every noun, and of every kind for one user, only the newest event
is kept; who sees a noun is written with the noun.
"""

from collections.abc import Callable, Collection
from threading import Lock
from typing import Final

from sqlalchemy import Connection, delete, insert, select

from pliant.core.event import Event, EventKind
from pliant.core.noun_event import (
    JOB_SHARE,
    Change,
    Subject,
    event_of_change,
    event_without_name,
    is_part,
    subject_of,
    viewers_of,
)
from pliant.core.registry import Noun
from pliant.store import rows
from pliant.store.engine import advance_counter
from pliant.store.tables import COUNTERS, EVENTS, NOUN_VIEWERS

EVENT_COUNTER: Final = "seq/events"


class NounEvents:
    """Events of nouns, and who is called when some were stored.

    Args:
        now: returns when it is, for changes that come without a time.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self._lock = Lock()
        self._listeners: tuple[Callable[[], None], ...] = ()

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` after events of nouns were stored; returns what ends it."""
        with self._lock:
            self._listeners = (*self._listeners, listener)

        def unsubscribe() -> None:
            with self._lock:
                self._listeners = tuple(other for other in self._listeners if other is not listener)

        return unsubscribe

    def notify(self, kind: str) -> None:
        """Call the listeners, if changes of nouns of this kind are events; after the transaction."""
        if subject_of(kind, "") is not None:
            self.notify_all()

    def notify_all(self) -> None:
        """Call the listeners; after the transaction."""
        for listener in self._listeners:
            listener()


def write_change(connection: Connection, noun: Noun, change: Change, at: float) -> None:
    """Write the event of a noun that was added or changed."""
    subject = subject_of(noun.KIND, noun.name)
    if subject is None:
        return
    if not is_part(noun.KIND):
        _write_viewers(connection, subject, viewers_of(noun), at)
    write_event(connection, subject, change, at)


def write_removal(connection: Connection, kind: str, name: str, at: float) -> None:
    """Write the events of a noun that was removed."""
    subject = subject_of(kind, name)
    if subject is None:
        return
    if not is_part(kind):
        _write_viewers(connection, subject, frozenset(), at)
    write_event(connection, subject, "changed" if is_part(kind) else "removed", at)


def write_event(connection: Connection, subject: Subject, change: Change, at: float) -> None:
    """Write the newest event of a noun."""
    of_noun = {"noun": subject.kind, "noun_name": subject.name}
    connection.execute(delete(EVENTS).where(*(EVENTS.c[name] == value for name, value in of_noun.items())))
    _append(connection, event_of_change(subject, change, at), of_noun)


def write_event_to(connection: Connection, viewer: str, kind: EventKind, at: float) -> None:
    """Write the newest event of a kind for one user alone."""
    connection.execute(delete(EVENTS).where(EVENTS.c.viewer == viewer, EVENTS.c.kind == kind.value))
    _append(connection, event_without_name(kind, at), {"viewer": viewer})


def forget_shares(connection: Connection, job_ids: Collection[str], at: float) -> None:
    """Remove who sees jobs that are deleted, and say so to them."""
    of_jobs = (NOUN_VIEWERS.c.kind == JOB_SHARE, NOUN_VIEWERS.c.name.in_(job_ids))
    gone = connection.execute(select(NOUN_VIEWERS.c.viewer).where(*of_jobs).distinct()).scalars().all()
    connection.execute(delete(NOUN_VIEWERS).where(*of_jobs))
    for viewer in sorted(gone):
        write_event_to(connection, viewer, EventKind.SHARE_CHANGED, at)


def _write_viewers(connection: Connection, subject: Subject, viewers: frozenset[str], at: float) -> None:
    """Write who sees a noun; whoever did and does not any more gets an event without its name."""
    of_noun = (NOUN_VIEWERS.c.kind == subject.kind, NOUN_VIEWERS.c.name == subject.name)
    before = frozenset(connection.execute(select(NOUN_VIEWERS.c.viewer).where(*of_noun)).scalars())
    if gone := sorted(before - viewers):
        connection.execute(delete(NOUN_VIEWERS).where(*of_noun, NOUN_VIEWERS.c.viewer.in_(gone)))
    for viewer in gone:
        write_event_to(connection, viewer, subject.event_kind, at)
    if new := sorted(viewers - before):
        key = {"kind": subject.kind, "name": subject.name}
        connection.execute(insert(NOUN_VIEWERS), [key | {"viewer": viewer} for viewer in new])


def _append(connection: Connection, event: Event, of: dict[str, str]) -> None:
    seq = advance_counter(connection, COUNTERS, EVENT_COUNTER, 1)
    connection.execute(insert(EVENTS).values(**(rows.event_row(event) | {"seq": seq} | of)))
