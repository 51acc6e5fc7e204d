"""Reads all nouns of a kind, page by page."""

from collections.abc import Iterator
from typing import Final

from pliant.core.registry import Kept, N, Registry

_PAGE: Final = 500


def every(registry: Registry, kind: type[N], owner: str | None = None) -> Iterator[Kept[N]]:
    """Yield every noun of a kind, or of one owner, in the order of their names."""
    after = ""
    while page := registry.list(kind, owner=owner, after=after, limit=_PAGE):
        yield from page
        if len(page) < _PAGE:
            return
        after = page[-1].noun.name
