"""An answer of the Open Inference Protocol, version 2: JSON, and after it the outputs that are wanted as binary data.

What JSON cannot say is refused, never bent: NaN and infinity (null would be a value that the model has not computed,
and infinity would be lost in it), FP16 and bytes that are no text. The caller is told to ask for binary data, which
holds all of them. FP32 is written with the digits of the double of the same value, and comes back bit for bit.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.errors import InvalidInput
from pliant.serve.protocol.v2.datatypes import write_elements, write_raw
from pliant.serve.protocol.v2.outputs import datatype_of, elements_of, select_outputs
from pliant.serve.protocol.v2.request import RAW_OUTPUT, InferRequest


def encode_response(
    request: InferRequest, model_name: str, model_version: str, outputs: Mapping[str, NDArray[Any]]
) -> tuple[bytes, int | None]:
    """Return the body of an answer, and how many of its bytes are JSON; None if all are.

    Raises:
        InvalidInput: an output that is asked for does not exist, or cannot be said in the way that it is asked for.
        BadOutput: the model has answered what the protocol cannot say at all.
    """
    said: list[dict[str, object]] = []
    pieces: list[bytes | memoryview] = []
    for wanted, array in select_outputs(request, outputs):
        datatype = datatype_of(wanted.name, array)
        one: dict[str, object] = {"name": wanted.name, "datatype": datatype, "shape": list(array.shape)}
        is_binary = wanted.binary if wanted.binary is not None else request.parameters.get(RAW_OUTPUT) is True
        if is_binary:
            pieces.append(raw_output(wanted.name, datatype, array))
            one["parameters"] = {"binary_data_size": len(pieces[-1])}
        else:
            one["data"] = json_output(wanted.name, datatype, array)
        said.append(one)
    head = {"model_name": model_name, "model_version": model_version, "id": request.id, "outputs": said}
    if not request.id:
        del head["id"]
    text = json.dumps(head, separators=(",", ":"), allow_nan=False).encode()
    return (b"".join([text, *pieces]), len(text)) if pieces else (text, None)


def raw_output(name: str, datatype: str, array: NDArray[Any]) -> bytes | memoryview:
    """Return the raw bytes of an output.

    Raises:
        BadOutput: an element is neither bytes nor text.
    """
    return write_elements(elements_of(name, array)) if datatype == "BYTES" else write_raw(array)


def json_output(name: str, datatype: str, array: NDArray[Any]) -> list[Any]:
    """Return the elements of an output, flat, as JSON can hold them.

    Raises:
        InvalidInput: it cannot.
        BadOutput: an element is neither bytes nor text.
    """
    if datatype == "BYTES":
        return [_text(name, at, one) for at, one in enumerate(elements_of(name, array))]
    if datatype == "FP16":
        raise _no_json(name, "is FP16, which has no form in JSON")
    if datatype in ("FP32", "FP64"):
        is_finite = np.isfinite(array).ravel()
        if not is_finite.all():
            at = int(is_finite.argmin())
            raise _no_json(name, f"holds {array.ravel()[at]!s} (element {at}), which has no form in JSON")
    flat: list[Any] = array.ravel().tolist()
    return flat


def _text(name: str, at: int, element: bytes) -> str:
    try:
        return element.decode()
    except UnicodeDecodeError:
        raise _no_json(name, f"holds bytes that are no text in UTF-8 (element {at})") from None


def _no_json(name: str, what: str) -> InvalidInput:
    remedy = 'ask for it with "parameters": {"binary_data": true}'
    return InvalidInput.at("outputs", f"{name!r} {what}; {remedy}")
