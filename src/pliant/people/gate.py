"""The gate: who somebody is by what they show, a password, a session, a personal token, or the token of the file.

Every request is judged by what the registry holds at that moment, so that what was revoked or disabled opens nothing.
"""

import hmac
from dataclasses import dataclass
from typing import Final, Literal

from pliant.core.access import Principal, Role
from pliant.core.errors import Unauthorized
from pliant.people.accounts import Accounts
from pliant.people.opaque import SESSION, parse
from pliant.people.sessions import Sessions
from pliant.people.tokens import Tokens
from pliant.people.user import ADMIN, User
from pliant.people.verifier import Verdict, Verifier

Way = Literal["password", "session", "token", "file"]
"""What somebody showed."""

_ADMINISTRATOR: Final = Principal(name=ADMIN, role=Role.ADMIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """Somebody who has shown who they are, and how."""

    principal: Principal
    by: Way
    id: str = ""
    """Of the session or token."""
    expires_at: float | None = None
    """When that ends; None if it does not."""
    logged_on: bool = False
    """A password was compared for this, and not just remembered."""


class Gate:
    """Tells who somebody is. Safe to use from any thread."""

    def __init__(
        self, *, accounts: Accounts, sessions: Sessions, tokens: Tokens, verifier: Verifier, file_token: str
    ) -> None:
        self._accounts = accounts
        self._sessions = sessions
        self._tokens = tokens
        self._verifier = verifier
        self._file_token = file_token.encode()

    def by_file(self, token: str) -> Admitted | None:
        """Return the administrator if this is the token of the file; asks nobody."""
        if hmac.compare_digest(token.encode("utf-8", "surrogatepass"), self._file_token) and self._file_token:
            return Admitted(principal=_ADMINISTRATOR, by="file")
        return None

    def by_token(self, token: str) -> Admitted:
        """Return who holds a token of any kind.

        Raises:
            Unauthorized: it opens nothing, or its owner is disabled.
        """
        found = self.by_file(token) or self._by_opaque(token)
        if found is None:
            raise Unauthorized(
                "the token opens nothing here: it is wrong, has expired, or was revoked; log on again, make a new "
                "token, or take the one in the file `token` of the server's state folder"
            )
        return found

    def remembered(self, name: str, password: str) -> Admitted | None:
        """Return who gave their password a short while ago and gives it again; None for all others. Quick."""
        user = self._user(name)
        if user is None or not user.active or not self._verifier.remembers(user, password):
            return None
        return Admitted(principal=user.principal(), by="password")

    def by_password(self, name: str, password: str, address: str) -> Admitted:
        """Return who gives the right password. Slow, unless it was given a short while ago.

        Raises:
            Unauthorized: name or password is wrong, or the user is disabled.
            TooMany: too many attempts have failed.
            Unavailable: the machine lacks the memory.
        """
        user = self._user(name)
        verdict = self._verifier.verify(user, name, password, address)
        if verdict is Verdict.WRONG or user is None:
            raise Unauthorized("the name or the password is wrong; an administrator can set a new password")
        if not user.active:
            raise Unauthorized(f"the account {name} is disabled; ask an administrator to enable it")
        return Admitted(principal=user.principal(), by="password", logged_on=verdict is Verdict.RIGHT)

    def by_login(self, name: str, password: str, address: str) -> Admitted:
        """Return who gives the right password, or in its place a token of their own.

        Raises:
            Unauthorized, TooMany, Unavailable: as `by_password`.
        """
        held = self.by_file(password) or self._by_opaque(password)
        if held is not None and held.principal.name == name:
            return held
        return self.by_password(name, password, address)

    def knows(self, name: str) -> bool:
        """Tell whether there is such a user."""
        return self._user(name) is not None

    def own_password(self, name: str, password: str, address: str) -> bool:
        """Tell whether this is the password of somebody who is let in already; counts as an attempt.

        Raises:
            TooMany, Unavailable: as `by_password`.
        """
        return self._verifier.verify(self._user(name), name, password, address) is not Verdict.WRONG

    def forgive(self, name: str) -> None:
        """Forget the failed attempts to log on as somebody, whose password is another one now."""
        self._verifier.forgive(name)

    def _by_opaque(self, token: str) -> Admitted | None:
        opaque = parse(token)
        if opaque is None:
            return None
        if opaque.id.startswith(SESSION):
            session = self._sessions.find(opaque)
            user = None if session is None else self._user(session.owner)
            if session is None or user is None or not user.active:
                return None
            return Admitted(principal=user.principal(), by="session", id=session.name, expires_at=session.expires_at)
        found = self._tokens.find(opaque)
        user = None if found is None else self._user(found.owner)
        if found is None or user is None or not user.active:
            return None
        scopes = None if found.scopes is None else frozenset(found.scopes)
        return Admitted(principal=user.principal(scopes), by="token", id=found.name, expires_at=found.expires_at)

    def _user(self, name: str) -> User | None:
        kept = self._accounts.find(name)
        return None if kept is None else kept.noun
