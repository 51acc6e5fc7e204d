"""Sorting and cutting lists as IBM's query parameters ask for it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from pliant.core.errors import InvalidInput

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """Which part of a list, in which order."""

    field: str | None = None
    """Sort by it; None leaves the order."""
    descending: bool = False
    start: int = 0
    length: int | None = None

    @classmethod
    def from_sort_by(cls, text: str, *, length: int | None) -> Self:
        """Return what `sort_by=FIELD` or `sort_by=FIELD:desc` asks for.

        Raises:
            InvalidInput: the word behind the colon is neither `asc` nor `desc`.
        """
        name, _, order = text.partition(":")
        if order.lower() not in ("", "asc", "desc"):
            message = f"{order!r} is neither asc nor desc; write FIELD or FIELD:desc"
            raise InvalidInput.at("sort_by", message)
        return cls(field=name, descending=order.lower() == "desc", length=length)

    def part(self, found: Sequence[T]) -> Sequence[T]:
        """Return the part of a list that is in order already."""
        end = None if self.length is None else self.start + self.length
        return found[self.start : end]

    @classmethod
    def from_sort(cls, sort: str | None, order: str | None, start: int, length: int | None) -> Self:
        """Return what `sort=FIELD` or `sort=-FIELD`, `order`, `start` and `length` ask for."""
        descending = (sort or "").startswith("-") or (order or "").lower() == "desc"
        return cls(field=(sort or "").removeprefix("-") or None, descending=descending, start=start, length=length)


def sort_and_cut(found: Sequence[Mapping[str, Any]], listing: ListOptions) -> list[dict[str, Any]]:
    """Return a part of a list of objects, in the order that was asked for; those without a value come last.

    Raises:
        InvalidInput: none of the objects has such a field.
    """
    name = listing.field
    rows = [dict(one) for one in found]
    if name is not None and rows:
        if all(name not in one for one in rows):
            known = ", ".join(sorted(rows[0]))
            raise InvalidInput.at("sort", f"there is no field {name!r}; there are {known}")
        having = [one for one in rows if one.get(name) is not None]
        having.sort(key=lambda one: _key(one[name]), reverse=listing.descending)
        rows = [*having, *(one for one in rows if one.get(name) is None)]
    return list(listing.part(rows))


def _key(value: object) -> tuple[int, Any]:
    """Return what a value is ordered by: numbers before texts, and wmla-9 before wmla-10."""
    if isinstance(value, bool | int | float):
        return (0, value)
    text = str(value)
    head = text.rstrip("0123456789")
    return (1, (head, int(text[len(head) :] or 0), text))
