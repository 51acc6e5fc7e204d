"""Who asks, as far as a gateway needs to know: whose a token is, and what they may. Knows no link and no HTTP."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerRights:
    """Somebody who holds a token."""

    name: str
    sees_all: bool
    """They may ask every endpoint."""
    may_infer: bool
    """Role and scopes let them ask endpoints at all."""


class CallerBook(Protocol):
    """Knows whose a token is."""

    async def who(self, token: str) -> CallerRights:
        """Return who holds a token.

        Raises:
            Unauthorized: it is worthless.
            Unavailable: nobody who knows can be asked now.
        """
        ...
