"""Writes event files as TensorBoard reads them: series of numbers, and one text. Reads none.

The format is that of TensorFlow's `TFRecordWriter` and its protocol buffers `Event` and `Summary`:

    record   length (uint64), masked CRC-32C of it, data, masked CRC-32C of that; all numbers little-endian
    data     an Event: wall_time (field 1, double), step (2, varint), file_version (3) or summary (5)
    summary  Values (1) of tag (1), simple_value (2, float), tensor (8), metadata (9)

A checksum is linear: that of a record is the one of a record whose changing bytes are all 0, combined by XOR with what
each of these bytes contributes at its place. So a point of a series costs some twenty look-ups, however long its name.

Sources: in tensorflow/core lib/io/record_writer.h, util/event.proto, framework/summary.proto.
"""

import math
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import xor
from typing import Final

_POLYNOMIAL: Final = 0x82F63B78
_ALL: Final = 0xFFFFFFFF
_MASK_DELTA: Final = 0xA282EAD8
_VERSION: Final = b"brain.Event:2"
_LENGTH: Final = struct.Struct("<Q")
_CRC: Final = struct.Struct("<I")
_WALL_TIME: Final = struct.Struct("<d")
_VALUE: Final = struct.Struct("<f")
_DT_STRING: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """One point of a series."""

    step: int
    at: float
    """Seconds since the epoch."""
    value: float


def name_of_file(at: float, what: str) -> str:
    """Return a name by which TensorBoard knows the file; it reads the files of a folder in their order."""
    return f"events.out.tfevents.{max(0, int(at)):010d}.{what}"


def header(at: float) -> bytes:
    """Return what every file begins with."""
    return _record(_event_head(at, 0) + _text_field(3, _VERSION))


def text(tag: str, at: float, markdown: str) -> bytes:
    """Return a text that TensorBoard shows on its page of texts."""
    plugin = _text_field(1, b"text")
    metadata = _text_field(1, plugin)
    shape = _text_field(2, _varint(1 << 3) + _varint(1))
    tensor = _varint(1 << 3) + _varint(_DT_STRING) + _text_field(2, _text_field(2, shape))
    tensor += _text_field(8, markdown.encode("utf-8", "replace"))
    value = _text_field(1, tag.encode("utf-8", "replace")) + _text_field(9, metadata) + _text_field(8, tensor)
    return _record(_event_head(at, 0) + _text_field(5, _text_field(1, value)))


def scalars(tag: str, points: Iterable[Scalar]) -> Iterator[bytes]:
    """Yield the records of one series."""
    layouts: dict[int, _Layout] = {}
    for point in points:
        step = _varint(point.step)
        layout = layouts.get(len(step))
        if layout is None:
            layout = layouts[len(step)] = _Layout.of(tag, len(step))
        yield layout.record(_WALL_TIME.pack(point.at), step, _VALUE.pack(_as_float32(point.value)))


def table(rows: Mapping[str, object]) -> str:
    """Return a table in Markdown; what people named cannot break out of its cell."""
    lines = [f"| {_cell(name)} | {_cell(value)} |" for name, value in rows.items()]
    return "\n".join(["| name | value |", "|---|---|", *lines])


def _cell(value: object) -> str:
    text = " ".join(str(value).split()).replace("&", "&amp;").replace("<", "&lt;")
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("`", "\\`")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """The records of a series whose steps are numbers of the same length: all that does not change of them."""

    head: bytes
    """Length and its checksum, and the key of the wall time."""
    middle: bytes
    """Between step and value."""
    crc: int
    """Of the data with zeros for wall time, step and value."""
    tables: tuple[tuple[int, ...], ...]
    """What each changing byte contributes, in their order."""

    @classmethod
    def of(cls, tag: str, step_length: int) -> "_Layout":
        name = _text_field(1, tag.encode("utf-8", "replace"))
        before = _key(1, 1)
        between = _key(2, 0)
        value_head = name + _key(2, 5)
        summary_head = _key(1, 2) + _varint(len(value_head) + _VALUE.size) + value_head
        middle = _key(5, 2) + _varint(len(summary_head) + _VALUE.size) + summary_head
        zeros = bytes(_WALL_TIME.size), bytes(step_length), bytes(_VALUE.size)
        data = before + zeros[0] + between + zeros[1] + middle + zeros[2]
        places = [
            *range(len(before), len(before) + _WALL_TIME.size),
            *range(len(before) + _WALL_TIME.size + len(between), len(data) - len(middle) - _VALUE.size),
            *range(len(data) - _VALUE.size, len(data)),
        ]
        length = _LENGTH.pack(len(data))
        return cls(
            head=length + _CRC.pack(_mask(_crc32c(length))) + before,
            middle=middle,
            crc=_crc32c(data),
            tables=_contributions([len(data) - 1 - place for place in places]),
        )

    def record(self, at: bytes, step: bytes, value: bytes) -> bytes:
        changing = at + step + value
        crc = reduce(xor, (table[byte] for table, byte in zip(self.tables, changing, strict=True)), self.crc)
        return b"".join((self.head, at, _key(2, 0), step, self.middle, value, _CRC.pack(_mask(crc))))


def _record(data: bytes) -> bytes:
    length = _LENGTH.pack(len(data))
    return length + _CRC.pack(_mask(_crc32c(length))) + data + _CRC.pack(_mask(_crc32c(data)))


def _event_head(at: float, step: int) -> bytes:
    return _key(1, 1) + _WALL_TIME.pack(at) + _key(2, 0) + _varint(step)


def _key(number: int, kind: int) -> bytes:
    return _varint(number << 3 | kind)


def _text_field(number: int, content: bytes) -> bytes:
    return _key(number, 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _as_float32(value: float) -> float:
    """Return a number that fits; one that is too large becomes infinite, as everywhere in the format."""
    try:
        _VALUE.pack(value)
    except OverflowError:
        return math.copysign(math.inf, value)
    return value


# -- checksums --------------------------------------------------------------------------------------------------------


def _first_table() -> tuple[int, ...]:
    out = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
        out.append(crc)
    return tuple(out)


_TABLE: Final = _first_table()


def _crc32c(data: bytes) -> int:
    crc = _ALL
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ _ALL


def _contributions(nums_after: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return for each number what the values of a byte change in the checksum if so many bytes come after it."""
    found: dict[int, tuple[int, ...]] = {}
    values = _TABLE
    for num_after in range(max(nums_after) + 1):
        found[num_after] = values
        values = tuple(_TABLE[value & 0xFF] ^ value >> 8 for value in values)
    return tuple(found[num_after] for num_after in nums_after)


def _mask(crc: int) -> int:
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _ALL
