"""The hyperparameters of a job: what its script says of them, and before that what its arguments say.

    --lr 0.1 --epochs=5 --amp data.csv     lr 0.1, epochs 5, amp True

Scripts are strangers' code: there are no more than so many, none is longer than so long, and what is called like a
secret is not kept.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Final

from pliant.core.secret_names import HIDDEN, hide_password, names_secret

ParamValue = bool | int | float | str | None

MAX_PARAMS: Final = 500
MAX_NAME: Final = 250
MAX_VALUE: Final = 500
_MAX_INT: Final = 2**53
"""Larger ones are texts: not everybody who reads JSON knows them."""


def params_of_args(args: Sequence[str]) -> dict[str, ParamValue]:
    """Return what the arguments of a script say, as far as they look like options; numbers are numbers."""
    found: dict[str, ParamValue] = {}
    for arg, following in zip_longest(args, args[1:]):
        if arg == "--":
            break
        if not _is_option(arg):
            continue
        name, equals, value = arg.lstrip("-").partition("=")
        if equals:
            found[name] = _value_of(value)
        elif following is None or _is_option(following) or following == "--":
            found[name] = True
        else:
            found[name] = _value_of(following)
    return bounded({name.replace("-", "_"): value for name, value in found.items()})


def as_param(value: object) -> ParamValue:
    """Return a value as it is kept: numbers of other libraries as numbers, and what is nothing of the sort as text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if getattr(value, "shape", None) == () and callable(item := getattr(value, "item", None)):
        found = item()
        return found if isinstance(found, bool | int | float | str) else str(found)
    return str(value)


def bounded(params: Mapping[str, ParamValue]) -> dict[str, ParamValue]:
    """Return as much of some hyperparameters as is kept, without secrets."""
    kept: dict[str, ParamValue] = {}
    for name, value in params.items():
        if len(kept) >= MAX_PARAMS:
            break
        if clean := _clean(name)[:MAX_NAME]:
            kept[clean] = HIDDEN if names_secret(clean) else _bounded_value(value)
    return kept


def merged(before: Mapping[str, ParamValue], newer: Mapping[str, ParamValue]) -> dict[str, ParamValue]:
    """Return hyperparameters with newer ones in their place; those that were there come first."""
    return bounded({**before, **bounded(newer)})


def _is_option(arg: str) -> bool:
    """Tell whether an argument is an option: `--lr`, `-n`, but neither `-5` nor `-`."""
    return len(arg) > 1 and arg[0] == "-" and not isinstance(_value_of(arg), int | float) and bool(arg.strip("-"))


def _value_of(text: str) -> ParamValue:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _bounded_value(value: ParamValue) -> ParamValue:
    if isinstance(value, str):
        return hide_password(_clean(value))[:MAX_VALUE]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _MAX_INT:
        return str(value)[:MAX_VALUE] if value.bit_length() < 2000 else "a number of many digits"
    return value


def _clean(text: str) -> str:
    return "".join(_characters(text[: 4 * MAX_VALUE])).strip()


def _characters(text: str) -> Iterator[str]:
    """Yield what can be shown in a line and stored."""
    for one in text:
        yield one if one.isprintable() else " "
