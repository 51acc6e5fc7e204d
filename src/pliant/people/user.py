"""A user: a name, a role, and the hash of a password. Knows no registry and no hashing."""

import re
from dataclasses import dataclass, field
from typing import ClassVar, Final

from pliant.core.access import Permission, Principal
from pliant.core.people import USER_NAME, UserSettings

ADMIN: Final = "admin"
"""The administrator that a server has from its first start; the token in its state folder stands for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class User(UserSettings):
    """Somebody who can log on."""

    KIND: ClassVar[str] = "user"

    password_hash: str = field(repr=False)
    """argon2id, with its parameters and its salt."""
    password_changed_at: float
    active: bool = True

    @property
    def owner(self) -> str:
        """Everybody owns their account."""
        return self.name

    def principal(
        self, scopes: frozenset[Permission] | None = None, endpoints: frozenset[str] | None = None
    ) -> Principal:
        """Return the caller that this user is, with what their token is limited to."""
        return Principal(name=self.name, role=self.role, scopes=scopes, endpoints=endpoints)


def is_name(text: str) -> bool:
    """Tell whether a user can be called that."""
    return re.fullmatch(USER_NAME, text) is not None
