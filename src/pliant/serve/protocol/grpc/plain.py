"""Texts and truth values at the top of a message, and nothing else of it. Needs the standard library alone.

A gateway reads no more than that of any request: tensors are passed over, however large they are.
"""

from typing import Final

from pliant.core.errors import InvalidInput
from pliant.serve.protocol.grpc.schema import inference_schema
from pliant.serve.protocol.grpc.wire import WireType, read_text, scan, tag, varint

MAX_PARTS: Final = 10_000
"""Fields of a message at its top, such as names and tensors. A gateway looks at all of them, and has no time."""
_DEFAULTS: Final[dict[str, str | bool]] = {"string": "", "bool": False}


def read_plain(name: str, body: bytes | memoryview) -> dict[str, str | bool]:
    """Return all fields of a message that are texts or truth values and stand there once; the last of each counts.

    Args:
        name: of the message in the schema.
        body: its bytes.

    Raises:
        InvalidInput: this is no such message.
    """
    known = inference_schema().messages[name]
    plain = {number: one for number, one in known.by_number.items() if one.kind in _DEFAULTS and not one.is_repeated}
    found = {one.name: _DEFAULTS[one.kind] for one in plain.values()}
    for number, kind, value in scan(memoryview(body), "", iter(range(MAX_PARTS))):
        field = plain.get(number)
        if field is None:
            continue
        if field.kind == "bool" and not isinstance(value, int):
            raise InvalidInput.at(field.name, "bytes stand where a bool belongs")
        if field.kind == "string" and (isinstance(value, int) or kind is not WireType.BYTES):
            raise InvalidInput.at(field.name, "a number stands where string belongs")
        found[field.name] = bool(value) if isinstance(value, int) else read_text(value, field.name)
    return found


def has_field(name: str, body: bytes | memoryview, field: str) -> bool:
    """Tell whether a message says anything for a field.

    Raises:
        InvalidInput: this is no such message.
    """
    number = inference_schema().messages[name].by_name[field].number
    return any(found == number for found, _, _ in scan(memoryview(body), "", iter(range(MAX_PARTS))))


def peek(body: bytes | memoryview) -> tuple[str, str, str]:
    """Return `model_name`, `model_version` and `id` of a `ModelInferRequest`; what is not said is empty.

    Raises:
        InvalidInput: this is no request.
    """
    found = read_plain("ModelInferRequest", body)
    return str(found["model_name"]), str(found["model_version"]), str(found["id"])


def says_parameter(body: bytes | memoryview, key: str) -> bool:
    """Tell whether a `ModelInferRequest` has a parameter, whatever its value.

    Raises:
        InvalidInput: this is no request.
    """
    number = inference_schema().messages["ModelInferRequest"].by_name["parameters"].number
    start = tag(1, WireType.BYTES) + varint(len(key)) + key.encode()  # of an entry of the map: its key stands first
    for found, _, value in scan(memoryview(body), "", iter(range(MAX_PARTS))):
        if found == number and not isinstance(value, int) and value[: len(start)] == start:
            return True
    return False
