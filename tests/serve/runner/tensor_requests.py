"""Requests of the Open Inference Protocol to a model of tensors, in JSON, and what its answers hold."""

import json
from typing import Any

import numpy as np
from tests.serve.runner.served import Batch, a_request

from pliant.serve.runner.request import KernelResult
from pliant.serve.runner.tensor_model import TensorModel


def tensor(name: str, data: Any, datatype: str = "FP32") -> dict[str, Any]:
    array = np.asarray(data)
    return {"name": name, "datatype": datatype, "shape": list(array.shape), "data": array.ravel().tolist()}


def asking(*tensors: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"inputs": list(tensors), **more}).encode()


def answers(model: TensorModel, *bodies: bytes, api: str = "v2") -> list[KernelResult]:
    requests = [a_request(number, body, api=api) for number, body in enumerate(bodies)]
    batch = Batch.of(*requests)
    model.serve(batch)
    return [batch.answered[request.id] for request in requests]


def outputs(result: KernelResult) -> dict[str, Any]:
    said = json.loads(result.body)
    assert result.status == 200, said
    return {one["name"]: np.reshape(one["data"], one["shape"]).tolist() for one in said["outputs"]}
