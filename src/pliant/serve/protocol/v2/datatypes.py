"""The datatypes of the protocol, and tensors as raw bytes: little-endian, row-major, nothing between the elements.

BOOL is one byte. BYTES are, for every element, four bytes that say its length, and the element. Example: [b"ab", b""]

    02 00 00 00 61 62    00 00 00 00

BF16 is the upper half of a float32. Nothing is allocated before the bytes that fill it are seen to be there.
"""

import math
import struct
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pliant.core.errors import InvalidInput
from pliant.serve.protocol.v2.fields import show

STORED: Final[Mapping[str, np.dtype[Any]]] = {
    "BOOL": np.dtype("u1"),
    "UINT8": np.dtype("u1"),
    "UINT16": np.dtype("<u2"),
    "UINT32": np.dtype("<u4"),
    "UINT64": np.dtype("<u8"),
    "INT8": np.dtype("i1"),
    "INT16": np.dtype("<i2"),
    "INT32": np.dtype("<i4"),
    "INT64": np.dtype("<i8"),
    "FP16": np.dtype("<f2"),
    "FP32": np.dtype("<f4"),
    "FP64": np.dtype("<f8"),
    "BF16": np.dtype("<u2"),
}
"""How an element is stored in raw bytes; BYTES have no size of their own."""
DATATYPES: Final = (*STORED, "BYTES")
_LENGTH: Final = struct.Struct("<I")


def require_datatype(value: object, field: str) -> str:
    """Return the name of a datatype.

    Raises:
        InvalidInput: there is none of that name.
    """
    if value is None or value == "":
        raise InvalidInput.at(field, f"is missing; say one of {', '.join(DATATYPES)}")
    if not isinstance(value, str) or value not in DATATYPES:
        raise InvalidInput.at(field, f"{show(value)} is not known; say one of {', '.join(DATATYPES)}")
    return value


def read_raw(raw: bytes | memoryview, datatype: str, shape: tuple[int, ...], field: str) -> NDArray[Any]:
    """Return the array that raw bytes are; it shares no memory with them.

    Raises:
        InvalidInput: they are too few or too many for the shape.
    """
    if datatype == "BYTES":
        return _read_elements(memoryview(raw), math.prod(shape), field).reshape(shape)
    stored = STORED[datatype]
    expected = math.prod(shape) * stored.itemsize
    if len(raw) != expected:
        message = f"{len(raw)} bytes, but {datatype} of shape {list(shape)} takes {expected}; send shape or data anew"
        raise InvalidInput.at(field, message)
    flat = np.frombuffer(raw, stored)
    if datatype == "BOOL":
        return flat.astype(bool).reshape(shape)
    if datatype == "BF16":
        return (flat.astype(np.uint32) << np.uint32(16)).view(np.float32).reshape(shape)
    return flat.astype(stored.newbyteorder("=")).reshape(shape)


def _read_elements(raw: memoryview, count: int, field: str) -> NDArray[Any]:
    there = len(raw)
    if count * _LENGTH.size > there:
        message = f"{there} bytes, but {count} elements of BYTES take {count * _LENGTH.size} for their lengths alone"
        raise InvalidInput.at(field, message)
    found = np.empty(count, object)
    at = 0
    for index in range(count):
        start = at + _LENGTH.size
        at = start + _LENGTH.unpack_from(raw, at)[0] if start <= there else start
        if at > there:
            message = f"element {index} of {count} ends at byte {at}, but there are {there}; the data is cut off"
            raise InvalidInput.at(field, message)
        found[index] = bytes(raw[start:at])
    if at != there:
        raise InvalidInput.at(field, f"{there - at} bytes follow the last of {count} elements; send shape or data anew")
    return found


def write_elements(elements: list[bytes]) -> bytes:
    """Return BYTES as raw bytes."""
    return b"".join([part for one in elements for part in (_LENGTH.pack(len(one)), one)])


def write_raw(array: NDArray[Any]) -> memoryview:
    """Return the raw bytes of an array of numbers or truth values."""
    little = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
    return little.reshape(-1).view(np.uint8).data
