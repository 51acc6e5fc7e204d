"""Opaque tokens, `plt_ID_SECRET`: what sessions and personal tokens look like outside.

The id finds the noun, the secret proves who holds it. Only a SHA-256 of the secret is ever kept: it has 192 random
bits, so nobody finds it by trying, and a slow hash would add nothing.
"""

import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from pliant.api.people import TOKEN_PREFIX

TokenHex = Callable[[int], str]
"""Returns so many random bytes as hexadecimal digits, as `secrets.token_hex` does."""

SESSION: Final = "s"
PERSONAL: Final = "t"

_NUM_ID_BYTES: Final = 8
_NUM_SECRET_BYTES: Final = 24
_ID: Final = f"[{SESSION}{PERSONAL}][0-9a-f]{{{2 * _NUM_ID_BYTES}}}"
_IS_ID: Final = re.compile(_ID)
_FORM: Final = re.compile(rf"{TOKEN_PREFIX}({_ID})_([0-9a-f]{{{2 * _NUM_SECRET_BYTES}}})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """The two halves of a token."""

    id: str
    """Begins with the letter of its kind."""
    secret: str = field(repr=False)

    @property
    def text(self) -> str:
        """The token as it is sent."""
        return f"{TOKEN_PREFIX}{self.id}_{self.secret}"

    @property
    def digest(self) -> str:
        """What is kept of the secret."""
        return hashlib.sha256(self.secret.encode()).hexdigest()

    def matches(self, digest: str | None) -> bool:
        """Tell in constant time whether this is the secret that was kept; never for None, after as long."""
        return hmac.compare_digest(self.digest, digest or "0" * 64) and digest is not None


def mint(kind: str, token_hex: TokenHex) -> Opaque:
    """Return a new token of a kind (`SESSION` or `PERSONAL`)."""
    return Opaque(id=kind + token_hex(_NUM_ID_BYTES), secret=token_hex(_NUM_SECRET_BYTES))


def parse(text: str) -> Opaque | None:
    """Return the halves of what may be a token; None if it is of another form."""
    found = _FORM.fullmatch(text)
    return None if found is None else Opaque(id=found[1], secret=found[2])


def is_id(text: str) -> bool:
    """Tell whether this has the form of a token's id."""
    return _IS_ID.fullmatch(text) is not None
