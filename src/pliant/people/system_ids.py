"""An id of the operating system for every person, so that no person's processes can touch another's.

Nothing has to be made by hand: an id needs no entry in the machine's user database. It is given once and kept for the
life of the pool, since files carry it. Only a server that may change users gives any.
"""

from dataclasses import dataclass
from threading import Lock
from typing import ClassVar, Final

from pliant.core.confinement import RunAs
from pliant.core.errors import Unavailable
from pliant.core.ports import Clock
from pliant.core.registry import Registry, iterate_nouns

BUILDERS: Final = "(builders)"
"""Who builds what people share; the brackets keep it from being anybody's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemId:
    """The id that the processes of one person run under."""

    KIND: ClassVar[str] = "system-id"

    name: str
    """The person."""
    owner: str = ""
    uid: int


class SystemIds:
    """Safe to call from any thread.

    Args:
        registry: keeps what was given.
        clock: dates it.
        uids: those to give; None: people's processes run as the server's own user.
    """

    def __init__(self, registry: Registry, clock: Clock, uids: range | None) -> None:
        self._registry = registry
        self._clock = clock
        self._uids = uids
        self._lock = Lock()

    def of(self, person: str) -> RunAs | None:
        """Return whom a person's processes run as; None: the server's own user.

        Raises:
            Unavailable: all ids are given.
        """
        if self._uids is None:
            return None
        with self._lock:
            kept = self._registry.get(SystemId, person)
            uid = kept.noun.uid if kept is not None else self._give(person, self._uids)
        return RunAs(uid=uid)

    def _give(self, person: str, uids: range) -> int:
        taken = {kept.noun.uid for kept in iterate_nouns(self._registry, SystemId)}
        free = next((uid for uid in uids if uid not in taken), None)
        if free is None:
            raise Unavailable(
                f"all {len(uids)} ids from {uids.start} to {uids.stop - 1} belong to people; start the server with a "
                f"wider range (--uids FIRST-LAST)"
            )
        self._registry.add(SystemId(name=person, uid=free), at=self._clock.now())
        return free
