"""What gRPC says where HTTP has a status: the code, the sentence, and when to try again."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

import grpc

from pliant.core.errors import InvalidInput, Unauthorized, Unavailable
from pliant.serve.gateway.refused import TRY_AGAIN_S, Refused

_CODES: Final[Mapping[int, grpc.StatusCode]] = {
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    408: grpc.StatusCode.DEADLINE_EXCEEDED,
    413: grpc.StatusCode.RESOURCE_EXHAUSTED,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    501: grpc.StatusCode.UNIMPLEMENTED,
    503: grpc.StatusCode.UNAVAILABLE,
    504: grpc.StatusCode.DEADLINE_EXCEEDED,
}
_MAX_DETAILS: Final = 4000
"""Of a sentence, as it is escaped in a header: clients take 8 KiB of headers in all."""
RETRY_AFTER: Final = "retry-after"


def code_of(status: int) -> grpc.StatusCode:
    """Return the code for a status of HTTP that is no success."""
    default = grpc.StatusCode.INVALID_ARGUMENT if status < 500 else grpc.StatusCode.INTERNAL
    return _CODES.get(status, default)


def refusal_of(error: Exception) -> Refused:
    """Return what a client gets for an error that every protocol knows; others are raised again."""
    match error:
        case Refused():
            return error
        case Unauthorized():
            return Refused(401, str(error))
        case InvalidInput():
            return Refused(400, str(error))
        case Unavailable():
            return Refused(503, str(error), retry_after_s=TRY_AGAIN_S)
        case _:
            raise error


def details_of(message: str) -> str:
    """Return a sentence that fits into a header, whatever it is made of."""
    while len(quote(message, safe=" ", errors="replace")) > _MAX_DETAILS:
        message = message[: max(1, len(message) * 2 // 3)] + "…"
    return message.encode(errors="replace").decode()
