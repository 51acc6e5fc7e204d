"""What people say of users and of personal tokens, and what a password may be."""

from dataclasses import dataclass
from typing import Annotated, Final

from annotated_types import Ge, Len, MinLen

from pliant.core.access import Permission, Role
from pliant.core.endpoint import EndpointName
from pliant.core.errors import Problem
from pliant.core.input import FINITE, ONE_LINE, Input, Pattern
from pliant.core.serving_profile import NumConcurrent, RequestRate

USER_NAME: Final = r"^[a-z][a-z0-9._-]{0,59}$"
"""A letter, then up to 59 of letters, digits, `.`, `_` and `-`; all small."""
MIN_PASSWORD: Final = 10
MAX_PASSWORD: Final = 1000
TOKEN_PREFIX: Final = "plt_"
"""Every session and personal token begins with it."""
MAX_TOKEN_S: Final = 366 * 86400.0
"""A personal token lives no longer than a year."""
DEFAULT_TOKEN_S: Final = 90 * 86400.0
MAX_TOKEN_ENDPOINTS: Final = 100

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
    endpoints: Annotated[frozenset[EndpointName], Input(Len(1, MAX_TOKEN_ENDPOINTS))] | None = None
    """It may ask these endpoints and nothing else; its only scope is `infer`."""
    max_rate: RequestRate | None = None
    """Requests per second with which it may ask endpoints; one more is refused with HTTP 429."""
    max_concurrent: NumConcurrent | None = None
    """Requests to endpoints that may be under way with it at once; one more is refused with HTTP 429."""


def problems_of_token(asked: TokenSettings) -> tuple[Problem, ...]:
    """Return what of a token does not fit together."""
    problems: list[Problem] = []
    if asked.endpoints is not None and asked.scopes != frozenset({Permission.INFER}):
        has = "not given, so it would do everything" if asked.scopes is None else ", ".join(sorted(asked.scopes))
        message = f"a token for named endpoints has the scope 'infer' and no other; its scopes are {has}"
        problems.append(Problem(field="endpoints", message=message))
    if asked.scopes is not None and Permission.INFER not in asked.scopes:
        for name, value in (("max_rate", asked.max_rate), ("max_concurrent", asked.max_concurrent)):
            if value is not None:
                message = "it limits requests to endpoints, which this token may not send; add the scope 'infer'"
                problems.append(Problem(field=name, message=message))
    return tuple(problems)


def password_fault(password: str, name: str) -> str | None:
    """Return what is wrong with somebody's new password, apart from its length; None if nothing is."""
    if password.casefold() == name.casefold():
        return "the password is the user's name; choose another one"
    if password.startswith(TOKEN_PREFIX):
        return f"a password does not begin with {TOKEN_PREFIX!r}, as tokens do; choose another one"
    return None
