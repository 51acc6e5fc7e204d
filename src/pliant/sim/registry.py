"""A registry without a disk. Implements `pliant.core.registry.Registry`."""

from collections.abc import Sequence
from threading import Lock
from typing import Any

from pliant.core.errors import Conflict, NotFound, Stale
from pliant.core.event import EventKind
from pliant.core.registry import NAMED_BY_PEOPLE, OF_JOBS, Kept, N
from pliant.sim.noun_events import MemoryNounEvents


class MemoryRegistry:
    """One dictionary; what is kept are the nouns themselves, which never change."""

    def __init__(self, events: MemoryNounEvents | None = None) -> None:
        """Begin empty; changes are written to these events, or to some that nobody reads."""
        self._lock = Lock()
        self._events = events or MemoryNounEvents()
        self.subscribe = self._events.subscribe
        self._kept: dict[tuple[str, str], Kept[Any]] = {}

    def get(self, kind: type[N], name: str) -> Kept[N] | None:
        """Return a noun, or None if there is none of that name."""
        with self._lock:
            return self._kept.get((kind.KIND, name))

    def list(
        self, kind: type[N], *, owner: str | None = None, after: str = "", limit: int = 1000, part: str = ""
    ) -> Sequence[Kept[N]]:
        """Return nouns in the order of their names."""
        with self._lock:
            names = sorted(name for kept_kind, name in self._kept if kept_kind == kind.KIND and name > after)
            found = [self._kept[kind.KIND, name] for name in names]
        fitting = (kept for kept in found if part.casefold() in kept.noun.name.casefold())
        return tuple(kept for kept in fitting if owner in (None, kept.noun.owner))[:limit]

    def newest(self, kind: type[N], *, before: tuple[float, str] | None, limit: int) -> Sequence[Kept[N]]:
        """Return nouns, the last added first."""
        with self._lock:
            found = [kept for (kept_kind, _), kept in self._kept.items() if kept_kind == kind.KIND]
        order = sorted(((kept.created_at, kept.noun.name) for kept in found), reverse=True)
        by_name = {kept.noun.name: kept for kept in found}
        return tuple(by_name[name] for at, name in order if before is None or (at, name) < before)[:limit]

    def add(self, noun: N, *, at: float) -> Kept[N]:
        """Keep a new noun.

        Raises:
            Conflict: the name is taken, or differs from another one only by capital letters.
        """
        key = noun.KIND, noun.name
        with self._lock:
            if noun.KIND in NAMED_BY_PEOPLE and any(
                kind == noun.KIND and name != noun.name and name.lower() == noun.name.lower()
                for kind, name in self._kept
            ):
                raise Conflict(f"there is a {noun.KIND} whose name differs from {noun.name!r} only by capital letters")
            if key in self._kept:
                raise Conflict(f"there is a {noun.KIND} {noun.name!r} already; choose another name, or change that one")
            kept = self._kept[key] = Kept(noun=noun, revision=1, created_at=at, changed_at=at)
        self._events.write_change(noun, "added", at)
        return kept

    def forget_job(self, job_id: str) -> None:
        """Remove the nouns that are about a job."""
        with self._lock:
            of_job = [key for key in self._kept if key[0] in OF_JOBS and key[1].partition(".")[0] == job_id]
            for key in of_job:
                del self._kept[key]

    def replace(self, noun: N, *, at: float, revision: int | None = None) -> Kept[N]:
        """Replace the noun of this name.

        Raises:
            NotFound: there is none.
            Stale: it is not at `revision` any more.
        """
        with self._lock:
            before = self._present(noun.KIND, noun.name, revision)
            kept = Kept(noun=noun, revision=before.revision + 1, created_at=before.created_at, changed_at=at)
            self._kept[noun.KIND, noun.name] = kept
        self._events.write_change(noun, "changed", at)
        return kept

    def remove(self, kind: type[N], name: str, *, revision: int | None = None) -> None:
        """Forget a noun.

        Raises:
            NotFound, Stale: as for `replace`.
        """
        with self._lock:
            self._present(kind.KIND, name, revision)
            del self._kept[kind.KIND, name]
        self._events.write_removal(kind.KIND, name)

    def announce(self, kind: type[N], name: str, *, at: float) -> None:
        """Write the event of a change of a noun whose record stays as it is; of one that is not there, nothing."""
        if self.get(kind, name) is not None:
            self._events.announce(kind.KIND, name, at)

    def announce_to(self, user: str, kind: EventKind, *, at: float) -> None:
        """Write an event that only this user reads."""
        self._events.announce_to(user, kind, at)

    def _present(self, kind: str, name: str, revision: int | None) -> Kept[Any]:
        kept = self._kept.get((kind, name))
        if kept is None:
            raise NotFound(f"there is no {kind} {name!r}; list them to see which there are")
        if revision is not None and kept.revision != revision:
            raise Stale(f"the {kind} {name!r} was changed meanwhile: it is at revision {kept.revision}, not {revision}")
        return kept
