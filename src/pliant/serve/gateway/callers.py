"""Who asks, as far as a gateway needs to know: whose a token is, and what they may. Knows no link and no HTTP."""

from dataclasses import dataclass, field
from typing import Protocol

from pliant.core.access import EVERYBODY
from pliant.core.serving import ServedEndpoint
from pliant.serve.gateway.request_limiter import RequestLimiter


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerRights:
    """Somebody who holds a token."""

    name: str
    sees_all: bool
    """They may ask every endpoint."""
    may_infer: bool
    """Role and scopes let them ask endpoints at all."""
    endpoints: frozenset[str] | None = None
    """Their token is for these and no others; None: it is not limited so."""
    limiter: RequestLimiter | None = field(default=None, compare=False, repr=False)
    """Of all requests with their token; None: it has no limits."""

    def may_see(self, endpoint: ServedEndpoint) -> bool:
        """Tell whether an endpoint exists for them."""
        if self.endpoints is not None and endpoint.name not in self.endpoints:
            return False
        shared = endpoint.shared_with
        return self.sees_all or self.name == endpoint.owner or self.name in shared or EVERYBODY in shared


class CallerBook(Protocol):
    """Knows whose a token is."""

    async def who(self, token: str) -> CallerRights:
        """Return who holds a token.

        Raises:
            Unauthorized: it is worthless.
            Unavailable: nobody who knows can be asked now.
        """
        ...
