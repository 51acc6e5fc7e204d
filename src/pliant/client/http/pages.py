"""Lists that come in pages."""

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar


class Page(Protocol):
    """A part of a list."""

    @property
    def next(self) -> str | None:
        """What to ask for the page after it with; None: it is the last."""
        ...


P = TypeVar("P", bound=Page)


def pages(ask: Callable[[str], P]) -> Iterator[P]:
    """Yield all pages; `ask` gets the one that follows a `next`, and the first with an empty text."""
    after: str | None = ""
    while after is not None:
        page = ask(after)
        yield page
        after = page.next
