"""Version 2 of the Open Inference Protocol on the kernel's side, as JSON and with its binary tensors.

    request = resolve_raw(decode_request(body, num_json), metadata)
    outputs = model({tensor.name: tensor.data for tensor in request.inputs})
    body, num_json = encode_response(request, "iris", "3", outputs)

What a caller has got wrong is an `InvalidInput` with the path of the field; what a model answers that the protocol
cannot say is a `BadOutput`. Knows no HTTP and no model.
"""

from pliant.serve.protocol.v2.decode import decode_request
from pliant.serve.protocol.v2.encode import encode_response
from pliant.serve.protocol.v2.outputs import BadOutput
from pliant.serve.protocol.v2.raw_request import resolve_raw
from pliant.serve.protocol.v2.request import InferRequest, RequestedOutput, Tensor

__all__ = [
    "BadOutput",
    "InferRequest",
    "RequestedOutput",
    "Tensor",
    "decode_request",
    "encode_response",
    "resolve_raw",
]
