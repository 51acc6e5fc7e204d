"""Frames: how the members of a generation cut what they say to each other into pieces.

A frame is its length (4 bytes, big-endian) and its parts, each after its own length. `set a xy` is 22 bytes: 18, then
3 "set", 1 "a" and 2 "xy". Knows no connection.
"""

import struct
from collections.abc import Sequence
from typing import Final

MAX_BYTES: Final = 1 << 20
"""All parts of a frame together; they are addresses."""
_LENGTH: Final = struct.Struct("!I")


def pack(parts: Sequence[bytes]) -> bytes:
    """Return a frame."""
    return enclose(b"".join(_LENGTH.pack(len(part)) + part for part in parts))


def enclose(body: bytes) -> bytes:
    """Return a frame's body after its length."""
    return _LENGTH.pack(len(body)) + body


def unpack(body: bytes) -> list[bytes]:
    """Return the parts of a frame without its length.

    Raises:
        ValueError: the lengths of the parts do not fit into it.
    """
    parts, at = [], 0
    while at < len(body):
        start = at + _LENGTH.size
        at = start + _LENGTH.unpack_from(body, at)[0] if start <= len(body) else start
        if at > len(body):
            raise ValueError(f"a part that ends {at - len(body)} bytes after its frame")
        parts.append(body[start:at])
    return parts


def take_frame(buffer: bytearray, max_bytes: int = MAX_BYTES) -> bytes | None:
    """Take the first whole frame out of a buffer and return it without its length; None if there is none yet.

    Raises:
        ValueError: it is longer than `max_bytes`.
    """
    if len(buffer) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack_from(buffer)
    if length > max_bytes:
        raise ValueError(f"a frame of {length} bytes; at most {max_bytes} are taken")
    end = _LENGTH.size + length
    if len(buffer) < end:
        return None
    body = bytes(buffer[_LENGTH.size : end])
    del buffer[:end]
    return body
