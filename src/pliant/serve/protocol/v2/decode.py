"""A request of the Open Inference Protocol, version 2, as it came over HTTP.

The body is JSON, or JSON and then the data of its binary inputs, in their order:

    {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}}]}........

`Inference-Header-Content-Length` says where the JSON ends; 0 says that there is none. Names that the protocol does not
know are passed over, as other servers do, and null is as good as not there. The first thing that is wrong is said.
"""

from typing import Any, Final

from pliant.core.errors import InvalidInput
from pliant.serve.protocol.v2.datatypes import read_raw, require_datatype
from pliant.serve.protocol.v2.fields import (
    MAX_TENSORS,
    refuse_shared_memory,
    require_count,
    require_distinct,
    require_name,
    require_parameters,
    require_shape,
    require_text,
    require_truth,
    show,
)
from pliant.serve.protocol.v2.json_data import read_json
from pliant.serve.protocol.v2.json_text import parse_object
from pliant.serve.protocol.v2.request import RAW_OUTPUT, InferRequest, RequestedOutput, Tensor, raw_request

LENGTH_HEADER: Final = "Inference-Header-Content-Length"
_SIZE: Final = "binary_data_size"


def decode_request(body: bytes | memoryview, num_json: int | None) -> InferRequest:
    """Return the request that a body is.

    Args:
        body: after it was decompressed.
        num_json: so many of its bytes are JSON, and tensors follow; None: all of it is JSON.

    Raises:
        InvalidInput: it is no request.
    """
    if num_json == 0:
        return raw_request(body)
    num_text = len(body) if num_json is None else num_json
    if not 0 < num_text <= len(body) and num_json is not None:
        raise InvalidInput.at(
            LENGTH_HEADER, f"{show(num_json)}, but the body has {len(body)} bytes; send its real value"
        )
    view = memoryview(body)
    said = parse_object(bytes(view[:num_text]))
    parameters = require_parameters(said.get("parameters"), "parameters")
    require_truth(parameters, RAW_OUTPUT, "parameters")
    return InferRequest(
        id="" if said.get("id") is None else require_text(said["id"], "id"),
        inputs=_inputs(said.get("inputs"), view[num_text:], num_json is not None),
        outputs=_outputs(said.get("outputs")),
        parameters=parameters,
    )


def _objects(value: object, field: str) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise InvalidInput.at(field, f"{show(value)} is no list of tensors")
    if len(value) > MAX_TENSORS:
        raise InvalidInput.at(field, f"{len(value)} tensors; at most {MAX_TENSORS} are taken")
    for at, one in enumerate(value):
        if not isinstance(one, dict):
            raise InvalidInput.at(f"{field}[{at}]", f"{show(one)} is no object with a `name`")
    return value


def _inputs(value: object, rest: memoryview, may_be_binary: bool) -> tuple[Tensor, ...]:
    if value is None:
        raise InvalidInput.at("inputs", "is missing; send a list of the model's inputs")
    found = []
    for at, said in enumerate(_objects(value, "inputs")):
        field = f"inputs[{at}]"
        parameters = require_parameters(said.get("parameters"), f"{field}.parameters")
        size = _binary_size(said, parameters, field, len(rest) if may_be_binary else None)
        found.append(_input(said, parameters, field, None if size is None else rest[:size]))
        rest = rest[size or 0 :]
    if rest:
        message = f"{len(rest)} bytes follow the last input; the inputs' `{_SIZE}` do not add up to the body"
        raise InvalidInput.at("inputs", message)
    require_distinct((one.name for one in found), "inputs")
    return tuple(found)


def _binary_size(said: dict[str, Any], parameters: dict[str, object], field: str, there: int | None) -> int | None:
    size = require_count(parameters, _SIZE, f"{field}.parameters")
    if size is None:
        return None
    path = f"{field}.parameters.{_SIZE}"
    if said.get("data") is not None:
        raise InvalidInput.at(path, "the tensor has `data` too; send one of them")
    if there is None:
        raise InvalidInput.at(path, f"binary data needs the header {LENGTH_HEADER}, which says where the JSON ends")
    if size > there:
        raise InvalidInput.at(path, f"{size} bytes, but {there} are left in the body; it is cut off, or the size wrong")
    return size


def _input(said: dict[str, Any], parameters: dict[str, object], field: str, raw: memoryview | None) -> Tensor:
    refuse_shared_memory(parameters, f"{field}.parameters")
    name = require_name(said.get("name"), f"{field}.name")
    datatype = require_datatype(said.get("datatype"), f"{field}.datatype")
    shape = require_shape(said.get("shape"), f"{field}.shape")
    data = said.get("data")
    if raw is not None:
        array = read_raw(raw, datatype, shape, f"{field}.parameters.{_SIZE}")
    elif data is None:
        raise InvalidInput.at(f"{field}.data", f"is missing; send `data`, or binary data and its `{_SIZE}`")
    else:
        array = read_json(data, datatype, shape, f"{field}.data")
    return Tensor(name=name, datatype=datatype, shape=shape, data=array, parameters=parameters)


def _outputs(value: object) -> tuple[RequestedOutput, ...]:
    if value is None:
        return ()
    found = tuple(
        read_output(said.get("name"), said.get("parameters"), f"outputs[{at}]")
        for at, said in enumerate(_objects(value, "outputs"))
    )
    require_distinct((one.name for one in found), "outputs")
    return found


def read_output(name: object, said: object, field: str) -> RequestedOutput:
    """Return an output that is asked for.

    Raises:
        InvalidInput: its name or a parameter is wrong.
    """
    parameters = require_parameters(said, f"{field}.parameters")
    refuse_shared_memory(parameters, f"{field}.parameters")
    return RequestedOutput(
        name=require_name(name, f"{field}.name"),
        binary=require_truth(parameters, "binary_data", f"{field}.parameters"),
        classification=require_count(parameters, "classification", f"{field}.parameters") or None,
        parameters=parameters,
    )
