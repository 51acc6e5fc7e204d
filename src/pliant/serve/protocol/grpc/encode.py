"""Messages of the schema, from dictionaries to bytes. Needs the standard library alone, as a gateway does."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pliant.serve.protocol.grpc.schema import WireField, inference_schema
from pliant.serve.protocol.grpc.wire import WireType, pack_double, pack_float, tag, varint

_FLOATS: Final = {"float": WireType.FIXED32, "double": WireType.FIXED64}


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
        kind = _FLOATS.get(described.kind, WireType.VARINT)
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
