"""What may be given for a field: written on the field of a noun, once, and read by every edge that takes values in.

    weight: Annotated[int, Input(Ge(1), Le(10_000))] = 1

The rules are `annotated_types`' and the few below that it lacks. They stand inside `Input` because they count for what
people give, and only for that: a value that was kept under earlier rules, or that a newer server answers, is read as
it is. `api.derive` turns them into checks of request bodies; nothing else looks at them.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Final

from annotated_types import BaseMetadata, GroupedMetadata


@dataclass(frozen=True, slots=True)
class Pattern:
    """A text has to match this regular expression somewhere; `^` and `$` bind it to its ends."""

    regex: str


@dataclass(frozen=True, slots=True)
class Check:
    """A function has to take the value."""

    read: Callable[[Any], object]
    """Raises `InvalidInput`, and says what is wrong, if it is no value."""


class Finite:
    """A number has to be finite."""


class Number:
    """A number has to be given as one: the text "1.5" is none."""


FINITE: Final = Finite()
NUMBER: Final = Number()

Rule = BaseMetadata | GroupedMetadata | Pattern | Check | Finite | Number


class Input:
    """The rules for a field that a person gives."""

    __slots__ = ("doc", "none", "rules")

    def __init__(self, *rules: Rule, none: str = "", doc: str = "") -> None:
        """Say the rules.

        Args:
            rules: all of which the value has to keep.
            none: what None means to who changes the field, such as "null: no limit."; without it None changes nothing.
            doc: what every value of this type is, whichever field it is given for.
        """
        self.rules = rules
        self.none = none
        self.doc = doc


def values_of(shape: type, noun: object) -> dict[str, Any]:
    """Return the fields that a dataclass declares, with the values that something of more fields has for them."""
    return {field.name: getattr(noun, field.name) for field in fields(shape)}
