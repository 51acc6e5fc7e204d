"""Views of lists that somebody has saved: a name, and what the address of a page says behind its question mark."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

from annotated_types import Len, MaxLen

from pliant.core.errors import Problem
from pliant.core.input import ONE_LINE, Input, Pattern

MAX_VIEWS: Final = 50
"""Of one person."""


@dataclass(frozen=True, kw_only=True)
class SavedView:
    """A view of the list of jobs."""

    name: Annotated[str, Input(Len(1, 60), ONE_LINE)]
    """What its owner calls it."""
    query: Annotated[
        str,
        Input(
            MaxLen(2000),
            Pattern(
                r"^[\x21-\x7e]*$", "the query of an address, such as state=running&owner=ada, 2000 characters at most"
            ),
        ),
    ]
    """Filters, order and columns, as the address of the page has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedViews:
    """All views of one person, in the order in which they are shown."""

    KIND: ClassVar[str] = "saved-views"

    name: str
    """The person's."""
    views: tuple[SavedView, ...] = ()

    @property
    def owner(self) -> str:
        return self.name


def problems_of_views(views: Sequence[SavedView]) -> tuple[Problem, ...]:
    """Return what is wrong with the views of one person: two are called the same."""
    num = Counter(view.name for view in views)
    message = "two views have this name; give each a name of its own"
    return tuple(
        Problem(field=f"views.{place}.name", message=message) for place, view in enumerate(views) if num[view.name] > 1
    )
