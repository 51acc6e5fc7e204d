"""Tags: what people write on a job so that they find it again; a name each, and a value where one is given.

baseline     the name `baseline`, no value
lr=0.1       the name `lr`, the value `0.1`
"""

import json
from collections.abc import Mapping
from typing import Annotated, Final

from annotated_types import Ge, Le, Len, MaxLen

from pliant.core.errors import InvalidInput
from pliant.core.input import FINITE, NUMBER, ONE_LINE, Check, Input, Pattern

MAX_TAGS: Final = 50
"""Of a job."""
MAX_TAG_NAME: Final = 60
MAX_TAG_VALUE: Final = 200
RESERVED: Final = "pliant."
"""Names that begin with this are Pliant's own at trackers."""
_MAX_INT: Final = 2**53


def _refuse_reserved(name: str) -> None:
    if name.lower().startswith(RESERVED):
        raise InvalidInput.at("", f"names that begin with {RESERVED!r} are Pliant's own; call it otherwise")


TagName = Annotated[
    str,
    Input(
        Len(1, MAX_TAG_NAME),
        Pattern(
            r"^[A-Za-z0-9_][A-Za-z0-9_./-]*$",
            "a name of letters, digits, '_', '.', '/' and '-', a letter, digit or '_' first",
        ),
        Check(_refuse_reserved),
    ),
]
TagValue = (
    Annotated[int, Input(Ge(-_MAX_INT), Le(_MAX_INT))]
    | Annotated[float, Input(FINITE, NUMBER)]
    | Annotated[
        str, Input(MaxLen(MAX_TAG_VALUE), Pattern(r"^[^,]*$", "a text without ',', which separates tags"), ONE_LINE)
    ]
)  # an int before a float: 32 stays 32
GivenTags = Annotated[Mapping[TagName, TagValue], Input(MaxLen(MAX_TAGS))]
"""As people give them: a number is a value, too."""


def tags_of(given: Mapping[str, str | int | float]) -> dict[str, str]:
    """Return tags as they are kept: all values are texts."""
    return {name: value if isinstance(value, str) else repr(value) for name, value in given.items()}


def changed_tags(tags: Mapping[str, str], changes: Mapping[str, str | int | float | None]) -> dict[str, str]:
    """Return tags after a change; None takes a tag away.

    Raises:
        InvalidInput: they would be too many.
    """
    given = {name: value for name, value in changes.items() if value is not None}
    changed = {name: value for name, value in tags.items() if changes.get(name, "") is not None} | tags_of(given)
    if len(changed) > MAX_TAGS:
        raise InvalidInput.at("tags", f"it would have {len(changed)} tags; {MAX_TAGS} at most: take some away")
    return changed


def write_tags(tags: Mapping[str, str]) -> str | None:
    """Return tags as a task gets them in a variable; None if there are none."""
    return json.dumps(dict(tags)) if tags else None


def read_tags(text: str) -> dict[str, str]:
    """Return the tags that `write_tags` wrote; what is none of them is passed over."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    tags = found.items() if isinstance(found, dict) else ()
    return {name: value for name, value in tags if isinstance(value, str)}


def words_of_tag(name: str, value: str) -> str:
    """Return a tag as people write it: `baseline`, `lr=0.1`."""
    return f"{name}={value}" if value else name


def words_of_tags(tags: Mapping[str, str]) -> str:
    """Return tags for people: `baseline, lr=0.1`."""
    return ", ".join(words_of_tag(name, value) for name, value in tags.items())
