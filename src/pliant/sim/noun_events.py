"""Events of nouns without a disk, and who sees each noun; as `pliant.core.noun_event` describes them."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from threading import Lock

from pliant.core.access import EVERYBODY, VisibleJobs
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


@dataclass(frozen=True, slots=True)
class _For:
    """Who reads an event: those who see a noun, or one user."""

    subject: Subject | None = None
    viewer: str = ""
    kind: EventKind | None = None


class MemoryNounEvents:
    """The log of events, of nouns and of jobs, and who reads those of nouns."""

    def __init__(self, now: Callable[[], float] = lambda: 0.0) -> None:
        """Begin with no events; `now` returns when it is, for changes that come without a time."""
        self.now = now
        self.events: list[Event] = []
        self._last_seq = 0
        self._lock = Lock()
        self._for: dict[int, _For] = {}
        self._viewers: dict[Subject, frozenset[str]] = {}
        self._listeners: tuple[Callable[[], None], ...] = ()

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` after events of nouns were stored; returns what ends it."""
        self._listeners = (*self._listeners, listener)

        def unsubscribe() -> None:
            self._listeners = tuple(other for other in self._listeners if other is not listener)

        return unsubscribe

    def append(self, events: Collection[Event]) -> tuple[Event, ...]:
        """Write events; return them with their numbers."""
        with self._lock:
            return tuple(self._append(event, None) for event in events)

    def forget_jobs(self, job_ids: Collection[str], at: float) -> None:
        """Remove the events of jobs, and who sees them; say so to those."""
        with self._lock:
            self.events = [event for event in self.events if event.job_id not in job_ids]
            shares = [Subject(kind=JOB_SHARE, name=job_id) for job_id in job_ids]
            gone = frozenset[str]().union(*(self._viewers.pop(share, frozenset()) for share in shares))
            self._say_gone(gone, EventKind.SHARE_CHANGED, at)

    def write_change(self, noun: Noun, change: Change, at: float) -> None:
        """Write the event of a noun that was added or changed."""
        self._write(noun.KIND, noun.name, change, at, viewers_of(noun))

    def write_removal(self, kind: str, name: str) -> None:
        """Write the events of a noun that was removed."""
        self._write(kind, name, "changed" if is_part(kind) else "removed", self.now(), frozenset())

    def announce(self, kind: str, name: str, at: float) -> None:
        """Write the newest event of a noun."""
        if (subject := subject_of(kind, name)) is not None:
            with self._lock:
                self._append(event_of_change(subject, "changed", at), _For(subject))
            self._notify()

    def announce_to(self, viewer: str, kind: EventKind, at: float) -> None:
        """Write the newest event of a kind for one user alone."""
        with self._lock:
            self._say_gone({viewer}, kind, at)
        self._notify()

    def may_read(self, event: Event, visible: VisibleJobs | None, reader: str) -> bool | None:
        """Tell whether somebody reads an event of a noun; None: it is none."""
        of = self._for.get(event.seq)
        if of is None:
            return None
        if visible is None:
            return of.subject is not None or of.viewer == reader
        readers = {of.viewer} if of.subject is None else self._viewers.get(of.subject, frozenset())
        return not readers.isdisjoint({visible.owner, EVERYBODY})

    def _write(self, kind: str, name: str, change: Change, at: float, viewers: frozenset[str]) -> None:
        subject = subject_of(kind, name)
        if subject is None:
            return
        with self._lock:
            if not is_part(kind):
                self._say_gone(self._viewers.pop(subject, frozenset()) - viewers, subject.event_kind, at)
                self._viewers[subject] = viewers
            self._append(event_of_change(subject, change, at), _For(subject))
        self._notify()

    def _say_gone(self, viewers: Collection[str], kind: EventKind, at: float) -> None:
        for viewer in sorted(viewers):
            self._append(event_without_name(kind, at), _For(None, viewer, kind))

    def _append(self, event: Event, of: _For | None) -> Event:
        """Write an event, in the place of the one before for the same readers."""
        if of is not None:
            before = {seq for seq, one in self._for.items() if one == of}
            self.events = [one for one in self.events if one.seq not in before]
            self._for = {seq: one for seq, one in self._for.items() if seq not in before}
        self._last_seq += 1
        event = replace(event, seq=self._last_seq)
        self.events.append(event)
        if of is not None:
            self._for[event.seq] = of
        return event

    def _notify(self) -> None:
        for listener in self._listeners:
            listener()
