"""Whether a kernel still lives: it answers what it holds, or PING if it holds nothing. Pure."""

from typing import Final

from pliant.serve.gateway.inference import InferenceRequest
from pliant.serve.gateway.kernel_link import KernelLink

PING_AFTER_S: Final = 5.0
"""Of silence of a kernel that holds nothing."""
PONG_WITHIN_S: Final = 10.0


def needs_ping(link: KernelLink, now: float) -> bool:
    """Tell whether it is time to ask for a sign of life."""
    if not link.is_ready or link.busy_since is not None or link.ping_at is not None:
        return False  # before READY a kernel loads its model and can answer nothing
    return now - link.received_at > PING_AFTER_S


def waits_for_clients(link: KernelLink) -> bool:
    """Tell whether the clients of all that a kernel holds have not read what there is: it may compute nothing then.

    It is not to be blamed for that; a client that does not read is ended elsewhere.
    """
    if link.busy_since is None or link.room.abandoned:
        return False
    return all(isinstance(one, InferenceRequest) and one.parts for one in link.room.held.values())


def find_hang(link: KernelLink, now: float, execution_timeout_s: float) -> str | None:
    """Return why a kernel counts as hung, in words that follow its name; None if it does not."""
    if link.busy_since is not None:
        if now - link.busy_since > execution_timeout_s:
            return f"has computed for more than {execution_timeout_s:g} s without an answer"
    elif link.ping_at is not None and now - max(link.ping_at, link.received_at) > PONG_WITHIN_S:
        return f"holds no request, and has given no sign of life for {PONG_WITHIN_S:g} s"
    return None
