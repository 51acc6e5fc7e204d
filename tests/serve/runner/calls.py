"""Calls over gRPC with one input of INT64, and what their answers hold."""

from typing import Any

import numpy as np

from pliant.serve.protocol.grpc import encode_message
from pliant.serve.protocol.grpc.messages import decode_message


def call(values: list[int]) -> bytes:
    """Return the bytes of a call with the input `x`."""
    tensor = {"name": "x", "datatype": "INT64", "shape": [len(values)]}
    raw = np.array(values, "<i8").tobytes()
    return encode_message(
        "ModelInferRequest", {"model_name": "digits", "inputs": [tensor], "raw_input_contents": [raw]}
    )


def answer_of(body: bytes) -> dict[str, Any]:
    """Return the outputs of INT64 by their names."""
    said = decode_message("ModelInferResponse", body)
    assert (said["model_name"], said["model_version"]) == ("digits", "3")
    raw = [np.frombuffer(bytes(one), "<i8").tolist() for one in said["raw_output_contents"]]
    return dict(zip([one["name"] for one in said["outputs"]], raw, strict=True))
