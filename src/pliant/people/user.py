"""A user: a name, a role, and the hash of a password. Knows no registry and no hashing."""

import re
from dataclasses import dataclass, field
from typing import ClassVar, Final

from pliant.api.people import USER_NAME
from pliant.core.access import Permission, Principal, Role

ADMIN: Final = "admin"
"""The administrator that a server has from its first start; the token in its state folder stands for them."""

_NAME: Final = re.compile(USER_NAME)


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Somebody who can log on."""

    KIND: ClassVar[str] = "user"

    name: str
    role: Role
    password_hash: str = field(repr=False)
    """argon2id, with its parameters and its salt."""
    password_changed_at: float
    active: bool = True

    @property
    def owner(self) -> str:
        """Everybody owns their account."""
        return self.name

    def principal(self, scopes: frozenset[Permission] | None = None) -> Principal:
        """Return the caller that this user is, with the scopes of their token."""
        return Principal(name=self.name, role=self.role, scopes=scopes)


def is_name(text: str) -> bool:
    """Tell whether a user can be called that."""
    return _NAME.fullmatch(text) is not None
