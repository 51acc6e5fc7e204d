"""Messages of the schema as dictionaries, and as bytes.

A dictionary holds what was said: a field that is not there has its default. Messages are dictionaries too, repeated
numbers are arrays, maps are dictionaries, and bytes are views on the message. Of a field that stands there twice but
is not repeated, the last counts; fields that the schema does not know are passed over. The schema has no message
that holds itself, so nothing is nested deeper than it is drawn there.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.core.errors import InvalidInput
from pliant.serve.protocol.grpc.schema import WireField, inference_schema
from pliant.serve.protocol.grpc.wire import WireType, pack_double, pack_float, read_packed, scan, tag, varint

MAX_FIELDS: Final = 1 << 18
"""In a message and those in it together; numbers that are packed, as every library does it, are one field. So hostile
bytes take seconds at most, however they are made up."""
_FLOATS: Final[Mapping[str, tuple[WireType, np.dtype[Any]]]] = {
    "float": (WireType.FIXED32, np.dtype("<f4")),
    "double": (WireType.FIXED64, np.dtype("<f8")),
}
_INTEGERS: Final[Mapping[str, np.dtype[Any]]] = {
    "bool": np.dtype(bool),
    "int32": np.dtype(np.uint32),
    "uint32": np.dtype(np.uint32),
    "int64": np.dtype(np.uint64),
    "uint64": np.dtype(np.uint64),
}
_SIGNED: Final[Mapping[str, np.dtype[Any]]] = {"int32": np.dtype(np.int32), "int64": np.dtype(np.int64)}


def decode_message(
    name: str, body: bytes | memoryview, field: str = "", allowance: Iterator[object] | None = None
) -> dict[str, Any]:
    """Return the fields that a message has.

    Args:
        name: of the message in the schema.
        body: its bytes.
        field: where it stands, for what is said about errors.
        allowance: one is taken for every field; None: `MAX_FIELDS` are allowed.

    Raises:
        InvalidInput: this is no such message.
    """
    known = inference_schema().messages[name].by_number
    found: dict[str, Any] = {}
    left: Iterator[object] = iter(range(MAX_FIELDS)) if allowance is None else allowance
    for number, kind, value in scan(memoryview(body), field, left):
        described = known.get(number)
        if described is not None:
            path = f"{field}.{described.name}" if field else described.name
            _add(found, described, _Said(kind, value, path, left))
    for described in known.values():
        if described.name in found:
            found[described.name] = _finish(described, found[described.name])
    return found


class _Said(NamedTuple):
    """What stands on the wire for a field, and where."""

    kind: WireType
    value: int | memoryview
    path: str
    allowance: Iterator[object]


def _add(found: dict[str, Any], described: WireField, said: _Said) -> None:
    if not described.is_repeated:
        found.pop(described.name, None)  # what was said last stands last: it is the choice where there is one
        found[described.name] = _value(described, said)
        return
    listed = found.setdefault(described.name, [])
    if described.is_number:
        listed.append(_numbers(described.kind, said))
    else:
        listed.append(_value(described, said._replace(path=f"{said.path}[{len(listed)}]")))


def _finish(described: WireField, value: Any) -> Any:
    if described.is_map:
        return {one.get("key", ""): one["value"] for one in value if "value" in one}
    if described.is_repeated and described.is_number:
        return value[0] if len(value) == 1 else np.concatenate(value)
    return value


def _value(described: WireField, said: _Said) -> Any:
    kind, value, path, allowance = said
    if described.is_number:
        if kind is WireType.BYTES:
            raise InvalidInput.at(path, f"bytes stand where a {described.kind} belongs")
        return _numbers(described.kind, said)[0].item()
    if isinstance(value, int) or kind is not WireType.BYTES:
        raise InvalidInput.at(path, f"a number stands where {described.kind} belongs")
    if described.kind == "string":
        return read_text(value, path)
    return value if described.kind == "bytes" else decode_message(described.kind, value, path, allowance)


def read_text(value: memoryview, field: str) -> str:
    """Return a text.

    Raises:
        InvalidInput: it is no UTF-8.
    """
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput.at(field, f"byte {error.start} is not UTF-8") from None


def _numbers(name: str, said: _Said) -> NDArray[Any]:
    kind, value, path, _ = said
    if name in _FLOATS:
        expected, dtype = _FLOATS[name]
        if isinstance(value, int) or kind not in (expected, WireType.BYTES) or len(value) % dtype.itemsize:
            raise InvalidInput.at(path, f"this is no {name}")
        return np.frombuffer(value, dtype)
    if isinstance(value, int):
        values = np.array([value], np.uint64)
    elif kind is WireType.BYTES:
        values = read_packed(value, path)
    else:
        raise InvalidInput.at(path, f"this is no {name}")
    return values.astype(_INTEGERS[name]).view(_SIGNED.get(name, _INTEGERS[name]))


def encode_message(name: str, values: Mapping[str, Any]) -> bytes:
    """Return the bytes of a message; what is in the dictionary is said, also if it is the default.

    Args:
        name: of the message in the schema.
        values: of its fields; a message may stand there as a dictionary, or as its bytes.
    """
    known = inference_schema().messages[name].by_name
    return b"".join([piece for key, value in values.items() for piece in _field(known[key], value)])


def _field(described: WireField, value: Any) -> Iterable[bytes | memoryview]:
    if described.is_map:
        value = [{"key": key, "value": one} for key, one in value.items()]
    if not described.is_repeated:
        return _one(described, value)
    if described.is_number:
        packed = b"".join([_number(described.kind, one) for one in value])
        return cut(described.number, packed) if packed else ()
    return [piece for one in value for piece in _one(described, one)]


def _one(described: WireField, value: Any) -> Iterable[bytes | memoryview]:
    if described.is_number:
        kind = _FLOATS[described.kind][0] if described.kind in _FLOATS else WireType.VARINT
        return tag(described.number, kind), _number(described.kind, value)
    if described.kind == "string":
        return cut(described.number, value.encode())
    is_whole = isinstance(value, bytes | memoryview)
    return cut(described.number, value if is_whole else encode_message(described.kind, value))


def cut(number: int, value: bytes | memoryview) -> tuple[bytes, bytes, bytes | memoryview]:
    """Return a field of bytes in pieces, without a copy of them."""
    return tag(number, WireType.BYTES), varint(len(value)), value


def _number(kind: str, value: Any) -> bytes:
    if kind == "float":
        return pack_float(value)
    return pack_double(value) if kind == "double" else varint(int(value))
