"""What an algorithm keeps, as JSON: texts and numbers as they are, all else by its type. Nothing is pickled.

    {"at": (1, 2.5), "w": array([0.5])}    ["dict", [["at", ["tuple", [1, 2.5]]], ["w", ["array", "<f8", [1], "AA…"]]]]

Only exact types are kept: of a subclass it is not known what else it has. What comes back is equal, of the same types
(law), and shares nothing with what was there.
"""

import base64
import binascii
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from pliant.tune.plugins.failures import shown

MAX_PARTS: Final = 500_000
"""Values in all."""
MAX_DEPTH: Final = 50
_MAX_BITS: Final = 4096
_NUMBERS: Final = "biufcSU"
"""Kinds of arrays that hold nothing but what is in them."""
_HINT: Final = "give numbers, texts, bytes, lists, tuples, dicts and arrays of numbers"


class NotEncodable(ValueError):
    """There is something in a value that cannot be kept; says where and what."""


def encode(value: object) -> Any:
    """Return a value as JSON has it.

    Raises:
        NotEncodable: it holds something else, or too much, or itself.
    """
    return _Encoder().encode(value, "", 0)


def decode(encoded: Any) -> Any:
    """Return the value that was encoded.

    Raises:
        ValueError: it is none.
    """
    try:
        return _decode(encoded)
    except (TypeError, KeyError, IndexError, RecursionError, binascii.Error, SyntaxError) as error:
        raise ValueError(f"what was kept cannot be read: {type(error).__name__}: {error!s:.200}") from error


class _Encoder:
    def __init__(self) -> None:
        self._num_parts = 0

    def encode(self, value: object, path: str, depth: int) -> Any:
        self._num_parts += 1
        if self._num_parts > MAX_PARTS:
            raise NotEncodable(f"it holds more than {MAX_PARTS:,} values; keep large tables as arrays of numpy")
        if depth > MAX_DEPTH:
            raise NotEncodable(f"{path[:40]}… lies deeper than {MAX_DEPTH} levels, or holds itself; keep it flat")
        if value is None or type(value) in (bool, str):
            return value
        if type(value) in _WAYS:
            return _WAYS[type(value)](self, value, path, depth)
        if isinstance(value, np.ndarray | np.generic) and type(value).__module__ == "numpy":
            return _array(value, path)
        raise NotEncodable(f"{_at(path)} is a {shown(type(value).__name__, 80)}, which cannot be kept; {_HINT}")

    def _int(self, value: int, path: str, _depth: int) -> Any:
        if value.bit_length() > _MAX_BITS:
            raise NotEncodable(f"{_at(path)} is a number of {value.bit_length()} bits; {_MAX_BITS} are the most")
        return value

    def _float(self, value: float, _path: str, _depth: int) -> Any:
        return value if math.isfinite(value) else ["float", repr(value)]

    def _complex(self, value: complex, _path: str, _depth: int) -> Any:
        return ["complex", repr(value.real), repr(value.imag)]

    def _bytes(self, value: bytes, _path: str, _depth: int) -> Any:
        return ["bytes", base64.b64encode(value).decode()]

    def _bytearray(self, value: bytearray, _path: str, _depth: int) -> Any:
        return ["bytearray", base64.b64encode(value).decode()]

    def _list(self, value: list[object], path: str, depth: int) -> Any:
        return ["list", [self.encode(one, f"{path}[{i}]", depth + 1) for i, one in enumerate(value)]]

    def _tuple(self, value: tuple[object, ...], path: str, depth: int) -> Any:
        return ["tuple", [self.encode(one, f"{path}[{i}]", depth + 1) for i, one in enumerate(value)]]

    def _dict(self, value: dict[object, object], path: str, depth: int) -> Any:
        pairs = []
        for key, one in value.items():
            kept = self.encode(key, f"a key of {_at(path)}", depth + 1)
            name = shown(key, 80) if isinstance(key, str) else "…"
            pairs.append([kept, self.encode(one, f"{path}.{name}".lstrip("."), depth + 1)])
        return ["dict", pairs]


_WAYS: Final[Mapping[type, Callable[[_Encoder, Any, str, int], Any]]] = MappingProxyType(
    {
        int: _Encoder._int,
        float: _Encoder._float,
        complex: _Encoder._complex,
        bytes: _Encoder._bytes,
        bytearray: _Encoder._bytearray,
        list: _Encoder._list,
        tuple: _Encoder._tuple,
        dict: _Encoder._dict,
    }
)


def _at(path: str) -> str:
    return path or "it"


def _array(value: "np.ndarray[Any, Any] | np.generic", path: str) -> Any:
    """Return an array, or a scalar of numpy, as its bytes in the order of C."""
    array = np.asarray(value)
    if array.dtype.kind not in _NUMBERS:
        raise NotEncodable(f"{_at(path)} is an array of {array.dtype}, which cannot be kept; {_HINT}")
    tag = "array" if isinstance(value, np.ndarray) else "scalar"
    return [tag, array.dtype.str, list(array.shape), base64.b64encode(array.tobytes(order="C")).decode()]


def _decode(encoded: Any) -> Any:
    match encoded:
        case None | bool() | int() | float() | str():
            return encoded
        case ["float", str() as text]:
            return float(text)
        case ["complex", str() as real, str() as imaginary]:
            return complex(float(real), float(imaginary))
        case ["bytes" | "bytearray" as tag, str() as text]:
            data = base64.b64decode(text, validate=True)
            return data if tag == "bytes" else bytearray(data)
        case ["list", list() as items]:
            return [_decode(one) for one in items]
        case ["tuple", list() as items]:
            return tuple(_decode(one) for one in items)
        case ["dict", list() as pairs]:
            return {_decode(key): _decode(value) for key, value in pairs}
        case _:
            return _decoded_array(encoded)


def _decoded_array(encoded: Any) -> Any:
    match encoded:
        case ["array" | "scalar" as tag, str() as name, list() as shape, str() as text]:
            dtype = np.dtype(name)
            if dtype.kind not in _NUMBERS:
                raise ValueError(f"no array of {dtype} is kept")
            array = np.frombuffer(base64.b64decode(text, validate=True), dtype).reshape(shape).copy()
            return array if tag == "array" else array[()]
        case _:
            raise ValueError(f"{str(encoded)[:80]} is nothing that is kept")
