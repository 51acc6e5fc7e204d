"""The `data` of a tensor in JSON as an array: flat in row-major order, or nested exactly as the shape says.

Numbers are not bent to the datatype: no fraction becomes an integer, no truth value a number, and what does not fit
is refused. Only rounding to a float is: 0.1 as FP32 is the nearest float32. Lists are looked through by functions
written in C, since a request may hold millions of numbers.
"""

import math
from collections.abc import Mapping
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pliant.core.errors import InvalidInput
from pliant.serve.protocol.v2.datatypes import STORED
from pliant.serve.protocol.v2.fields import require_text, show

_NO_JSON: Final = ("FP16", "BF16")
_INTEGER: Final = (frozenset({int}), "a whole number")
_FLOAT: Final = (frozenset({int, float}), "a number")
_TAKEN: Final[Mapping[str, tuple[frozenset[type], str]]] = {
    "BOOL": (frozenset({bool}), "true or false"),
    "BYTES": (frozenset({str}), "a text"),
    "FP32": _FLOAT,
    "FP64": _FLOAT,
}


def read_json(data: object, datatype: str, shape: tuple[int, ...], field: str) -> NDArray[Any]:
    """Return the array that a tensor's data is.

    Raises:
        InvalidInput: there are too few or too many elements, or some are not of the datatype.
    """
    if datatype in _NO_JSON:
        raise InvalidInput.at(field, f"{datatype} has no form in JSON; send binary data, or numbers as FP32")
    flat = _flatten(data, shape, field)
    taken, words = _TAKEN.get(datatype, _INTEGER)
    if not taken.issuperset(map(type, flat)):
        at, value = next((at, value) for at, value in enumerate(flat) if type(value) not in taken)
        raise InvalidInput.at(field, f"element {at} is {show(value)}; {datatype} takes {words}")
    array = _texts(flat, field) if datatype == "BYTES" else _numbers(flat, datatype, field)
    return array.reshape(shape)


def _flatten(data: object, shape: tuple[int, ...], field: str) -> list[Any]:
    if not isinstance(data, list):
        if shape or isinstance(data, dict):
            raise InvalidInput.at(field, f"{show(data)} is no list")
        return [data]
    if shape and data and type(data[0]) is list:
        return _flatten_nested(data, shape, field)
    expected = math.prod(shape)
    if len(data) != expected:
        message = f"{len(data)} elements, but shape {list(shape)} takes {expected}; send shape or data anew"
        raise InvalidInput.at(field, message)
    return data


def _flatten_nested(data: list[Any], shape: tuple[int, ...], field: str) -> list[Any]:
    level: list[Any] = [data]
    for depth, size in enumerate(shape, 1):
        if any(kind is not list for kind in set(map(type, level))):
            raise InvalidInput.at(field, f"has no list everywhere at depth {depth}; {_remedy(shape)}")
        wrong = set(map(len, level)) - {size}
        if wrong:
            raise InvalidInput.at(field, f"a list at depth {depth} has {min(wrong)} elements; {_remedy(shape)}")
        level = list(chain.from_iterable(level))
    return level


def _remedy(shape: tuple[int, ...]) -> str:
    return f"nest the data as shape {list(shape)} says, or send it flat"


def _texts(flat: list[Any], field: str) -> NDArray[Any]:
    array = np.empty(len(flat), object)
    for at, text in enumerate(flat):
        array[at] = require_text(text, f"{field}[{at}]").encode()
    return array


def _numbers(flat: list[Any], datatype: str, field: str) -> NDArray[Any]:
    dtype = np.dtype(bool) if datatype == "BOOL" else STORED[datatype].newbyteorder("=")
    try:
        with np.errstate(over="ignore"):
            array = np.array(flat, dtype)
    except OverflowError:
        raise _too_large(flat, datatype, field) from None
    if dtype.kind == "f" and not np.isfinite(array).all():
        raise _too_large(flat, datatype, field)
    return array


def _too_large(flat: list[Any], datatype: str, field: str) -> InvalidInput:
    dtype = STORED[datatype]
    high = float(np.finfo(dtype).max) if dtype.kind == "f" else np.iinfo(dtype).max
    low = -high if dtype.kind == "f" else np.iinfo(dtype).min
    at, value = next((at, value) for at, value in enumerate(flat) if not low <= value <= high)
    return InvalidInput.at(field, f"element {at} is {show(value)}, which does not fit into {datatype}")
