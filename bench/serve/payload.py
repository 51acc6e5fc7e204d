"""What is asked: requests of the Open Inference Protocol, so that every side gets the same bytes."""

import json
import random
import struct

from bench.serve.load import Target
from pliant.serve.protocol.grpc import encode_message

ECHO, CNN = "echo", "cnn"
NUM_PIXELS = 784


def echo_target(port: int, path: str, token: str, num_bytes: int, *, is_grpc: bool = False) -> Target:
    """Return a request whose body has so many bytes; over gRPC, one with the same text in it."""
    empty = _echo_body("")
    text = "".join(random.Random(0).choices("abcdefghijklmnopqrstuvwxyz", k=max(1, num_bytes - len(empty))))
    body = _echo_body(text)
    if is_grpc:
        tensor = {"name": "x", "datatype": "BYTES", "shape": [1]}
        raw = struct.pack("<I", len(text)) + text.encode()
        body = encode_message(
            "ModelInferRequest", {"model_name": ECHO, "inputs": [tensor], "raw_input_contents": [raw]}
        )
    return Target(port=port, path=path, token=token, body=body, least_bytes=len(text), is_grpc=is_grpc)


def cnn_target(port: int, path: str, token: str) -> Target:
    """Return a request with one image."""
    pixels = [random.Random(0).randrange(256) for _ in range(NUM_PIXELS)]
    tensor = {"name": "x", "shape": [1, NUM_PIXELS], "datatype": "FP32", "data": pixels}
    body = json.dumps({"inputs": [tensor]}, separators=(",", ":")).encode()
    return Target(port=port, path=path, token=token, body=body, least_bytes=10)


def _echo_body(text: str) -> bytes:
    tensor = {"name": "x", "shape": [1], "datatype": "BYTES", "data": [text]}
    return json.dumps({"inputs": [tensor]}, separators=(",", ":")).encode()
