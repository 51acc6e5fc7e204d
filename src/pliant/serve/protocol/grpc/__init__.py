"""The Open Inference Protocol, version 2, over gRPC: its messages as bytes, without protobuf's own library.

A gateway forwards the bytes of a call: `peek` tells it which model is meant. A kernel reads and answers them:

    request = decode_grpc(body)
    body = encode_grpc(request, "iris", "3", outputs)

The small messages of the other calls go through `decode_message` and `encode_message`. Knows no HTTP/2.
"""

from pliant.serve.protocol.grpc.infer import decode_grpc, encode_grpc, peek
from pliant.serve.protocol.grpc.messages import decode_message, encode_message
from pliant.serve.protocol.grpc.schema import WireCall, inference_schema

__all__ = ["WireCall", "decode_grpc", "decode_message", "encode_grpc", "encode_message", "inference_schema", "peek"]
