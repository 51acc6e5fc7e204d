"""Which of the gateway processes of a server one is, and what it counts together with the others."""

from dataclasses import dataclass
from typing import Final

from pliant.serve.gateway.dispatch import WaitingCount
from pliant.serve.gateway.elsewhere import Elsewhere
from pliant.serve.gateway.request_limiter import LimitUse, OwnUse
from pliant.serve.gateway.shared_counts import SharedCounts
from pliant.serve.gateway.siblings import Siblings


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayShare:
    """One of several processes, or the only one."""

    number: int = 0
    """Among all gateways of the server, on whichever machine."""
    of: int = 1
    """So many there are."""
    num_here: int = 1
    """So many are on this machine, with numbers one after the other."""
    counts: SharedCounts | None = None
    """None: it is the only one."""
    siblings: Siblings | None = None
    """The others of this machine, who are asked what they have counted; None: there are none."""
    elsewhere: Elsewhere | None = None
    """What the gateways of other machines say; None: there are none."""

    @property
    def spans_machines(self) -> bool:
        """Tell whether others are on other machines."""
        return self.of > self.num_here

    def use_of(self, kind: str, name: bytes) -> LimitUse:
        """Return what is used of the limits of an endpoint or of a token."""
        return OwnUse() if self.counts is None else self.counts.of(kind, name)

    def waiting_for(self, name: str) -> WaitingCount | None:
        """Return how many requests wait for a version; None: all of them wait here."""
        return None if self.counts is None else self.counts.of("queue", name.encode())


ALONE: Final = GatewayShare()
