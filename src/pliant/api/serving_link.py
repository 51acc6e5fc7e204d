"""The link between server and gateway on the wire: one JSON object per WebSocket text frame, told apart by `kind`.

The messages are the dataclasses of `pliant.core.serving`. A gateway proves its key as a task does its token
(`pliant.core.link_proof`), with its own name in the place of the task's id.
"""

import hashlib
import hmac
from typing import Annotated, Final

from pydantic import Field, TypeAdapter, ValidationError

from pliant.api.faults import problems_of
from pliant.core.errors import InvalidInput
from pliant.core.serving import CountedLoads, FromGateway, ToGateway
from pliant.core.time_counts import are_counts

GATEWAY_PATH: Final = "/v1/gateway"
"""Where the server accepts the link of a gateway; `?gateway=NAME`, proof of its key in the Authorization header."""
MAX_FRAME_BYTES: Final = 16 << 20
"""A gateway takes no longer frame."""
MAX_FROM_GATEWAY_BYTES: Final = 1 << 20
"""The server takes no longer one: what its WebSockets take of anybody."""

_FROM_GATEWAY: Final[TypeAdapter[FromGateway]] = TypeAdapter(Annotated[FromGateway, Field(discriminator="kind")])
_TO_GATEWAY: Final[TypeAdapter[ToGateway]] = TypeAdapter(Annotated[ToGateway, Field(discriminator="kind")])


def gateway_key(secret: bytes) -> str:
    """Return what opens the link to the gateways of a server: derived from its secret, and never sent."""
    return hmac.new(secret, b"gateway", hashlib.sha256).hexdigest()


def encode_from_gateway(message: FromGateway) -> str:
    """Return the frame of a message of a gateway."""
    return _FROM_GATEWAY.dump_json(message).decode()


def encode_to_gateway(message: ToGateway) -> str:
    """Return the frame of a message of the server."""
    return _TO_GATEWAY.dump_json(message).decode()


def decode_from_gateway(frame: str | bytes) -> FromGateway:
    """Return the message in a frame that a gateway sent.

    Raises:
        InvalidInput: the frame is not such a message.
    """
    try:
        message = _FROM_GATEWAY.validate_json(frame)
    except ValidationError as error:
        raise InvalidInput(*problems_of(error)) from error
    if isinstance(message, CountedLoads):
        _require_counts(message)
    return message


def decode_to_gateway(frame: str | bytes) -> ToGateway:
    """Return the message in a frame that the server sent.

    Raises:
        InvalidInput: the frame is not such a message.
    """
    try:
        return _TO_GATEWAY.validate_json(frame)
    except ValidationError as error:
        raise InvalidInput(*problems_of(error)) from error


def _require_counts(message: CountedLoads) -> None:
    for load in message.versions:
        if not are_counts(load.latency_counts) or not are_counts(load.service_counts):
            raise InvalidInput.at(
                "versions", f"the counts of {load.job_id:.50} by size cannot be: send what was counted"
            )
