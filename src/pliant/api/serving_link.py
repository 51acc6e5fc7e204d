"""The link between server and gateway on the wire: one JSON object per WebSocket text frame, told apart by `kind`.

The messages are the dataclasses of `pliant.core.serving`. A gateway proves its key as a task does its token
(`pliant.core.link_proof`), with its own name in the place of the task's id.
"""

import hashlib
import hmac
import math
import re
from collections.abc import Collection, Mapping
from typing import Annotated, Final

from pydantic import Field, TypeAdapter, ValidationError

from pliant.api.faults import problems_of
from pliant.core.errors import InvalidInput
from pliant.core.job import JobId
from pliant.core.serving import (
    AskTotals,
    CountedLoads,
    CountedTimes,
    FromGateway,
    GatewayHello,
    SharedRow,
    SharedUse,
    ToGateway,
    TotalsElsewhere,
    TotalsSaid,
    TotalsWanted,
    UseElsewhere,
)
from pliant.core.time_counts import are_counts

GATEWAY_PATH: Final = "/v1/gateway"
"""Where the server accepts the link of a gateway; `?gateway=NAME`, proof of its key in the Authorization header."""
MAX_FRAME_BYTES: Final = 16 << 20
"""A gateway takes no longer frame."""
MAX_FROM_GATEWAY_BYTES: Final = 1 << 20
"""The server takes no longer one: what its WebSockets take of anybody."""
MAX_ROWS: Final = 2000
"""Limits that one message says the use of; what more there is comes in the next one."""
MAX_USE: Final = 1_000_000
"""Requests, or seconds, that a gateway can use of one limit."""
MAX_JOBS: Final = 64
"""Versions that one question about totals names."""
_MAX_ANSWERS: Final = 64
"""Of gateways, to one question."""
_MAX_SIZES: Final = 128
"""Of batches."""
_MOST: Final = 1 << 53
_KEY_DIGITS: Final = 32

_HOST_PORT: Final = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253}):[0-9]{1,5}")
_URL: Final = re.compile(f"https?://{_HOST_PORT.pattern}")

_FROM_GATEWAY: Final[TypeAdapter[FromGateway]] = TypeAdapter(Annotated[FromGateway, Field(discriminator="kind")])
_TO_GATEWAY: Final[TypeAdapter[ToGateway]] = TypeAdapter(Annotated[ToGateway, Field(discriminator="kind")])


def gateway_key(secret: bytes, machine: str = "", fingerprint: str = "") -> str:
    """Return what opens the link of the gateways of a machine: derived from the server's secret.

    Args:
        secret: of the server.
        machine: another one, which is sent its key over the link of its agent; empty: the server's own, whose key is
            never sent.
        fingerprint: of that machine's own key in the pool: a later machine of its name has another one.
    """
    whose = f"gateway {machine} {fingerprint}" if machine else "gateway"
    return hmac.new(secret, whose.encode(), hashlib.sha256).hexdigest()


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
    match message:
        case GatewayHello():
            _require_places(message)
        case CountedLoads():
            _require_counts(message)
        case SharedUse():
            _require_rows(message.rows)
        case AskTotals():
            _require_few("job_ids", message.job_ids)
        case TotalsSaid():
            _require_totals(message.totals)
    return message


def decode_to_gateway(frame: str | bytes) -> ToGateway:
    """Return the message in a frame that the server sent.

    Raises:
        InvalidInput: the frame is not such a message.
    """
    try:
        message = _TO_GATEWAY.validate_json(frame)
    except ValidationError as error:
        raise InvalidInput(*problems_of(error)) from error
    match message:
        case UseElsewhere():
            _require_rows(message.rows)
        case TotalsWanted():
            _require_few("job_ids", message.job_ids)
        case TotalsElsewhere():
            _require_few("totals", message.totals, _MAX_ANSWERS)
            for totals in message.totals:
                _require_totals(totals)
    return message


def can_be_counted(times: CountedTimes) -> bool:
    """Tell whether a gateway can have counted this: nothing is negative or beyond all measure."""
    sums = (times.success, times.fail, times.queue, times.service, *times.batches.values())
    return (
        len(times.batches) <= _MAX_SIZES
        and all(0 <= size < _MOST for size in times.batches)
        and all(0 <= num < _MOST and 0 <= seconds < _MOST for num, seconds in sums)
        and (times.idle_s is None or 0 <= times.idle_s < _MOST)
    )


def _require_places(hello: GatewayHello) -> None:
    """Raise InvalidInput if people cannot be told where a gateway says that it is."""
    if _URL.fullmatch(hello.http_url) is None:
        raise InvalidInput.at("http_url", f"{hello.http_url!r:.200} is no address: send http(s)://HOST:PORT")
    if hello.grpc_address and _HOST_PORT.fullmatch(hello.grpc_address) is None:
        raise InvalidInput.at("grpc_address", f"{hello.grpc_address!r:.200} is no address: send HOST:PORT, or nothing")


def _require_counts(message: CountedLoads) -> None:
    for load in message.versions:
        if not are_counts(load.latency_counts) or not are_counts(load.service_counts):
            raise InvalidInput.at(
                "versions", f"the counts of {load.job_id:.50} by size cannot be: send what was counted"
            )


def _require_rows(rows: Mapping[str, SharedRow]) -> None:
    _require_few("rows", rows, MAX_ROWS)
    for key, row in rows.items():
        if len(key) != _KEY_DIGITS or not set(key) <= set("0123456789abcdef"):
            raise InvalidInput.at("rows", f"{key:.50} is no key: send {_KEY_DIGITS} hex digits")
        if not 0 <= row.num <= MAX_USE or not math.isfinite(row.spent_s) or not 0 <= row.spent_s <= MAX_USE:
            raise InvalidInput.at("rows", f"{row} cannot be used: send numbers from 0 to {MAX_USE}")


def _require_totals(totals: Mapping[JobId, CountedTimes]) -> None:
    _require_few("totals", totals)
    for job_id, times in totals.items():
        if not can_be_counted(times):
            raise InvalidInput.at("totals", f"what is said of {job_id:.50} cannot be: send what was counted")


def _require_few(field: str, several: Collection[object], most: int = MAX_JOBS) -> None:
    if len(several) > most:
        raise InvalidInput.at(field, f"there are {len(several)}: send at most {most}")
