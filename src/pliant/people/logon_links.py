"""One-time links: whoever is logged on here gets a browser logged on, too, without a password.

A link is a code of 32 random bytes. It opens one session, of the user who made it, within a minute. Only its digest is
kept, and in memory alone: a restart makes every link worthless. So does whatever ends the credentials that it was made
with: another password, a disabled account, the end of the session. Knows no HTTP.

A right code never waits: nobody guesses 256 bits. Wrong ones count by the address that they come from, apart from
passwords, so that nobody keeps the server busy with them, and nobody's password waits for them.
"""

import hashlib
import math
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from pliant.core.address import network_of
from pliant.core.errors import TooMany, Unauthorized
from pliant.core.ports import Clock
from pliant.people.accounts import Accounts
from pliant.people.attempts import OF_ADDRESS
from pliant.people.credentials import CredentialStore, TokenHex
from pliant.people.throttle import Throttle
from pliant.people.user import User

LINK_S: Final = 60.0
"""So long a link is worth something."""
MAX_LINKS: Final = 1000
"""At once, of everybody; the oldest make room."""
MAX_LINKS_OF_USER: Final = 10
_NUM_CODE_BYTES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class OneTimeLink:
    """A link that was made; nobody can show its code again."""

    code: str = field(repr=False)
    expires_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _PendingLink:
    """What is kept of a link."""

    user: str
    password_changed_at: float
    session_id: str
    """Of the session that it was made with; empty if it was another way."""
    expires_at: float


class LogonLinks:
    """The links that nobody has used yet. Safe to use from any thread."""

    def __init__(self, *, accounts: Accounts, credentials: CredentialStore, clock: Clock, token_hex: TokenHex) -> None:
        self._accounts = accounts
        self._credentials = credentials
        self._clock = clock
        self._token_hex = token_hex
        self._throttle = Throttle(OF_ADDRESS)
        self._lock = threading.Lock()
        self._pending: OrderedDict[str, _PendingLink] = OrderedDict()

    def make(self, user: str, *, session_id: str = "") -> OneTimeLink:
        """Make a link for a user, who asked with this session, if it was one.

        Raises:
            NotFound: nobody is called that.
        """
        account = self._accounts.get(user).noun
        code, expires_at = self._token_hex(_NUM_CODE_BYTES), self._clock.now() + LINK_S
        pending = _PendingLink(
            user=account.name,
            password_changed_at=account.password_changed_at,
            session_id=session_id,
            expires_at=expires_at,
        )
        with self._lock:
            self._make_room(account.name)
            self._pending[_digest(code)] = pending
        return OneTimeLink(code=code, expires_at=expires_at)

    def owner_of(self, code: str) -> str | None:
        """Return whose link a code is; it is worth as much afterwards. None if it is none."""
        with self._lock:
            pending = self._pending.get(_digest(code))
        return None if pending is None or pending.expires_at <= self._clock.now() else pending.user

    def redeem(self, code: str, address: str) -> User:
        """Return the user whose link it is. It opens nothing afterwards.

        Raises:
            Unauthorized: it was used, is too old, was made by who is not let in any more, or is no link of this server.
            TooMany: too many wrong ones came from this address.
        """
        with self._lock:
            pending = self._pending.pop(_digest(code), None)
        user = None if pending is None else self._user_of(pending)
        if user is not None:
            return user
        now, network = self._clock.now(), network_of(address)
        if (wait_s := self._throttle.wait_s(network, now)) > 0:
            message = f"too many wrong links came from this address; wait {math.ceil(wait_s)} s, and make a new one"
            raise TooMany(message, wait_s=wait_s)
        self._throttle.failed(network, now)
        raise Unauthorized(
            f"the link opens nothing: it was used already, is older than {LINK_S:g} s, or its server was started "
            f"again since; make another one with `pliant console`, or log on with your password"
        )

    def _user_of(self, pending: _PendingLink) -> User | None:
        """Return the user of a link; None if it has expired, or what it was made with opens nothing any more."""
        kept = self._accounts.find(pending.user)
        if kept is None or not kept.noun.active or pending.expires_at <= self._clock.now():
            return None
        if kept.noun.password_changed_at != pending.password_changed_at:
            return None
        if pending.session_id and not self._credentials.has_session(pending.session_id):
            return None
        return kept.noun

    def _make_room(self, user: str) -> None:
        now = self._clock.now()
        for digest in [digest for digest, pending in self._pending.items() if pending.expires_at <= now]:
            del self._pending[digest]
        own = [digest for digest, pending in self._pending.items() if pending.user == user]
        for digest in own[: max(0, len(own) + 1 - MAX_LINKS_OF_USER)]:
            del self._pending[digest]
        while len(self._pending) >= MAX_LINKS:
            self._pending.popitem(last=False)


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()
