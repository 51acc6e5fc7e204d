"""Protobuf's wire format: fields with numbers, one after the other, and nothing around them.

A field is a varint of `number << 3 | type`, and a value. Example: field 1, the text "ab", and field 2, the number 300

    0a 02 61 62    10 ac 02

A varint holds seven bits in a byte, the lowest first; the highest bit of a byte says that more follow. Bytes come from
strangers: lengths are compared with what is there before anything is cut. Knows no message.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Final

from pliant.core.errors import InvalidInput

MAX_VARINT_BYTES: Final = 10
_MASK: Final = (1 << 64) - 1


class WireType(IntEnum):
    """How a value is stored; 3 and 4, of groups, are long out of use."""

    VARINT = 0
    FIXED64 = 1
    BYTES = 2
    FIXED32 = 5


_SIZES: Final = {WireType.FIXED64: 8, WireType.FIXED32: 4}


def scan(
    message: memoryview, field: str, allowance: Iterator[object]
) -> Iterator[tuple[int, WireType, int | memoryview]]:
    """Yield number, type and value of every field; values other than varints are cut from the message, not copied.

    Args:
        message: its bytes.
        field: where it stands, for what is said about errors.
        allowance: one is taken for every field; messages in each other share it.

    Raises:
        InvalidInput: this is no message, or has more fields than are allowed.
    """
    at, end = 0, len(message)
    while at != end:
        if next(allowance, None) is None:
            raise InvalidInput.at(field, "the message has too many fields; send tensors raw, and fewer of them")
        tag, at = read_varint(message, at, field)
        number, code = tag >> 3, tag & 7
        if not 0 < number < 1 << 29 or code not in (0, 1, 2, 5):
            raise InvalidInput.at(field, f"byte {at} is no field of a protobuf message (number {number}, type {code})")
        kind = WireType(code)
        value: int | memoryview
        size = _SIZES.get(kind, 0)
        if kind in (WireType.VARINT, WireType.BYTES):
            size, at = read_varint(message, at, field)
        if kind is WireType.VARINT:
            value = size
        elif size > end - at:
            raise InvalidInput.at(
                field, f"field {number} has {size} bytes, but {end - at} follow; the message is cut off"
            )
        else:
            value = message[at : at + size]
            at += size
        yield number, kind, value


def read_varint(message: memoryview, at: int, field: str) -> tuple[int, int]:
    """Return a varint of at most 64 bits, and where it ends.

    Raises:
        InvalidInput: it is cut off, or has no end.
    """
    value = 0
    for shift, byte in zip(range(0, 7 * MAX_VARINT_BYTES, 7), message[at : at + MAX_VARINT_BYTES], strict=False):
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK, at + shift // 7 + 1
    raise InvalidInput.at(field, f"the number at byte {at} is cut off, or has more than {MAX_VARINT_BYTES} bytes")


def read_text(value: memoryview, field: str) -> str:
    """Return a text.

    Raises:
        InvalidInput: it is no UTF-8.
    """
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput.at(field, f"byte {error.start} is not UTF-8") from None


def varint(value: int) -> bytes:
    """Return a number as a varint; a negative one as 64 bits."""
    value &= _MASK
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def tag(number: int, kind: WireType) -> bytes:
    """Return what stands before the value of a field."""
    return varint(number << 3 | kind)


def pack_float(value: Any) -> bytes:
    """Return a number as a float."""
    return struct.pack("<f", value)


def pack_double(value: Any) -> bytes:
    """Return a number as a double."""
    return struct.pack("<d", value)
