"""Every error that Pliant raises on purpose, drawn by whose fault it is.

PliantError
├── UserError (also ValueError)   the caller can mend it; the message says what happened, the value, what to do
│   ├── InvalidInput              a value or several are wrong; carries every Problem at once
│   ├── NotFound                  nothing of that name
│   ├── Conflict                  right in itself, but not in the present state
│   │   └── Stale                 somebody else changed it meanwhile
│   ├── TooLarge                  over a documented limit
│   ├── BeyondEnd                 a part of a file is asked for that it does not have
│   ├── TooMany                   too often in too short a time; says how long to wait
│   ├── Unauthorized              nobody that we know
│   └── Forbidden                 somebody that we know, who may not do this
└── InternalError                 ours to mend
    ├── IllegalTransition         an event that the lifecycle table does not list
    └── Unavailable               a part that we need does not answer
        ├── NoSpace               a disk is full, or would be
        ├── Deposed               another server leads now; this one must end
        └── Diverged              memory is behind the database; this server must start again
"""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong with an input: where, and what to do about it."""

    field: str
    message: str


class PliantError(Exception):
    """Root of every error that Pliant raises on purpose."""


class UserError(PliantError, ValueError):
    """The caller can mend it."""


class InvalidInput(UserError):
    """One or more values are wrong; all of them are reported at once."""

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{p.field}: {p.message}" if p.field else p.message for p in problems))

    @classmethod
    def at(cls, field: str, message: str) -> Self:
        """Return the error that this one value is wrong."""
        return cls(Problem(field=field, message=message))


class NotFound(UserError):
    """Nothing of that name."""


class Conflict(UserError):
    """The request makes sense, but not in the present state."""


class Stale(Conflict):
    """Somebody else changed it since it was read; read it again."""


class TooLarge(UserError):
    """The input is over a documented limit."""


class BeyondEnd(UserError):
    """A part of a file is asked for that it does not have."""

    def __init__(self, message: str, *, num_bytes: int) -> None:
        self.num_bytes = num_bytes
        """So many it has."""
        super().__init__(message)


class TooMany(UserError):
    """Too often in too short a time."""

    def __init__(self, message: str, *, wait_s: float) -> None:
        self.wait_s = wait_s
        super().__init__(message)


class Unauthorized(UserError):
    """Nobody that we know: no credentials, or wrong ones."""


class Forbidden(UserError):
    """Somebody that we know, who may not do this."""


class InternalError(PliantError):
    """Ours to mend."""


class IllegalTransition(InternalError):
    """An event that the lifecycle table does not list for this state; nothing was changed."""


class Unavailable(InternalError):
    """A part that we need does not answer."""


class NoSpace(Unavailable):
    """A disk is full, or would be."""


class Deposed(Unavailable):
    """Another server leads now; this one must end."""


class Diverged(Unavailable):
    """The database holds what was told to have failed; this server must start again."""
