"""A request that is data alone: what the model says of its only input tells which tensor the bytes are."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from pliant.core.errors import InvalidInput
from pliant.serve.protocol.v2.datatypes import DATATYPES, STORED, read_raw
from pliant.serve.protocol.v2.fields import require_shape
from pliant.serve.protocol.v2.request import InferRequest, Tensor

_REMEDY: Final = (
    "send JSON that describes the inputs before the data, and its length as Inference-Header-Content-Length"
)


def resolve_raw(request: InferRequest, metadata: Mapping[str, object]) -> InferRequest:
    """Return the request with a tensor for its raw bytes; a request that is not raw comes back as it is.

    The bytes decide one dimension that the model leaves open (-1). If the first one and another are open, the first
    is a batch of one. For BYTES the body is the only element, without a length before it, as in Triton.

    Args:
        request: of `decode_request`.
        metadata: what the model says of itself: `inputs`, each with `name`, `datatype` and `shape`.

    Raises:
        InvalidInput: the bytes are no such tensor, or the model has not exactly one input.
    """
    if not request.is_raw:
        return request
    raw = request.inputs[0].data
    name, datatype, dimensions = _only_input(metadata)
    if datatype == "BYTES":
        if any(size not in (-1, 1) for size in dimensions):
            raise InvalidInput.at("", f"the body is one element, but {name!r} has the shape {dimensions}; {_REMEDY}")
        data = np.empty((1,) * len(dimensions), object)
        data[...] = raw.tobytes()
    else:
        shape = _shape(dimensions, raw.size, STORED[datatype].itemsize, name)
        data = read_raw(raw.data, datatype, shape, "")
    return replace(request, inputs=(Tensor(name=name, datatype=datatype, shape=data.shape, data=data),))


def _only_input(metadata: Mapping[str, object]) -> tuple[str, str, list[int]]:
    inputs = metadata.get("inputs")
    if not isinstance(inputs, list | tuple) or len(inputs) != 1 or not isinstance(inputs[0], Mapping):
        num = len(inputs) if isinstance(inputs, list | tuple) else "unknown"
        raise InvalidInput.at("", f"the body is data alone, but the model's inputs are {num}, not one; {_REMEDY}")
    said: Mapping[str, Any] = inputs[0]
    name, datatype, shape = said.get("name"), said.get("datatype"), said.get("shape")
    if not isinstance(name, str) or datatype not in DATATYPES or not isinstance(shape, list | tuple):
        raise InvalidInput.at("", f"the body is data alone, and the model does not say what its input is; {_REMEDY}")
    require_shape([1 if size == -1 else size for size in shape], "")
    return name, datatype, list(shape)


def _shape(dimensions: list[int], num_bytes: int, itemsize: int, name: str) -> tuple[int, ...]:
    shape = list(dimensions)
    free = [at for at, size in enumerate(shape) if size == -1]
    if len(free) == 2 and free[0] == 0:
        shape[0] = 1
        free = free[1:]
    if len(free) > 1:
        raise InvalidInput.at("", f"the shape of {name!r}, {dimensions}, is too open for data alone; {_REMEDY}")
    for at in free:
        step = itemsize * math.prod(size for size in shape if size != -1)
        if not step or num_bytes % step:
            message = f"{num_bytes} bytes are no whole number of parts of {name!r}, whose shape is {dimensions}"
            raise InvalidInput.at("", f"{message}; {_REMEDY}")
        shape[at] = num_bytes // step
    return tuple(shape)
