"""Bodies as arrays: requests of the Open Inference Protocol, and plain JSON, for models that compute with tensors."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.errors import InvalidInput
from pliant.serve.protocol.grpc.infer import decode_grpc, encode_grpc
from pliant.serve.protocol.v2 import InferRequest, Tensor, decode_request, encode_response, resolve_raw
from pliant.serve.runner.deployed import DeployedModel
from pliant.serve.runner.metadata import DeclaredTensor, ModelMetadata
from pliant.serve.runner.request import BYTES_TYPE, JSON_TYPE, KernelRequest, KernelResult

Arrays = Mapping[str, NDArray[Any]]
_NUMPY: Mapping[str, str] = {
    "BOOL": "bool",
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
    "BF16": "float32",  # numpy has no such type; float32 holds all its values
    "BYTES": "object",
}


def read_tensors(request: KernelRequest, metadata: ModelMetadata) -> InferRequest:
    """Return what a request asks.

    Raises:
        InvalidInput: it is no request of the protocol.
    """
    if request.api == "grpc":
        return decode_grpc(request.body)
    infer = decode_request(request.body, request.num_json)
    return resolve_raw(infer, metadata.to_json()) if infer.is_raw else infer


def write_tensors(request: KernelRequest, asked: InferRequest, model: DeployedModel, outputs: Arrays) -> KernelResult:
    """Return the answer to a request.

    Raises:
        InvalidInput: an output that is asked for cannot be given, or not in that form.
        BadOutput: the protocol has nothing like an output.
    """
    if request.api == "grpc":
        return KernelResult(body=encode_grpc(asked, model.endpoint, str(model.version), outputs), type=BYTES_TYPE)
    body, num_json = encode_response(asked, model.endpoint, str(model.version), outputs)
    return KernelResult(body=body, type=JSON_TYPE if num_json is None else BYTES_TYPE, num_json=num_json)


def as_json(request: KernelRequest) -> dict[str, Any]:
    """Return a request whose tensors are bytes as one whose tensors are lists.

    Raises:
        InvalidInput: it is no request of the protocol.
    """
    asked = read_tensors(request, ModelMetadata(platform=""))
    value: dict[str, Any] = {"id": asked.id} if asked.id else {}
    if asked.parameters:
        value["parameters"] = dict(asked.parameters)
    value["inputs"] = [_as_lists(tensor) for tensor in asked.inputs]
    if asked.outputs:
        value["outputs"] = [{"name": one.name, "parameters": dict(one.parameters)} for one in asked.outputs]
    return value


def _as_lists(tensor: Tensor) -> dict[str, Any]:
    data = tensor.data.ravel().tolist()
    if tensor.datatype == "BYTES":
        data = [one.decode("utf-8", "surrogateescape") for one in data]
    return {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape), "data": data}


def write_json_tensors(request: KernelRequest, model: DeployedModel, outputs: object) -> KernelResult:
    """Return the answer over gRPC whose outputs a kernel gave as JSON: `[{"name", "datatype", "shape", "data"}]`.

    Raises:
        InvalidInput: they are no tensors.
    """
    given = decode_request(json.dumps({"inputs": outputs}).encode(), None).inputs
    asked = read_tensors(request, ModelMetadata(platform=""))
    return write_tensors(request, asked, model, {tensor.name: tensor.data for tensor in given})


def as_arrays(output: object) -> dict[str, NDArray[Any]]:
    """Return what a model gave as arrays by name; what has no name is called `output`.

    Raises:
        ValueError: it is no array, such as lists of different lengths.
        TypeError: a name is no text.
    """
    if not isinstance(output, Mapping):
        return {"output": _array(output)}
    for name in output:
        if not isinstance(name, str):
            raise TypeError(f"the model returned an output called {name!r:.100}; names are text")
    return {name: _array(value) for name, value in output.items()}


def _array(value: Any) -> NDArray[Any]:
    if callable(detach := getattr(value, "detach", None)):
        value = detach().cpu().numpy()
    return np.asarray(value)


def plain_arrays(value: object, metadata: ModelMetadata) -> dict[str, NDArray[Any]]:
    """Return the inputs that plain JSON is: `{"x": [[1, 2]]}`, or a list, which is the only input.

    Numbers with a fraction become FP32 and whole ones INT64, if the model does not say what it takes.

    Raises:
        InvalidInput: it is neither, or a list in it is no array.
    """
    declared = {one.name: one for one in metadata.inputs}
    if isinstance(value, list):
        value = {next(iter(declared), "input"): value}
    if not isinstance(value, dict) or not value:
        raise InvalidInput.at("", "the body holds no inputs; send a list of numbers, or an object of them by name")
    return {name: _plain_array(name, one, declared.get(name)) for name, one in value.items()}


def _plain_array(name: str, value: object, declared: DeclaredTensor | None) -> NDArray[Any]:
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biufU":
            raise ValueError(f"it holds {array.dtype}")
        if declared is not None:
            return array.astype(_NUMPY.get(declared.datatype) or declared.datatype.lower())
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidInput.at(name, f"is no array of numbers: {error}") from error
    if array.dtype.kind == "U":
        raise InvalidInput.at(name, "holds texts; send numbers")
    return array.astype(np.float32) if array.dtype.kind == "f" else array


def check_inputs(inputs: Arrays, declared: tuple[DeclaredTensor, ...]) -> None:
    """Raise unless these are the inputs that a model takes.

    Raises:
        InvalidInput: a name, a datatype or a shape is another one.
    """
    known = {one.name: one for one in declared}
    if set(inputs) != set(known):
        given = ", ".join(sorted(inputs)) or "none"
        raise InvalidInput.at("inputs", f"{given:.200} were sent; the model takes {', '.join(known) or 'none'}")
    for name, array in inputs.items():
        _check(name, array, known[name])


def _check(name: str, array: NDArray[Any], declared: DeclaredTensor) -> None:
    taken = np.dtype(_NUMPY.get(declared.datatype) or declared.datatype.lower())
    if array.dtype != taken:
        raise InvalidInput.at(name, f"is {array.dtype}; the model takes {declared.datatype}")
    fits = len(array.shape) == len(declared.shape)
    if not fits or any(size not in (-1, given) for given, size in zip(array.shape, declared.shape, strict=True)):
        raise InvalidInput.at(
            name, f"has the shape {list(array.shape)}; the model takes {list(declared.shape)} (-1: any size)"
        )
