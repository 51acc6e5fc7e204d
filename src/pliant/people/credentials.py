"""Credentials that stand in for a password: sessions, which logging on opens, and personal tokens, for programs.

Outside, both are opaque texts `plt_ID_SECRET`. The id finds the credential in the registry, and its first letter says
of which kind it is. The secret proves who holds it. The registry keeps only a SHA-256 of the secret: a secret has 192
random bits, so nobody finds it by trying, and a slow hash would add nothing.
"""

import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Generic, Literal, Self, TypeVar

from pliant.core.access import Permission
from pliant.core.errors import Conflict, InvalidInput, NotFound, Stale, Unavailable
from pliant.core.people import DEFAULT_TOKEN_S, MAX_TOKEN_S, TOKEN_PREFIX, TokenSettings, problems_of_token
from pliant.core.ports import Clock
from pliant.core.registry import Kept, Registry, iterate_nouns
from pliant.people.changes import RightsChanges

TokenHex = Callable[[int], str]
"""Returns so many random bytes as hexadecimal digits, as `secrets.token_hex` does."""

LogonWay = Literal["password", "link"]
"""How a session was begun."""

SESSION_S: Final = 8 * 3600.0
MAX_SESSIONS: Final = 50
"""Of one user at once; the one that would end first makes room for another."""
MAX_TOKENS: Final = 100
"""Of one user."""
USED_EVERY_S: Final = 60.0
"""When a session or a token was last used is written no more often than this."""
_SHOWN_S: Final = 30 * 86400.0
"""So long an expired token is still listed."""
_MAX_ADDRESS: Final = 64
_NUM_ID_BYTES: Final = 8
_NUM_SECRET_BYTES: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """What is kept of a credential."""

    KIND: ClassVar[str]
    LETTER: ClassVar[str]
    """The first of its id."""

    name: str
    """Its id."""
    owner: str
    digest: str = field(repr=False)
    expires_at: float
    last_used_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogonSession(Credential):
    """A user who has logged on. It may do all that its owner may."""

    KIND: ClassVar[str] = "session"
    LETTER: ClassVar[str] = "s"

    way: LogonWay = "password"
    address: str = ""
    """Where it was begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalToken(Credential):
    """What a program shows for its owner."""

    KIND: ClassVar[str] = "token"
    LETTER: ClassVar[str] = "t"

    label: str
    scopes: tuple[Permission, ...] | None
    """None: all that the owner's role allows."""
    endpoints: tuple[str, ...] | None = None
    max_rate: float | None = None
    max_concurrent: int | None = None


