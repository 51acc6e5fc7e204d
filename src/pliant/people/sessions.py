"""Sessions: what logging on gives, for eight hours."""

from dataclasses import dataclass, field
from typing import ClassVar, Final

from pliant.core.errors import NotFound
from pliant.core.ports import Clock
from pliant.core.registry import Registry
from pliant.people.opaque import SESSION, Opaque, TokenHex, mint
from pliant.people.pages import every

SESSION_S: Final = 8 * 3600.0
MAX_SESSIONS: Final = 50
"""Of one user at once; the one that would end first makes room for another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A user who has logged on."""

    KIND: ClassVar[str] = "session"

    name: str
    """Its id."""
    owner: str
    digest: str = field(repr=False)
    expires_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedSession:
    """A session that has begun, with its token, which nobody can show again."""

    session: Session
    token: str = field(repr=False)


class Sessions:
    """Opens, finds and ends sessions. Safe to use from any thread."""

    def __init__(self, *, registry: Registry, clock: Clock, token_hex: TokenHex) -> None:
        self._registry = registry
        self._clock = clock
        self._token_hex = token_hex

    def open(self, owner: str) -> OpenedSession:
        """Begin a session; those of this user that are over are forgotten."""
        now = self._clock.now()
        live = sorted(self._forget_ended(owner), key=lambda session: session.expires_at)
        for session in live[: max(0, len(live) + 1 - MAX_SESSIONS)]:
            self.end(session.name)
        opaque = mint(SESSION, self._token_hex)
        session = Session(name=opaque.id, owner=owner, digest=opaque.digest, expires_at=now + SESSION_S)
        self._registry.add(session, at=now)
        return OpenedSession(session=session, token=opaque.text)

    def find(self, opaque: Opaque) -> Session | None:
        """Return the session that a token opens; None if there is none, or it is over."""
        kept = self._registry.get(Session, opaque.id)
        if not opaque.matches(None if kept is None else kept.noun.digest) or kept is None:
            return None
        return kept.noun if self._clock.now() < kept.noun.expires_at else None

    def end(self, session_id: str) -> None:
        """End a session, if it is there."""
        try:
            self._registry.remove(Session, session_id)
        except NotFound:
            return

    def end_all(self, owner: str, but: str = "") -> None:
        """End all sessions of a user, but the one of this id."""
        for kept in every(self._registry, Session, owner):
            if kept.noun.name != but:
                self.end(kept.noun.name)

    def forget_ended(self) -> None:
        """Forget every session that is over, of anybody."""
        self._forget_ended(None)

    def _forget_ended(self, owner: str | None) -> list[Session]:
        """Forget the sessions that are over; return the others."""
        now, live = self._clock.now(), []
        for kept in every(self._registry, Session, owner):
            if now < kept.noun.expires_at:
                live.append(kept.noun)
            else:
                self.end(kept.noun.name)
        return live
