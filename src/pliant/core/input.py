"""What may be given for a field: written on the field of a noun, once, and read by every edge that takes values in.

    weight: Annotated[int, Input(Ge(1), Le(10_000))] = 1

The rules are `annotated_types`' and the few below that it lacks. They stand inside `Input` because they count for what
people give, and only for that: a value that was kept under earlier rules, or that a newer server answers, is read as
it is. `api.derive` turns them into checks of request bodies; nothing else looks at them.
"""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Final

from annotated_types import BaseMetadata, GroupedMetadata

from pliant.core.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Pattern:
    """A text has to match this regular expression somewhere; `^` and `$` bind it to its ends."""

    regex: str
    words: str
    """What to give instead of what does not match, for people: they see no regular expression."""


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

_JOINERS: Final = "\u200c\u200d"
"""Words of Persian and Hindi, and some pictures, need them."""
_MISLEADING: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of Unicode: controls, formats (such as those that turn the direction), halves of pairs, line breaks."""


def read_line(value: str) -> str:
    """Return a text of one line that shows what it holds.

    Raises:
        InvalidInput: it holds characters that show as nothing, break the line, or turn or hide what stands by them.
    """
    return _read(value, "")


def read_text(value: str) -> str:
    """Return a text of any number of lines that shows what it holds.

    Raises:
        InvalidInput: as `read_line`; line breaks and tabs may be in it, and the joiners of some scripts.
    """
    return _read(value, "\n\r\t" + _JOINERS)


def _read(value: str, allowed: str) -> str:
    found = dict.fromkeys(c for c in value if c not in allowed and unicodedata.category(c) in _MISLEADING)
    if found:
        named = ", ".join(f"U+{ord(c):04X} ({unicodedata.name(c, 'a control character')})" for c in list(found)[:3])
        raise InvalidInput.at("", f"it holds {named}, which nobody sees, or which hides what is there; leave it out")
    return value


NO_NUL: Final = Pattern(r"^[^\x00]*$", "a text without the character NUL")
ONE_LINE: Final = Check(read_line)
PLAIN_TEXT: Final = Check(read_text)

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
