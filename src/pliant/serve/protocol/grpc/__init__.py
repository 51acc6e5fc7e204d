"""The Open Inference Protocol, version 2, over gRPC: its messages as bytes, without protobuf's own library.

A gateway forwards the bytes of a call: `peek` tells it which model is meant, `read_plain` and `encode_message` do for
the small messages of the other calls; none of them needs numpy. A kernel reads and answers the bytes:

    request = decode_grpc(body)
    body = encode_grpc(request, "iris", "3", outputs)

Knows no HTTP/2.
"""

from pliant.serve.protocol.grpc.encode import encode_message
from pliant.serve.protocol.grpc.plain import has_field, peek, read_plain, says_parameter
from pliant.serve.protocol.grpc.schema import WireCall, inference_schema

__all__ = ["WireCall", "encode_message", "has_field", "inference_schema", "peek", "read_plain", "says_parameter"]
