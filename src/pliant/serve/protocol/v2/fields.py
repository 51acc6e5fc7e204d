"""The fields that a request has in JSON and in gRPC alike: names, shapes and parameters, checked.

Shapes are bounded before anything is made of them: no tensor has more elements than a body may have bytes, also if a
dimension of 0 hides the others.
"""

import math
import reprlib
from collections.abc import Iterable, Mapping
from typing import Final

from pliant.core.errors import InvalidInput

MAX_DIMENSIONS: Final = 32
MAX_ELEMENTS: Final = 2 << 30
MAX_TENSORS: Final = 10_000
"""Inputs of a request, or outputs; so that hostile bytes take seconds at most."""
MAX_PARAMETERS: Final = 1000
_INTEGERS: Final = range(-(1 << 63), 1 << 64)

_SHORT: Final = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60
_SHORT.maxlevel = 2


def show(value: object) -> str:
    """Return a stranger's value for a message: short, whatever it is."""
    return _SHORT.repr(value)


def require_text(value: object, field: str) -> str:
    """Return a text that can be written as UTF-8.

    Raises:
        InvalidInput: it is none.
    """
    if not isinstance(value, str):
        raise InvalidInput.at(field, f"{show(value)} is no text")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidInput.at(field, f"{show(value)} holds half a character (a lone surrogate)") from None
    return value


def require_name(value: object, field: str) -> str:
    """Return the name of a tensor.

    Raises:
        InvalidInput: it is missing, empty, or no text.
    """
    if value is None or value == "":
        raise InvalidInput.at(field, "is missing; name the tensor as the model's metadata does")
    return require_text(value, field)


def require_distinct(names: Iterable[str], field: str) -> None:
    """Raise unless all names differ.

    Raises:
        InvalidInput: two tensors have the same name.
    """
    known: set[str] = set()
    for at, name in enumerate(names):
        if name in known:
            raise InvalidInput.at(f"{field}[{at}].name", f"{show(name)} stands there twice; send each tensor once")
        known.add(name)


def require_shape(value: object, field: str) -> tuple[int, ...]:
    """Return a shape that an array can have.

    Raises:
        InvalidInput: it is missing, no list of sizes, or too large.
    """
    if value is None:
        raise InvalidInput.at(field, "is missing; send the size of every dimension, such as [1, 3]")
    if not isinstance(value, list):
        raise InvalidInput.at(field, f"{show(value)} is no list of sizes, such as [1, 3]")
    if len(value) > MAX_DIMENSIONS:
        raise InvalidInput.at(field, f"has {len(value)} dimensions; at most {MAX_DIMENSIONS} are taken")
    for size in value:
        if type(size) is not int or size < 0:
            raise InvalidInput.at(field, f"{show(value)} holds {show(size)}; a size is a whole number from 0 on")
    if any(size > MAX_ELEMENTS for size in value) or math.prod(size or 1 for size in value) > MAX_ELEMENTS:
        raise InvalidInput.at(field, f"{show(value)} is too large; a tensor has at most {MAX_ELEMENTS} elements")
    return tuple(value)


def require_parameters(value: object, field: str) -> dict[str, object]:
    """Return parameters: texts, numbers and truth values; those that are null are as good as not there.

    Raises:
        InvalidInput: they are something else.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidInput.at(field, f"{show(value)} is no object of parameters")
    if len(value) > MAX_PARAMETERS:
        raise InvalidInput.at(field, f"{len(value)} parameters; at most {MAX_PARAMETERS} are taken")
    found = {key: one for key, one in value.items() if one is not None}
    for key, one in found.items():
        _require_parameter(one, f"{field}.{require_text(key, field)[:60]}")
    return found


def _require_parameter(value: object, field: str) -> None:
    if isinstance(value, str):
        require_text(value, field)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInput.at(field, "is no finite number")
    elif not isinstance(value, int):
        raise InvalidInput.at(field, f"{show(value)} is no text, number or truth value")
    elif value not in _INTEGERS:
        raise InvalidInput.at(field, f"{show(value)} does not fit into 64 bits")


def require_truth(parameters: Mapping[str, object], key: str, field: str) -> bool | None:
    """Return a parameter that is true or false; None if it is not there.

    Raises:
        InvalidInput: it is something else.
    """
    value = parameters.get(key)
    if value is not None and not isinstance(value, bool):
        raise InvalidInput.at(f"{field}.{key}", f"{show(value)} is neither true nor false")
    return value


def require_count(parameters: Mapping[str, object], key: str, field: str) -> int | None:
    """Return a parameter that is a whole number from 0 on; None if it is not there.

    Raises:
        InvalidInput: it is something else.
    """
    value = parameters.get(key)
    if value is not None and (type(value) is not int or value < 0):
        raise InvalidInput.at(f"{field}.{key}", f"{show(value)} is no whole number from 0 on")
    return value if isinstance(value, int) else None


def refuse_shared_memory(parameters: Mapping[str, object], field: str) -> None:
    """Raise if the tensor is to be found in memory that caller and server share.

    Raises:
        InvalidInput: it is.
    """
    for key in parameters:
        if key.startswith("shared_memory_"):
            raise InvalidInput.at(f"{field}.{key[:60]}", "shared memory is not offered here; send the tensor's data")
