"""Requests and answers of `ModelInfer`: the same rules as over HTTP, and the same nouns.

Tensors come raw, all of them in `raw_input_contents`, or as numbers in their `contents`; the answer is always raw, as
clients read that first.
"""

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pliant.core.errors import InvalidInput
from pliant.serve.protocol.grpc.encode import cut, encode_message
from pliant.serve.protocol.grpc.messages import decode_message
from pliant.serve.protocol.grpc.schema import inference_schema
from pliant.serve.protocol.v2.datatypes import STORED, read_raw, require_datatype
from pliant.serve.protocol.v2.decode import read_output
from pliant.serve.protocol.v2.encode import raw_output
from pliant.serve.protocol.v2.fields import (
    refuse_shared_memory,
    require_distinct,
    require_name,
    require_parameters,
    require_shape,
    show,
)
from pliant.serve.protocol.v2.outputs import datatype_of, select_outputs
from pliant.serve.protocol.v2.request import InferRequest, RequestedOutput, Tensor

_PLACES: Final[Mapping[str, str]] = {
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}


def decode_grpc(body: bytes | memoryview) -> InferRequest:
    """Return the request that a `ModelInferRequest` is.

    Raises:
        InvalidInput: it is none.
    """
    said = decode_message("ModelInferRequest", body)
    inputs, raws = said.get("inputs", []), said.get("raw_input_contents", [])
    if raws and len(raws) != len(inputs):
        message = f"{len(raws)} tensors for {len(inputs)} inputs; send all tensors raw, or none"
        raise InvalidInput.at("raw_input_contents", message)
    found = tuple(_tensor(one, raws[at] if raws else None, at) for at, one in enumerate(inputs))
    require_distinct((one.name for one in found), "inputs")
    return InferRequest(
        id=said.get("id", ""),
        inputs=found,
        outputs=_outputs(said.get("outputs", [])),
        parameters=_parameters(said, "parameters"),
    )


def _outputs(listed: list[dict[str, Any]]) -> tuple[RequestedOutput, ...]:
    found = tuple(
        read_output(one.get("name"), _parameters(one, f"outputs[{at}].parameters"), f"outputs[{at}]")
        for at, one in enumerate(listed)
    )
    require_distinct((one.name for one in found), "outputs")
    return found


def _parameters(said: Mapping[str, Any], field: str) -> dict[str, object]:
    """Return parameters as values: of the choices of one the last that was said counts, and no choice is none."""
    listed: dict[str, dict[str, object]] = said.get("parameters", {})
    return require_parameters({key: [*one.values()][-1] for key, one in listed.items() if one}, field)


def _tensor(said: dict[str, Any], raw: memoryview | None, at: int) -> Tensor:
    field = f"inputs[{at}]"
    parameters = _parameters(said, f"{field}.parameters")
    refuse_shared_memory(parameters, f"{field}.parameters")
    name = require_name(said.get("name"), f"{field}.name")
    datatype = require_datatype(said.get("datatype"), f"{field}.datatype")
    shape = require_shape([] if "shape" not in said else said["shape"].tolist(), f"{field}.shape")
    contents = said.get("contents", {})
    if raw is None:
        data = _read_contents(contents, datatype, shape, f"{field}.contents")
    elif contents:
        raise InvalidInput.at(
            f"{field}.contents", "the request has raw_input_contents too; send all tensors raw, or none"
        )
    else:
        data = read_raw(raw, datatype, shape, f"raw_input_contents[{at}]")
    return Tensor(name=name, datatype=datatype, shape=shape, data=data, parameters=parameters)


def _read_contents(contents: dict[str, Any], datatype: str, shape: tuple[int, ...], field: str) -> NDArray[Any]:
    place = _PLACES.get(datatype)
    if place is None:
        raise InvalidInput.at(field, f"{datatype} has no contents; send it in raw_input_contents")
    others = sorted(set(contents) - {place})
    if others:
        raise InvalidInput.at(field, f"has {others[0]}, but {datatype} belongs into {place}")
    values, expected = contents.get(place, ()), math.prod(shape)
    if len(values) != expected:
        message = f"{len(values)} elements, but shape {list(shape)} takes {expected}; send shape or data anew"
        raise InvalidInput.at(f"{field}.{place}", message)
    if datatype == "BYTES":
        array = np.empty(expected, object)
        array[:] = [bytes(one) for one in values]
        return array.reshape(shape)
    dtype = np.dtype(bool) if datatype == "BOOL" else STORED[datatype].newbyteorder("=")
    numbers: NDArray[Any] = np.asarray(values, dtype) if not expected else values
    _require_range(numbers, dtype, datatype, f"{field}.{place}")
    return numbers.astype(dtype).reshape(shape)


def _require_range(numbers: NDArray[Any], dtype: np.dtype[Any], datatype: str, field: str) -> None:
    if dtype.kind not in "iu" or numbers.dtype == dtype:
        return
    limits = np.iinfo(dtype)
    is_outside = (numbers < limits.min) | (numbers > limits.max)
    if is_outside.any():
        at = int(is_outside.argmax())
        message = f"element {at} is {show(numbers[at].item())}, which does not fit into {datatype}"
        raise InvalidInput.at(field, message)


def encode_grpc(
    request: InferRequest, model_name: str, model_version: str, outputs: Mapping[str, NDArray[Any]]
) -> bytes:
    """Return a `ModelInferResponse`, all of whose tensors are raw.

    Raises:
        InvalidInput: an output that is asked for does not exist.
        BadOutput: the model has answered what the protocol cannot say.
    """
    number = inference_schema().messages["ModelInferResponse"].by_name["raw_output_contents"].number
    said: list[dict[str, object]] = []
    pieces: list[bytes | memoryview] = []
    for wanted, array in select_outputs(request, outputs):
        datatype = datatype_of(wanted.name, array)
        said.append({"name": wanted.name, "datatype": datatype, "shape": array.shape})
        pieces += cut(number, raw_output(wanted.name, datatype, array))
    head = {"model_name": model_name, "model_version": model_version, "id": request.id, "outputs": said}
    return b"".join([encode_message("ModelInferResponse", head), *pieces])
