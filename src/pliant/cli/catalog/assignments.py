"""`--set NAME=VALUE`: numbers of a training and parameters of a template, told apart by name. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from pliant.core.errors import InvalidInput, Problem
from pliant.core.hyperparameters import Hyperparameters
from pliant.core.parameter import Value

_TEXTS: Final = frozenset({"optimizer", "lr_policy"})
_LISTS: Final = frozenset({"lr_milestones", "lr_values"})
_NAMES: Final = tuple(field.name for field in fields(Hyperparameters))


def assign(given: Sequence[str], present: Mapping[str, Value]) -> dict[str, dict[str, Any]]:
    """Return the fields `hyperparameters` and `parameters` of a request, those that were given.

    A value is a number, true, false or null (back to the default) where it can be read as one, else a text; lists are
    parted by commas. A parameter of the template whose value is a text now, or that `present` shows to be one, stays
    a text.

    Args:
        given: as they were typed.
        present: the template's parameters with values of their kind.

    Raises:
        InvalidInput: some have no `=`.
    """
    wrong = [text for text in given if "=" not in text]
    if wrong:
        message = "has no '='; give it as NAME=VALUE"
        raise InvalidInput(*(Problem(field="--set", message=f"{text!r} {message}") for text in wrong))
    found: dict[str, dict[str, Any]] = {}
    for text in given:
        name, _, said = text.partition("=")
        number = name.replace("-", "_")
        if number in _NAMES:
            found.setdefault("hyperparameters", {})[number] = _number(number, said)
        else:
            as_text = isinstance(present.get(name), str)
            found.setdefault("parameters", {})[name] = said if as_text else _value(said)
    return found


def _number(name: str, said: str) -> Any:
    if name in _LISTS:
        return [_value(part.strip()) for part in said.split(",")] if said not in ("", "null") else None
    return said if name in _TEXTS and said != "null" else _value(said)


def _value(said: str) -> Any:
    try:
        value = json.loads(said)
    except ValueError:
        return said
    return value if value is None or isinstance(value, bool | int | float) else said
