"""The REST bodies about people: logging on, accounts, tokens, and the audit log.

A password is in requests only; a token is in the one answer that gives it, and never again.
"""

from dataclasses import dataclass
from typing import Annotated, Final, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from pliant.api.request import Request
from pliant.core.access import Permission, Role
from pliant.core.registry import AuditEntry

USER_NAME: Final = r"^[a-z][a-z0-9._-]{0,59}$"
"""A user's name."""
MIN_PASSWORD: Final = 10
MAX_PASSWORD: Final = 1000
TOKEN_PREFIX: Final = "plt_"
"""Every session and personal token begins with it."""
MAX_TOKEN_S: Final = 366 * 86400.0
"""A personal token lives no longer than a year."""
DEFAULT_TOKEN_S: Final = 90 * 86400.0

UserName = Annotated[str, Field(pattern=USER_NAME)]
"""A letter, then up to 59 of letters, digits, `.`, `_` and `-`; all small."""
Password = Annotated[str, Field(min_length=MIN_PASSWORD, max_length=MAX_PASSWORD)]
Given = Annotated[str, Field(min_length=1, max_length=MAX_PASSWORD)]
"""A name or a password that may be wrong."""


def password_fault(password: str, name: str) -> str | None:
    """Return what is wrong with somebody's new password, apart from its length; None if nothing is."""
    if password.casefold() == name.casefold():
        return "the password is the user's name; choose another one"
    if password.startswith(TOKEN_PREFIX):
        return f"a password does not begin with {TOKEN_PREFIX!r}, as tokens do; choose another one"
    return None


class LogonRequest(Request):
    """Somebody who wants to log on."""

    name: Given
    password: Given


@dataclass(frozen=True, slots=True, kw_only=True)
class Logon:
    """A session that has begun."""

    token: str
    """Send it as `Authorization: Bearer TOKEN`; it is shown this once."""
    expires_at: float
    name: str
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """Who asks, by what, and what they may do with it."""

    name: str
    role: Role
    permissions: tuple[Permission, ...]
    """What role and scopes together allow."""
    scopes: tuple[Permission, ...] | None
    """What the token is limited to; null if it is not."""
    by: str
    """`password`, `session`, `token`, or `file`: the token in the server's state folder."""
    expires_at: float | None
    """When the session or token ends; null if it is neither."""


class PasswordRequest(Request):
    """A new password of one's own."""

    old_password: Given
    new_password: Password


class UserRequest(Request):
    """A new user."""

    name: UserName
    role: Role
    password: Password | None = None
    """If left out, one is made up and is in the answer."""

    @field_validator("password")
    @classmethod
    def _fits_the_name(cls, password: str | None, info: ValidationInfo) -> str | None:
        fault = None if password is None else password_fault(password, str(info.data.get("name", "")))
        if fault is not None:
            raise ValueError(fault)
        return password


class UserPatch(Request):
    """What can be changed of a user; what is left out stays as it is."""

    role: Role | None = None
    active: Annotated[bool, Field(strict=True)] | None = None
    """False: they cannot log on, and their sessions and tokens do not open anything."""
    password: Password | None = None
    """Ends their sessions."""

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.role is None and self.active is None and self.password is None:
            raise ValueError("nothing to change: give role, active or password")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class UserView:
    """A user as others see them; `revision` is their ETag."""

    name: str
    role: Role
    active: bool
    created_at: float
    changed_at: float
    password_changed_at: float
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewUser:
    """A user that was made."""

    user: UserView
    password: str | None
    """The one that was made up, shown this once; null if one was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserPage:
    """Users in the order of their names; ask again with `after=next` for more."""

    users: tuple[UserView, ...]
    next: str | None


class TokenRequest(Request):
    """A new personal token of one's own."""

    label: Annotated[str, Field(min_length=1, max_length=120, pattern=r"^[^\x00-\x1f\x7f]+$")]
    """What it is for."""
    scopes: Annotated[frozenset[Permission], Field(min_length=1)] | None = None
    """What it may be used for; if left out, all that its owner's role allows."""
    expires_at: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """Within a year; if left out, in 90 days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenView:
    """A personal token, without its secret."""

    id: str
    label: str
    owner: str
    scopes: tuple[Permission, ...] | None
    created_at: float
    expires_at: float
    last_used_at: float | None
    """To the minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A personal token that was made."""

    token: str
    """Send it as `Authorization: Bearer TOKEN`; it is shown this once."""
    info: TokenView


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPage:
    """Personal tokens of one owner, newest first."""

    tokens: tuple[TokenView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    """Who did or tried what, newest first; ask again with `before=next` for older entries."""

    entries: tuple[AuditEntry, ...]
    next: int | None
