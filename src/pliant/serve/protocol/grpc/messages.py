"""Messages of the schema, from bytes to dictionaries.

A dictionary holds what was said: a field that is not there has its default. Messages are dictionaries too, repeated
numbers are arrays, maps are dictionaries, and bytes are views on the message. Of a field that stands there twice but
is not repeated, the last counts; fields that the schema does not know are passed over. The schema has no message
that holds itself, so nothing is nested deeper than it is drawn there.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.core.errors import InvalidInput
from pliant.serve.protocol.grpc.packed import read_packed
from pliant.serve.protocol.grpc.schema import WireField, inference_schema
from pliant.serve.protocol.grpc.wire import WireType, read_text, scan

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
