"""What people say of users and of personal tokens, and what a password may be."""

from dataclasses import dataclass
from typing import Annotated, Final

from annotated_types import Ge, Len, MinLen

from pliant.core.access import Permission, Role
from pliant.core.input import FINITE, ONE_LINE, Input, Pattern

USER_NAME: Final = r"^[a-z][a-z0-9._-]{0,59}$"
"""A letter, then up to 59 of letters, digits, `.`, `_` and `-`; all small."""
MIN_PASSWORD: Final = 10
MAX_PASSWORD: Final = 1000
TOKEN_PREFIX: Final = "plt_"
"""Every session and personal token begins with it."""
MAX_TOKEN_S: Final = 366 * 86400.0
"""A personal token lives no longer than a year."""
DEFAULT_TOKEN_S: Final = 90 * 86400.0

Password = Annotated[str, Input(Len(MIN_PASSWORD, MAX_PASSWORD))]


@dataclass(frozen=True, kw_only=True)
class UserSettings:
    """What people say of a user. A field that is added here is one of REST and of the commands, too."""

    name: Annotated[
        str, Input(Pattern(USER_NAME, "small letters, digits, '.', '_' and '-', 60 at most, a letter first"))
    ]
    role: Role


@dataclass(frozen=True, kw_only=True)
class TokenSettings:
    """What people say of a personal token."""

    label: Annotated[str, Input(Len(1, 120), Pattern(r"^[^\x00-\x1f\x7f]+$", "one line of text"), ONE_LINE)]
    """What it is for."""
    scopes: Annotated[frozenset[Permission], Input(MinLen(1))] | None = None
    """What it may be used for; if left out, all that its owner's role allows."""
    expires_at: Annotated[float, Input(Ge(0), FINITE)] | None = None
    """Within a year; if left out, in 90 days."""


def password_fault(password: str, name: str) -> str | None:
    """Return what is wrong with somebody's new password, apart from its length; None if nothing is."""
    if password.casefold() == name.casefold():
        return "the password is the user's name; choose another one"
    if password.startswith(TOKEN_PREFIX):
        return f"a password does not begin with {TOKEN_PREFIX!r}, as tokens do; choose another one"
    return None
