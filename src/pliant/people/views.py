"""The views that people have saved. Each sees and changes their own, and nobody else's."""

from collections.abc import Sequence

from pliant.core.errors import Conflict, InvalidInput, NotFound, Stale
from pliant.core.ports import Clock
from pliant.core.registry import Kept, Registry
from pliant.core.saved_view import SavedView, SavedViews, problems_of_views


class ViewStore:
    """The saved views of all people. Safe to call from any thread."""

    def __init__(self, *, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock

    def get(self, person: str) -> tuple[SavedViews, int]:
        """Return somebody's views and their revision; 0 if they never saved any."""
        kept = self._registry.get(SavedViews, person)
        return (SavedViews(name=person), 0) if kept is None else (kept.noun, kept.revision)

    def replace(self, person: str, views: Sequence[SavedView], revision: int | None = None) -> tuple[SavedViews, int]:
        """Keep these views of somebody and no others; return them with their revision.

        Raises:
            InvalidInput: two have the same name.
            Stale: they are not at `revision` any more.
        """
        if problems := problems_of_views(views):
            raise InvalidInput(*problems)
        kept = self._write(SavedViews(name=person, views=tuple(views)), revision)
        return kept.noun, kept.revision

    def _write(self, noun: SavedViews, revision: int | None) -> Kept[SavedViews]:
        now = self._clock.now()
        try:
            return self._registry.replace(noun, at=now, revision=revision)
        except NotFound:
            if revision not in (None, 0):
                raise Stale(f"there are no saved views at revision {revision}; read them again") from None
        try:
            return self._registry.add(noun, at=now)
        except Conflict as error:
            raise Stale("the saved views were changed meanwhile; read them again and repeat the change") from error
