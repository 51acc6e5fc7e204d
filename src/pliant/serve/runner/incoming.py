"""Reads what a gateway says: requests, and how it wants them computed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pliant.serve.protocol.frames import MAX_GATEWAYS, KernelFrame
from pliant.serve.runner.errors import GatewayLost
from pliant.serve.runner.request import KernelRequest, RequestLink


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings:
    """What the gateway says of batches."""

    batch_size: int = 1
    latency_objective_s: float = 0.5
    num_gateways: int | None = None
    """So many there are; None: it has not said."""


def read_request(frame: KernelFrame, now: float, link: RequestLink) -> KernelRequest:
    """Return the request that a frame is.

    Args:
        frame: a REQUEST.
        now: on the kernel's clock.
        link: that it came by.

    Raises:
        GatewayLost: it has no number, so that nobody could be answered.
    """
    header = frame.header
    number, timeout_s, num_json, params = (header.get(name) for name in ("id", "timeout_s", "json", "params"))
    if not isinstance(number, int):
        raise GatewayLost(f"the gateway has sent a request without a number: {number!r:.100}")
    return KernelRequest(
        id=number,
        api=str(header.get("api")),
        body=bytes(frame.body),
        num_json=num_json if isinstance(num_json, int) else None,
        params=params if isinstance(params, dict) else {},
        takes_parts=header.get("parts") is True,
        deadline=now + timeout_s if isinstance(timeout_s, int | float) else None,
        link=link,
    )


def read_settings(header: Mapping[str, Any], before: BatchSettings) -> BatchSettings:
    """Return the settings of a WELCOME; what makes no sense stays as it was."""
    size, objective_s = header.get("batch_size"), header.get("latency_objective_s")
    if isinstance(size, int) and size >= 1:
        before = replace(before, batch_size=size)
    if isinstance(objective_s, int | float) and objective_s > 0:
        before = replace(before, latency_objective_s=float(objective_s))
    if isinstance(num := header.get("num_gateways"), int) and 1 <= num <= MAX_GATEWAYS:
        before = replace(before, num_gateways=num)
    return before


def read_ids(header: Mapping[str, Any]) -> list[int]:
    """Return the numbers of requests; none if there are none."""
    ids = header.get("ids")
    return [one for one in ids if isinstance(one, int)] if isinstance(ids, list) else []
