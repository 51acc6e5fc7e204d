"""The REST bodies about people: logging on, accounts, tokens, and the audit log.

A password is in requests only; a token is in the one answer that gives it, and never again.
"""

from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from pliant.api.request import Patch, Request
from pliant.core.access import Permission, Role
from pliant.core.input import values_of
from pliant.core.people import MAX_PASSWORD, USER_NAME, Password, TokenSettings, UserSettings, password_fault
from pliant.core.registry import AuditEntry
from pliant.core.saved_view import MAX_VIEWS, SavedView

UserName = Annotated[str, Field(pattern=USER_NAME)]
"""In a query."""
Given = Annotated[str, Field(min_length=1, max_length=MAX_PASSWORD)]
"""A name or a password that may be wrong."""


class LogonRequest(Request):
    """Somebody who wants to log on."""

    name: Given
    password: Given
    cookie: bool = False
    """Give the session as a cookie, for a browser, and not in the answer; needs the header `X-Pliant-Console: 1`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Logon:
    """A session that has begun."""

    token: str | None
    """Send it as `Authorization: Bearer TOKEN`; it is shown this once. Null: it is in a cookie."""
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


class UserRequest(Request, UserSettings):
    """A new user."""

    password: Password | None = None
    """If left out, one is made up and is in the answer."""

    @field_validator("password")
    @classmethod
    def _fits_the_name(cls, password: str | None, info: ValidationInfo) -> str | None:
        fault = None if password is None else password_fault(password, str(info.data.get("name", "")))
        if fault is not None:
            raise ValueError(fault)
        return password

    def noun(self) -> UserSettings:
        """Return what this body says, but for the password."""
        return UserSettings(**values_of(UserSettings, self))


class UserPatch(Patch, of=UserSettings, but=("name",)):
    """What can be changed of a user; what is left out stays as it is."""

    active: bool | None = None
    """False: they cannot log on, and their sessions and tokens do not open anything."""
    password: Password | None = None
    """Ends their sessions."""

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.changes():
            raise ValueError("nothing to change: give role, active or password")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class UserView(UserSettings):
    """A user as others see them; `revision` is their ETag."""

    active: bool
    created_at: float
    changed_at: float
    password_changed_at: float
    revision: int


class SavedViewRequest(Request, SavedView):
    """A view that somebody saves."""

    def noun(self) -> SavedView:
        """Return the view."""
        return SavedView(**values_of(SavedView, self))


class SavedViewsRequest(Request):
    """All views that somebody has from now on."""

    views: Annotated[tuple[SavedViewRequest, ...], Field(max_length=MAX_VIEWS)]
    """In the order in which they are shown, each with a name of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedViewList:
    """All views that somebody has saved; `revision` is its ETag, 0 if they never saved any."""

    views: tuple[SavedView, ...]
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


class TokenRequest(Request, TokenSettings):
    """A new personal token of one's own."""


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
    endpoints: tuple[str, ...] | None
    """It may ask these endpoints and nothing else; null if it is not limited so."""
    max_rate: float | None
    """Requests per second with which it may ask endpoints; null: no limit."""
    max_concurrent: int | None
    """Requests to endpoints that may be under way with it at once; null: no limit."""


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
