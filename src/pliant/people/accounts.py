"""Accounts: makes, changes and removes users, and keeps the rules about them.

There is always an active administrator, and nobody disables, demotes or removes themselves. A user who is disabled, or
gets another password, loses all sessions; one who is removed loses all tokens, too.
"""

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pliant.core.access import Role
from pliant.core.errors import Conflict, InvalidInput, NotFound
from pliant.core.input import values_of
from pliant.core.people import UserSettings, password_fault
from pliant.core.ports import Clock
from pliant.core.registry import Kept, Registry, iterate_nouns
from pliant.core.saved_view import SavedViews
from pliant.people.changes import RightsChanges
from pliant.people.credentials import CredentialStore, TokenHex
from pliant.people.passwords import Passwords
from pliant.people.user import ADMIN, User, is_name

_NUM_PASSWORD_BYTES: Final = 10
_NUM_GROUP: Final = 4
_ADMINISTRATOR: Final = UserSettings(name=ADMIN, role=Role.ADMIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeUser:
    """A user with the password that was made up for them; nobody can show it again."""

    kept: Kept[User]
    password: str | None = field(repr=False)
    """None if one was given."""


class Accounts:
    """The users of a server. Safe to use from any thread."""

    def __init__(
        self,
        *,
        registry: Registry,
        clock: Clock,
        passwords: Passwords,
        credentials: CredentialStore,
        token_hex: TokenHex,
        changes: RightsChanges,
        alone: str = "",
    ) -> None:
        """Prepare to answer; `alone` says why there may be one user only, and is empty if there may be others."""
        self._alone = alone
        self._changes = changes
        self._registry = registry
        self._clock = clock
        self._passwords = passwords
        self._credentials = credentials
        self._token_hex = token_hex
        self._changing = threading.Lock()

    def find(self, name: str) -> Kept[User] | None:
        """Return a user, or None if nobody is called that."""
        return self._registry.get(User, name) if is_name(name) else None

    def get(self, name: str) -> Kept[User]:
        """Return a user.

        Raises:
            NotFound: nobody is called that.
        """
        kept = self.find(name)
        if kept is None:
            raise NotFound(f"there is no user {name!r:.80}; list them to see which there are")
        return kept

    def page(self, after: str, limit: int, part: str = "") -> Sequence[Kept[User]]:
        """Return users in the order of their names; with `part` those whose names hold it, whatever its capitals."""
        return self._registry.list(User, after=after, limit=limit, part=part)

    def add(self, asked: UserSettings, password: str | None = None) -> MadeUser:
        """Make a user; without a password one is made up.

        Raises:
            Conflict: the name is taken, or only one may use this server.
        """
        if self._alone:
            raise Conflict(f"no other user can be added: {self._alone}")
        made_up = None if password is not None else made_up_password(self._token_hex)
        user = self._user(asked, password or made_up or "")
        return MadeUser(kept=self._registry.add(user, at=user.password_changed_at), password=made_up)

    def change(
        self,
        name: str,
        changes: Mapping[str, Any],
        *,
        by: str,
        password: str | None = None,
        revision: int | None = None,
    ) -> Kept[User]:
        """Change fields of a user, who may also get another password; `by` is who asks.

        Raises:
            NotFound, Stale: as `Registry.replace`.
            InvalidInput: the password is not for this user.
            Conflict: they would change their own role or disable themselves, or nobody would be an administrator.
        """
        kept = self.get(name)
        if password is not None:
            _check_password(password, name, "password")
        password_hash = None if password is None else self._passwords.hash(password)
        with self._changing:
            kept = self.get(name)
            changed = replace(kept.noun, **changes)
            if password_hash is not None:
                changed = replace(changed, password_hash=password_hash, password_changed_at=self._clock.now())
            if name == by and (changed.role, changed.active) != (kept.noun.role, kept.noun.active):
                raise Conflict("nobody changes their own role or disables themselves; ask another administrator")
            self._keep_an_administrator(kept.noun, changed)
            at_revision = kept.revision if revision is None else revision
            now_kept = self._registry.replace(changed, at=self._clock.now(), revision=at_revision)
        self._changes.tell(name)
        if password_hash is not None or not changed.active:
            self._credentials.end_sessions(name)
        return now_kept

    def set_password(self, name: str, password: str, *, but_session: str = "") -> Kept[User]:
        """Give a user another password; their sessions end, but the one of this id.

        Raises:
            NotFound: nobody is called that.
            InvalidInput: the password is not for this user.
        """
        _check_password(password, name, "new_password")
        password_hash = self._passwords.hash(password)
        with self._changing:
            now = self._clock.now()
            user = replace(self.get(name).noun, password_hash=password_hash, password_changed_at=now)
            kept = self._registry.replace(user, at=now)
        self._credentials.end_sessions(name, but=but_session)
        return kept

    def remove(self, name: str, *, by: str, revision: int | None = None) -> None:
        """Forget a user, their sessions, tokens and saved views; what they own stays.

        Raises:
            NotFound, Stale: as `Registry.remove`.
            Conflict: it is they who ask, or the last administrator.
        """
        if name == by:
            raise Conflict("nobody removes themselves; ask another administrator")
        with self._changing:
            self._keep_an_administrator(self.get(name).noun, None)
            self._registry.remove(User, name, revision=revision)
            with suppress(NotFound):
                self._registry.remove(SavedViews, name)
        self._changes.tell(name)
        self._credentials.end_sessions(name)
        self._credentials.revoke_tokens(name)

    def first_administrator(self) -> str | None:
        """Make the administrator of a server that has no users; return the password, None if there are users."""
        if self._registry.list(User, limit=1):
            return None
        password = made_up_password(self._token_hex)
        user = self._user(_ADMINISTRATOR, password)
        try:
            self._registry.add(user, at=user.password_changed_at)
        except Conflict:  # another process was faster
            return None
        return password

    def reset_administrator(self) -> str:
        """Give `admin` a new password, whatever became of that account; return it. All of its sessions end."""
        password = made_up_password(self._token_hex)
        user = self._user(_ADMINISTRATOR, password)
        with self._changing:
            try:
                self._registry.replace(user, at=user.password_changed_at)
            except NotFound:
                self._registry.add(user, at=user.password_changed_at)
        self._credentials.end_sessions(ADMIN)
        return password

    def _user(self, asked: UserSettings, password: str) -> User:
        password_hash = self._passwords.hash(password)
        return User(
            **values_of(UserSettings, asked), password_hash=password_hash, password_changed_at=self._clock.now()
        )

    def _keep_an_administrator(self, user: User, changed: User | None) -> None:
        if not _administers(user) or (changed is not None and _administers(changed)):
            return
        others = (kept.noun for kept in iterate_nouns(self._registry, User) if kept.noun.name != user.name)
        if not any(_administers(other) for other in others):
            raise Conflict(f"{user.name} is the last active administrator; make another user one first")


def _administers(user: User) -> bool:
    return user.active and user.role is Role.ADMIN


def _check_password(password: str, name: str, field_name: str) -> None:
    fault = password_fault(password, name)
    if fault is not None:
        raise InvalidInput.at(field_name, fault)


def made_up_password(token_hex: TokenHex) -> str:
    """Return a password of 80 random bits that can be typed."""
    digits = token_hex(_NUM_PASSWORD_BYTES)
    return "-".join(digits[start : start + _NUM_GROUP] for start in range(0, len(digits), _NUM_GROUP))