C = TypeVar("C", LogonSession, PersonalToken)
_ID: Final = f"[{LogonSession.LETTER}{PersonalToken.LETTER}][0-9a-f]{{{2 * _NUM_ID_BYTES}}}"
_FORM: Final = re.compile(rf"{TOKEN_PREFIX}({_ID})_([0-9a-f]{{{2 * _NUM_SECRET_BYTES}}})")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpaqueToken:
    """The two halves of a credential as it is sent."""

    id: str
    secret: str = field(repr=False)

    @classmethod
    def mint(cls, kind: type[Credential], token_hex: TokenHex) -> Self:
        """Return a new one."""
        return cls(id=kind.LETTER + token_hex(_NUM_ID_BYTES), secret=token_hex(_NUM_SECRET_BYTES))

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the halves of what may be one; None if it has another form."""
        found = _FORM.fullmatch(text)
        return None if found is None else cls(id=found[1], secret=found[2])

    @property
    def text(self) -> str:
        """The whole as it is sent."""
        return f"{TOKEN_PREFIX}{self.id}_{self.secret}"

    @property
    def digest(self) -> str:
        """What is kept of the secret."""
        return hashlib.sha256(self.secret.encode()).hexdigest()

    def matches(self, digest: str | None) -> bool:
        """Tell in constant time whether this is the secret that was kept. For None it never is, after as long."""
        return hmac.compare_digest(self.digest, digest or "0" * 64) and digest is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued(Generic[C]):
    """A new credential with its text, which nobody can show again."""

    kept: Kept[C]
    text: str = field(repr=False)


class CredentialStore:
    """Issues, finds and revokes credentials. Safe to use from any thread."""

    def __init__(self, *, registry: Registry, clock: Clock, token_hex: TokenHex, changes: RightsChanges) -> None:
        self._registry = registry
        self._clock = clock
        self._token_hex = token_hex
        self._changes = changes

    def open_session(self, owner: str, *, way: LogonWay = "password", address: str = "") -> Issued[LogonSession]:
        """Open a session of a user; theirs that have expired are forgotten."""
        now = self._clock.now()
        live = sorted(self._forget_expired(owner), key=lambda session: session.expires_at)
        for session in live[: max(0, len(live) + 1 - MAX_SESSIONS)]:
            self.end_session(session.name)
        opaque = OpaqueToken.mint(LogonSession, self._token_hex)
        noun = LogonSession(
            name=opaque.id,
            owner=owner,
            digest=opaque.digest,
            expires_at=now + SESSION_S,
            way=way,
            address=f"{address:.{_MAX_ADDRESS}}",
        )
        return Issued(kept=self._registry.add(noun, at=now), text=opaque.text)

    def make_token(self, owner: str, asked: TokenSettings) -> Issued[PersonalToken]:
        """Make a token of a user.

        Raises:
            InvalidInput: it would expire in the past, or in more than a year, or its fields do not fit together.
            Conflict: the user has too many.
        """
        now = self._clock.now()
        expires_at = now + DEFAULT_TOKEN_S if asked.expires_at is None else asked.expires_at
        _check_expiry(expires_at, now)
        if problems := problems_of_token(asked):
            raise InvalidInput(*problems)
        if sum(1 for kept in self.list_tokens(owner) if kept.noun.expires_at > now) >= MAX_TOKENS:
            raise Conflict(
                f"{owner} has {MAX_TOKENS} tokens, which is the most; revoke one that is not needed any more"
            )
        opaque = OpaqueToken.mint(PersonalToken, self._token_hex)
        noun = PersonalToken(
            name=opaque.id,
            owner=owner,
            label=asked.label,
            digest=opaque.digest,
            scopes=None if asked.scopes is None else tuple(sorted(asked.scopes)),
            expires_at=expires_at,
            endpoints=None if asked.endpoints is None else tuple(sorted(asked.endpoints)),
            max_rate=asked.max_rate,
            max_concurrent=asked.max_concurrent,
        )
        return Issued(kept=self._registry.add(noun, at=now), text=opaque.text)

    def find(self, text: str) -> LogonSession | PersonalToken | None:
        """Return the credential that a text is, and note that it was used.

        Returns None if the text is no credential, or one that has expired or was revoked.
        """
        opaque = OpaqueToken.parse(text)
        if opaque is None:
            return None
        if opaque.id.startswith(LogonSession.LETTER):
            session = self._match(LogonSession, opaque)
            return None if session is None else self._note_use(session)
        token = self._match(PersonalToken, opaque)
        return None if token is None else self._note_use(token)

    def _match(self, kind: type[C], opaque: OpaqueToken) -> Kept[C] | None:
        kept = self._registry.get(kind, opaque.id)
        if not opaque.matches(None if kept is None else kept.noun.digest) or kept is None:
            return None
        return kept if self._clock.now() < kept.noun.expires_at else None

    def _note_use(self, kept: Kept[C]) -> C | None:
        """Write that it was used, unless that was written a short while ago; None if it was revoked meanwhile.

        Where nothing can be written (a full disk), it opens what it opens all the same.
        """
        now, last = self._clock.now(), kept.noun.last_used_at
        if last is not None and now - last < USED_EVERY_S:
            return kept.noun
        try:
            return self._registry.replace(replace(kept.noun, last_used_at=now), at=now, revision=kept.revision).noun
        except (Stale, Unavailable):  # another request wrote it, or nobody can
            return kept.noun
        except NotFound:
            return None

    def list_tokens(self, owner: str) -> list[Kept[PersonalToken]]:
        """Return a user's tokens, newest first; those that expired long ago are forgotten."""
        shown, now = [], self._clock.now()
        for kept in iterate_nouns(self._registry, PersonalToken, owner=owner):
            if kept.noun.expires_at + _SHOWN_S < now:
                self._remove(PersonalToken, kept.noun.name)
            else:
                shown.append(kept)
        return sorted(shown, key=lambda kept: (-kept.created_at, kept.noun.name))

    def revoke_token(self, token_id: str, *, owner: str | None = None) -> None:
        """Make a token worthless at once; only if it is this owner's, if one is given.

        Raises:
            NotFound: there is none.
        """
        is_id = re.fullmatch(_ID, token_id) is not None
        kept = self._registry.get(PersonalToken, token_id) if is_id else None
        if kept is None or (owner is not None and kept.noun.owner != owner):
            raise NotFound(f"there is no token {token_id!r:.80}; list them to see which there are")
        self._registry.remove(PersonalToken, token_id)
        self._changes.tell(kept.noun.owner)

    def revoke_tokens(self, owner: str) -> None:
        """Revoke every token of a user."""
        for kept in iterate_nouns(self._registry, PersonalToken, owner=owner):
            self._remove(PersonalToken, kept.noun.name)
        self._changes.tell(owner)

    def list_sessions(self, owner: str) -> list[Kept[LogonSession]]:
        """Return a user's sessions that have not expired, newest first."""
        now = self._clock.now()
        kept = [one for one in iterate_nouns(self._registry, LogonSession, owner=owner) if now < one.noun.expires_at]
        return sorted(kept, key=lambda one: (-one.created_at, one.noun.name))

    def has_session(self, session_id: str) -> bool:
        """Tell whether a session goes on."""
        kept = self._registry.get(LogonSession, session_id)
        return kept is not None and self._clock.now() < kept.noun.expires_at

    def end_session_of(self, owner: str, session_id: str) -> None:
        """End a session of a user.

        Raises:
            NotFound: they have none of this id.
        """
        kept = self._registry.get(LogonSession, session_id) if re.fullmatch(_ID, session_id) else None
        if kept is None or kept.noun.owner != owner:
            raise NotFound(f"{owner} has no session {session_id!r:.80}; list them to see which there are")
        self.end_session(session_id)

    def end_session(self, session_id: str) -> None:
        """End a session; one that has ended already is left alone."""
        kept = self._registry.get(LogonSession, session_id)
        if kept is not None:
            self._remove(LogonSession, session_id)
            self._changes.tell(kept.noun.owner)

    def end_sessions(self, owner: str, *, but: str = "") -> None:
        """End all sessions of a user, except the one with this id."""
        for kept in iterate_nouns(self._registry, LogonSession, owner=owner):
            if kept.noun.name != but:
                self.end_session(kept.noun.name)

    def forget_expired_sessions(self) -> None:
        """Forget every session that has expired, of anybody."""
        self._forget_expired(None)

    def _forget_expired(self, owner: str | None) -> list[LogonSession]:
        """Forget the sessions that have expired; return the others."""
        now, live = self._clock.now(), []
        for kept in iterate_nouns(self._registry, LogonSession, owner=owner):
            if now < kept.noun.expires_at:
                live.append(kept.noun)
            else:
                self.end_session(kept.noun.name)
        return live

    def _remove(self, kind: type[C], name: str) -> None:
        try:
            self._registry.remove(kind, name)
        except NotFound:
            return


def _check_expiry(expires_at: float, now: float) -> None:
    if not now < expires_at <= now + MAX_TOKEN_S:
        message = (
            f"{expires_at:.0f} is no end of a token: it has to lie between now ({now:.0f}) and a year from now "
            f"({now + MAX_TOKEN_S:.0f}); times are seconds since the epoch"
        )
        raise InvalidInput.at("expires_at", message)
