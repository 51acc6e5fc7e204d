"""Whether a kernel still lives: it answers what it holds, or PING if it holds nothing. Pure.

A kernel of several gateways computes for one while it is silent to the others. It says PROGRESS between batches to
those whose requests wait, and answers PING then. Its code is people's, and may make it say so for ever: what PROGRESS
grants has an end.
"""

from typing import Final

from pliant.serve.gateway.inference import InferenceRequest
from pliant.serve.gateway.kernel_link import KernelLink

PING_AFTER_S: Final = 5.0
"""Of silence of a kernel that holds nothing."""
PONG_WITHIN_S: Final = 10.0
MOST_PROGRESS: Final = 8
"""A kernel may let requests wait for those of other gateways: for each gateway so many times as long as a batch may
take. One that takes from all in turns needs no more, even if it has slow answers in parts between batches."""


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


def find_hang(link: KernelLink, now: float, execution_timeout_s: float, num_gateways: int) -> str | None:
    """Return why a kernel counts as hung, in words that follow its name; None if it does not.

    Args:
        link: of the kernel.
        now: on the gateway's clock.
        execution_timeout_s: so long a batch may take.
        num_gateways: that the kernel works for.
    """
    if link.busy_since is not None:
        most_s = MOST_PROGRESS * num_gateways * execution_timeout_s
        if now - max(link.busy_since, link.progress_at) > execution_timeout_s:
            return f"has computed for more than {execution_timeout_s:g} s without an answer"
        if now - link.busy_since > most_s:
            return f"has let requests wait for those of other gateways for more than {most_s:g} s"
    elif link.ping_at is not None:
        most_s = PONG_WITHIN_S if num_gateways == 1 else max(PONG_WITHIN_S, execution_timeout_s)
        if now - max(link.ping_at, link.received_at) > most_s:
            return f"holds no request, and has given no sign of life for {most_s:g} s"
    return None
