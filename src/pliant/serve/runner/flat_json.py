"""Bodies of Triton's generate extension: plain JSON by the names of inputs and outputs.

    {"text_input": "Once", "length": 3, "parameters": {"seed": 7}}  →  {"model_name": "tales", …, "text_output": "upon"}

A value becomes the tensor that the model declares by that name; where it has fewer dimensions, the first ones are 1: a
text for `[-1]` is one of shape [1], and a list for `[-1, 4]` one row. A model that declares nothing takes any names:
texts are BYTES, truth values BOOL, whole numbers INT64, others FP32. What stands in `parameters` is an input, too, if
the model takes one of that name; otherwise it is a parameter of the request. `id` comes back. An output of one element
is that element, every other one a flat list.

https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_generate.md
"""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from pliant.core.errors import InvalidInput
from pliant.serve.protocol.v2 import InferRequest, Tensor
from pliant.serve.protocol.v2.encode import json_output
from pliant.serve.protocol.v2.fields import MAX_TENSORS, require_parameters, require_text
from pliant.serve.protocol.v2.json_data import read_json
from pliant.serve.protocol.v2.json_text import parse_object
from pliant.serve.protocol.v2.outputs import datatype_of, select_outputs
from pliant.serve.runner.deployed import DeployedModel
from pliant.serve.runner.json_values import write_json
from pliant.serve.runner.metadata import DeclaredTensor, ModelMetadata
from pliant.serve.runner.request import KernelResult


def read_flat(body: bytes, metadata: ModelMetadata) -> InferRequest:
    """Return what a request asks.

    Raises:
        InvalidInput: it is none, or has a name that the model does not take, or a value that is not of its datatype.
    """
    said = parse_object(body)
    declared = {one.name: one for one in metadata.inputs}
    number = said.pop("id", None)
    more = said.pop("parameters", None)
    if more is not None and not isinstance(more, dict):
        raise InvalidInput.at("parameters", "is no object; send values by name")
    inputs = said | {name: value for name, value in (more or {}).items() if not declared or name in declared}
    if len(inputs) > MAX_TENSORS:
        raise InvalidInput.at("", f"{len(inputs)} inputs; at most {MAX_TENSORS} are taken")
    if unknown := sorted(set(inputs) - set(declared)) if declared else []:
        raise InvalidInput.at(unknown[0], f"is none of the model's inputs; it takes {', '.join(declared)}")
    return InferRequest(
        id="" if number is None else require_text(number, "id"),
        inputs=tuple(_tensor(name, value, declared.get(name)) for name, value in inputs.items()),
        parameters=require_parameters(
            {name: value for name, value in (more or {}).items() if name not in inputs}, "parameters"
        ),
    )


def write_flat(asked: InferRequest, model: DeployedModel, outputs: Mapping[str, NDArray[Any]]) -> KernelResult:
    """Return the answer to a request.

    Raises:
        InvalidInput: JSON cannot hold an output.
        BadOutput: the protocol has nothing like it.
    """
    said: dict[str, object] = {"id": asked.id} if asked.id else {}
    said |= {"model_name": model.endpoint, "model_version": str(model.version)}
    for wanted, array in select_outputs(asked, outputs):
        flat = json_output(wanted.name, datatype_of(wanted.name, array), array)
        said[wanted.name] = flat[0] if len(flat) == 1 else flat
    return write_json(said)


def _tensor(name: str, value: object, declared: DeclaredTensor | None) -> Tensor:
    datatype = _datatype_of(name, value) if declared is None else declared.datatype
    shape = _shape_of(value)
    data = read_json(value, datatype, shape, name)
    num_missing = (1 if declared is None else len(declared.shape)) - len(shape)
    data = data.reshape((1,) * num_missing + shape)
    return Tensor(name=name, datatype=datatype, shape=data.shape, data=data)


def _shape_of(value: object) -> tuple[int, ...]:
    """Return the shape that the first of nested lists say; `read_json` compares all others with it."""
    shape = []
    while isinstance(value, list):
        shape.append(len(value))
        value = value[0] if value else None
    return tuple(shape)


def _datatype_of(name: str, value: object) -> str:
    level = [value]
    while any(type(one) is list for one in level):
        level = [inner for one in level for inner in (one if type(one) is list else [one])]
    kinds = set(map(type, level))
    if kinds <= {int}:
        return "INT64"
    for taken, datatype in (({int, float}, "FP32"), ({bool}, "BOOL"), ({str}, "BYTES")):
        if kinds <= taken:
            return datatype
    raise InvalidInput.at(name, "is neither numbers, nor texts, nor truth values; send one of these, or lists of them")
