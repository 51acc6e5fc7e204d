"""JSON in bodies, as a model takes and gives it; strict JSON goes out, so NaN and infinities do not.

Knows no tensors: answers that hold arrays are made plain by their own `tolist` and `item`.
"""

import json
from typing import Any, Final

from pliant.core.errors import InvalidInput
from pliant.serve.protocol.json_size import require_few_values
from pliant.serve.runner.deployed import DeployedModel
from pliant.serve.runner.request import BYTES_TYPE, JSON_TYPE, TEXT_TYPE, KernelRequest, KernelResult

_NOT_FINITE: Final = "the model returned NaN or an infinity, which JSON cannot hold; return None, or text, in its place"


def read_json(body: bytes) -> Any:
    """Return the value that a body is.

    Raises:
        InvalidInput: it is no JSON, or one of too many values, or too deep.
    """
    from pliant.serve.protocol.v2.json_text import require_shallow  # numpy is imported where it is needed

    require_few_values(body)
    require_shallow(body)
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidInput.at("", f"the body is no JSON ({error}); send one JSON value in UTF-8") from error


def json_part(request: KernelRequest) -> bytes:
    """Return the JSON of a body, without what follows it."""
    return request.body if request.num_json is None else request.body[: request.num_json]


def write_json(value: object) -> KernelResult:
    """Return the answer that this value is.

    Raises:
        TypeError: JSON has nothing like it.
        ValueError: it is NaN or an infinity, or holds one.
    """
    try:
        return KernelResult(body=json.dumps(value, default=_plain, allow_nan=False).encode())
    except ValueError as error:
        if "Out of range float" in str(error):
            raise ValueError(_NOT_FINITE) from error
        raise


def write_text(output: str | bytes, extend: bytes = b"") -> KernelResult:
    """Return what a kernel gave as the answer, as it is; `extend` are bytes that follow it."""
    body = output.encode("utf-8", "backslashreplace") if isinstance(output, str) else output
    if extend:
        return KernelResult(body=body + extend, type=BYTES_TYPE, num_json=len(body))
    if is_json(body):
        return KernelResult(body=body, type=JSON_TYPE)
    return KernelResult(body=body, type=TEXT_TYPE if _is_text(body) else BYTES_TYPE)


def is_json(body: bytes) -> bool:
    """Tell whether it is strict JSON."""
    try:
        json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return True


def complete_v2(value: dict[str, Any], request: KernelRequest, model: DeployedModel) -> dict[str, Any]:
    """Return an answer of the Open Inference Protocol with the fields that every one has."""
    named = {"model_name": model.endpoint, "model_version": str(model.version)}
    try:
        asked = read_json(json_part(request))
    except InvalidInput:
        asked = None
    if isinstance(asked, dict) and isinstance(asked.get("id"), str):
        named["id"] = asked["id"]
    return {**named, **value}


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _is_text(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _plain(value: object) -> object:
    """Return an array or a number of numpy's or torch's as JSON can hold it."""
    for name in ("tolist", "item"):
        if callable(plain := getattr(value, name, None)):
            return plain()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    raise TypeError(f"the model returned {type(value).__name__}, which JSON cannot hold; return numbers, text or lists")
