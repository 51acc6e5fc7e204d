"""Authentication: who a caller is, by a password, a session, a personal token, or the token of the file.

Every request is judged by what the registry holds at that moment, so what was revoked or disabled is refused at once.
"""

import hmac
from dataclasses import dataclass, field
from typing import Final, Literal, TypeVar

from pliant.core.access import Principal, Role
from pliant.core.errors import Unauthorized
from pliant.core.serving import RequestLimits
from pliant.people.accounts import Accounts
from pliant.people.credentials import CredentialStore, Issued, LogonSession, LogonWay, PersonalToken
from pliant.people.password_checker import PasswordChecker, Verdict
from pliant.people.user import ADMIN, User

Way = Literal["password", "session", "token", "file"]
"""What the caller authenticated with."""

T = TypeVar("T")
_ADMINISTRATOR: Final = Principal(name=ADMIN, role=Role.ADMIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A caller who is authenticated, and by what."""

    principal: Principal
    by: Way
    id: str = ""
    """Of the session or token."""
    expires_at: float | None = None
    """When that ends; None if it does not."""
    limits: RequestLimits = field(default_factory=RequestLimits)
    """Of requests to endpoints, if it is a token."""
    logged_on: bool = False
    """A password was compared for this, and not just remembered."""
    password_changed_at: float = 0.0
    """When the password was set, if it was one."""


class Authenticator:
    """Authenticates callers. Safe to use from any thread."""

    def __init__(
        self, *, accounts: Accounts, credentials: CredentialStore, passwords: PasswordChecker, file_token: str
    ) -> None:
        self._accounts = accounts
        self._credentials = credentials
        self._passwords = passwords
        self._file_token = file_token.encode()

    def check_file_token(self, token: str) -> Identity | None:
        """Return the administrator if this is the token of the file, else None. It reads no registry."""
        if hmac.compare_digest(token.encode("utf-8", "surrogatepass"), self._file_token) and self._file_token:
            return Identity(principal=_ADMINISTRATOR, by="file")
        return None

    def authenticate_token(self, token: str) -> Identity:
        """Return who holds a token of any kind.

        Raises:
            Unauthorized: it is worthless, or its owner is disabled.
        """
        found = self.check_file_token(token) or self._find_credential(token)
        if found is None:
            raise Unauthorized(
                "the token opens nothing here: it is wrong, has expired, or was revoked; log on again, make a new "
                "token, or take the one in the file `token` of the server's state folder"
            )
        return found

    def authenticate_session(self, token: str) -> Identity:
        """Return whose session this is; no token of another kind does in its place.

        Raises:
            Unauthorized: it has ended, or is none, or its owner is disabled.
        """
        found = self._find_credential(token)
        if found is None or found.by != "session":
            raise Unauthorized("the session has ended; log on again")
        return found

    def recall(self, name: str, password: str) -> Identity | None:
        """Return who gave their password a short while ago and gives it again; None for all others. Quick."""
        user = self._user(name)
        if user is None or not user.active or not self._passwords.is_remembered(user, password):
            return None
        return Identity(principal=user.principal(), by="password", password_changed_at=user.password_changed_at)

    def authenticate_password(self, name: str, password: str, address: str) -> Identity:
        """Return who gives the right password. Slow, unless it was given a short while ago.

        Raises:
            Unauthorized: name or password is wrong, or the user is disabled.
            TooMany: too many attempts have failed.
            Unavailable: the machine lacks the memory.
        """
        user = self._user(name)
        verdict = self._passwords.check(user, name, password, address)
        if verdict is Verdict.WRONG or user is None:
            raise Unauthorized("the name or the password is wrong; an administrator can set a new password")
        if not user.active:
            raise Unauthorized(f"the account {name} is disabled; ask an administrator to enable it")
        return Identity(
            principal=user.principal(),
            by="password",
            logged_on=verdict is Verdict.RIGHT,
            password_changed_at=user.password_changed_at,
        )

    def authenticate_basic(self, name: str, password: str, address: str) -> Identity:
        """Return who gives the right password, or in its place a token of their own.

        Raises:
            Unauthorized, TooMany, Unavailable: as `by_password`.
        """
        held = self.check_file_token(password) or self._find_credential(password)
        if held is not None and held.principal.name == name:
            return held
        return self.authenticate_password(name, password, address)

    def open_session(
        self, name: str, *, password_changed_at: float, way: LogonWay = "password", address: str = ""
    ) -> Issued[LogonSession]:
        """Open a session of a user who was let in, while their password was the one that was set then.

        To compare a password takes long. Whoever changes it meanwhile ends all sessions, but not one that is opened
        after that: so it is opened first, and ended again if there is another password by now.

        Raises:
            Unauthorized: the password was changed meanwhile, or the account disabled or removed.
        """
        opened = self._credentials.open_session(name, way=way, address=address)
        user = self._user(name)
        if user is None or not user.active or user.password_changed_at != password_changed_at:
            self._credentials.end_session(opened.kept.noun.name)
            raise Unauthorized("the password was changed a moment ago, or the account disabled; log on again")
        return opened

    def has_user(self, name: str) -> bool:
        """Tell whether there is such a user."""
        return self._user(name) is not None

    def check_password(self, name: str, password: str, address: str) -> bool:
        """Tell whether this is the password of a caller who is authenticated already. It counts as an attempt.

        Raises:
            TooMany, Unavailable: as `by_password`.
        """
        return self._passwords.check(self._user(name), name, password, address) is not Verdict.WRONG

    def forgive(self, name: str) -> None:
        """Forget the failed attempts to log on as a user, who has a new password now."""
        self._passwords.forgive(name)

    def know(self, name: str, address: str, at: float) -> None:
        """Remember that a user logged on at an address then, before this server began."""
        self._passwords.know(name, address, at)

    def _find_credential(self, text: str) -> Identity | None:
        credential = self._credentials.find(text)
        user = None if credential is None else self._user(credential.owner)
        if credential is None or user is None or not user.active:
            return None
        if not isinstance(credential, PersonalToken):
            return Identity(
                principal=user.principal(), by="session", id=credential.name, expires_at=credential.expires_at
            )
        return Identity(
            principal=user.principal(scopes=_set(credential.scopes), endpoints=_set(credential.endpoints)),
            by="token",
            id=credential.name,
            expires_at=credential.expires_at,
            limits=RequestLimits(max_rate=credential.max_rate, max_concurrent=credential.max_concurrent),
        )

    def _user(self, name: str) -> User | None:
        kept = self._accounts.find(name)
        return None if kept is None else kept.noun


def _set(values: tuple[T, ...] | None) -> frozenset[T] | None:
    return None if values is None else frozenset(values)
