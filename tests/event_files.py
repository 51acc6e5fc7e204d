"""Reads event files as the format's documents say, apart from the code that writes them; checks every checksum.

By hand the same files were read with TensorBoard 2.21 (`EventAccumulator`), which gives the same points.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple


class Read(NamedTuple):
    """What an event holds: its time, its step, and the version, the scalars and the texts in it."""

    at: float
    step: int
    version: str
    scalars: dict[str, float]
    texts: dict[str, str]


def crc32c(data: bytes) -> int:
    """Return the Castagnoli checksum, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(crc: int) -> int:
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def records(data: bytes) -> Iterator[bytes]:
    """Yield the records of a file; a checksum that does not fit fails the test."""
    at = 0
    while at < len(data):
        (length,), (crc,) = struct.unpack_from("<Q", data, at), struct.unpack_from("<I", data, at + 8)
        assert masked(crc32c(data[at : at + 8])) == crc, f"the length at {at} is damaged"
        content = data[at + 12 : at + 12 + length]
        assert len(content) == length, f"the record at {at} is cut"
        assert struct.unpack_from("<I", data, at + 12 + length) == (masked(crc32c(content)),), f"damaged at {at}"
        yield content
        at += 16 + length


def fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yield the fields of a message in the wire format of protocol buffers."""
    at = 0

    def varint() -> int:
        nonlocal at
        number = shift = 0
        while True:
            byte = data[at]
            at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    while at < len(data):
        key = varint()
        match key & 7:
            case 0:
                yield key >> 3, varint()
            case kind:
                length = {1: 8, 5: 4}.get(kind) or varint()
                yield key >> 3, data[at : at + length]
                at += length


def events(data: bytes) -> list[Read]:
    """Return what is in a file."""
    return [_event(record) for record in records(data)]


def series(data: bytes) -> dict[str, list[tuple[int, float, float]]]:
    """Return the points of each series of a file: step, time, value."""
    found: dict[str, list[tuple[int, float, float]]] = {}
    for event in events(data):
        for name, value in event.scalars.items():
            found.setdefault(name, []).append((event.step, event.at, value))
    return found


def _event(record: bytes) -> Read:
    at, step, version = 0.0, 0, ""
    scalars: dict[str, float] = {}
    texts: dict[str, str] = {}
    for number, content in fields(record):
        match number, content:
            case 1, bytes():
                (at,) = struct.unpack("<d", content)
            case 2, int():
                step = content
            case 3, bytes():
                version = content.decode()
            case 5, bytes():
                for _, value in fields(content):
                    assert isinstance(value, bytes)
                    _read_value(value, scalars, texts)
    return Read(at, step, version, scalars, texts)


def _read_value(value: bytes, scalars: dict[str, float], texts: dict[str, str]) -> None:
    content = dict(fields(value))
    tag = content[1]
    assert isinstance(tag, bytes)
    if isinstance(number := content.get(2), bytes):
        (scalars[tag.decode()],) = struct.unpack("<f", number)
    if isinstance(tensor := content.get(8), bytes):
        assert isinstance(plugin := content[9], bytes)
        assert b"text" in plugin
        text = dict(fields(tensor))[8]
        assert isinstance(text, bytes)
        texts[tag.decode()] = text.decode()
