"""What is wrong with an input, in words for people: of what pydantic finds they get a sentence, never its own.

    greater_than_equal {"ge": 1}, 0    0 is too small; give 1 or more
    enum {"expected": …}, "fif"        'fif' is not possible; give 'fairshare', 'priority' or 'fifo'; is 'fifo' meant?

A sentence says the value, but for passwords. Texts that have to match a `Pattern` get the words that stand by it.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from pydantic import ValidationError

from pliant.core.errors import Problem
from pliant.core.near_name import near_name

_SENTENCES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "bool_parsing": "{value} is neither true nor false",
        "bool_type": "{value} is neither true nor false",
        "dataclass_type": "{value} is no object",
        "dict_type": "{value} is no object",
        "enum": "{value} is not possible; give {expected}",
        "extra_forbidden": "there is no field of this name; leave it out",
        "finite_number": "{value} is not finite; give a number",
        "float_parsing": "{value} is no number",
        "float_type": "{value} is no number",
        "frozen_set_type": "{value} is no list",
        "greater_than": "{value} is too small; give more than {gt}",
        "greater_than_equal": "{value} is too small; give {ge} or more",
        "int_from_float": "{value} is no whole number",
        "int_parsing": "{value} is no whole number",
        "int_parsing_size": "{value} has too many digits",
        "int_type": "{value} is no whole number",
        "less_than": "{value} is too large; give less than {lt}",
        "less_than_equal": "{value} is too large; give {le} or less",
        "list_type": "{value} is no list",
        "literal_error": "{value} is not possible; give {expected}",
        "mapping_type": "{value} is no object",
        "missing": "it is missing; give it",
        "model_attributes_type": "{value} is no object",
        "model_type": "{value} is no object",
        "string_pattern_mismatch": "{value} holds characters that have no place here",
        "string_too_long": "it has too many characters; give {max_length} at most",
        "string_too_short": "it has too few characters; give {min_length} or more",
        "string_type": "{value} is no text",
        "string_unicode": "it holds characters that are none in Unicode",
        "too_long": "it has too many entries; give {max_length} at most",
        "too_short": "it has too few entries; give {min_length} or more",
        "tuple_type": "{value} is no list",
    }
)
NO_MATCH: Final = "no_match"
"""A text does not match a `Pattern`: the finding's message is the pattern's words."""
_CHOICES: Final = ("enum", "literal_error")
_MAX_SHOWN: Final = 80
_QUOTED: Final = re.compile(r"'([^']*)'")
_TYPE: Final = re.compile(r"\[key\]|[a-z_]+[\[(-].*|bool|int|float|str|none|dict|list|tuple|frozenset")
"""What pydantic puts behind a field: the type that the value did not have, of several; or that a name is wrong."""


def problems_of(error: ValidationError) -> tuple[Problem, ...]:
    """Return all that is wrong with what pydantic has looked at."""
    return problems_in(error.errors(include_url=False))


def problems_in(findings: Sequence[Mapping[str, Any]], *, leave_out: Collection[str] = ()) -> tuple[Problem, ...]:
    """Return pydantic's findings as problems.

    Of a field that may be of several types there is a finding for each: if the value is of one of them, and wrong for
    another reason, nobody is told that it is not of the others.

    Args:
        leave_out: how places may begin that is no field.
    """
    by_field: dict[str, dict[Problem, bool]] = {}
    for found in findings:
        if found["type"] == "too_short" and any(_is_within(other["loc"], found["loc"]) for other in findings):
            continue  # entries that are wrong do not count, which is no news
        place = _place([str(part) for at, part in enumerate(found["loc"]) if at or part not in leave_out])
        problem = Problem(field=".".join(place), message=sentence_of(found, place))
        by_field.setdefault(problem.field, {})[problem] = found["type"].endswith("_type")
    return tuple(
        problem
        for of_field in by_field.values()
        for problem, is_type in of_field.items()
        if not is_type or all(of_field.values())
    )


def _is_within(place: Sequence[Any], outer: Sequence[Any]) -> bool:
    return len(place) > len(outer) and tuple(place[: len(outer)]) == tuple(outer)


def _place(parts: list[str]) -> list[str]:
    while len(parts) > 1 and _TYPE.fullmatch(parts[-1]):
        parts.pop()
    return parts


def sentence_of(found: Mapping[str, Any], place: Sequence[str] = ()) -> str:
    """Return what is wrong with a value, and what to do."""
    kind, context = found["type"], found.get("ctx", {})
    if kind == "value_error":
        return str(context["error"]).removesuffix(".")
    value = "it" if any("password" in part.lower() for part in place) else _show(found.get("input"))
    sentence = _SENTENCES.get(kind)
    if isinstance(found.get("input"), bytes):  # a body that FastAPI has not read as JSON
        return "it is not sent as JSON; send an object, with the header Content-Type: application/json"
    if kind == NO_MATCH:
        return f"{value} cannot be taken; give {found['msg']}"
    if sentence is None:
        return f"{value} cannot be taken: {str(found['msg']).replace('Input should', 'it has to', 1)}"
    if context.get("min_length") == 1 and kind == "string_too_short":
        return "it is empty; give a text"
    said = sentence.format_map({**{name: _number(bound) for name, bound in context.items()}, "value": value})
    if kind in _CHOICES and (near := near_name(str(found.get("input")), _QUOTED.findall(context["expected"]))):
        said += f"; is {near!r} meant?"
    return said


def _show(value: object) -> str:
    """Return a value as it may stand in a sentence: of what is long or nested only what it is."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, str):
        shown = repr(value)
    elif value is None or isinstance(value, bool | int | float):
        shown = json.dumps(value)
    else:
        return "a list" if isinstance(value, Collection) else "it"
    return shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}…"


def _number(bound: object) -> str:
    return f"{bound:,.10g}" if isinstance(bound, float) else str(bound)
