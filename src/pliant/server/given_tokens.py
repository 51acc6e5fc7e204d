"""The tokens for inference that this server gives out or uses itself, in the place of a password.

The gateway compares no passwords, and clients of IBM's ask for a token before every call. The same one is given out
until half its life is over: sessions would else push each other out. They are kept in memory, and a new server makes
new ones.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from fastapi import Request

from pliant.core.access import Permission
from pliant.core.people import TokenSettings
from pliant.people.credentials import SESSION_S, CredentialStore, Issued, LogonSession, PersonalToken
from pliant.server.context import Context

LABEL: Final = "inference, for a password"


@dataclass(slots=True)
class GivenTokens:
    """The newest tokens of every user. Safe to use from any thread."""

    _texts: dict[tuple[str, str], str] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def reuse(self, kind: str, name: str, credentials: CredentialStore, now: float) -> str | None:
        """Return a user's token of a kind, if it is good for half its life still."""
        text = self._texts.get((kind, name))
        found: LogonSession | PersonalToken | None = None if text is None else credentials.find(text)
        return text if found is not None and found.expires_at - now > SESSION_S / 2 else None

    def give(self, kind: str, name: str, credentials: CredentialStore, now: float, make: Callable[[], str]) -> str:
        """Return a user's token of a kind; a new one if there is none that lives long enough."""
        with self._lock:
            text = self.reuse(kind, name, credentials, now)
            if text is None:
                text = self._texts[kind, name] = make()
            return text

    def settle(self, name: str, credentials: CredentialStore, now: float, fresh: Issued[LogonSession]) -> str:
        """Return the token to give out after a logon: an earlier one, and the fresh session ends; or the fresh one."""
        given = self.give("user", name, credentials, now, lambda: fresh.text)
        if given != fresh.text:
            credentials.end_session(fresh.kept.noun.name)
        return given


def given_tokens(request: Request) -> GivenTokens:
    """Return the tokens that this server has given out."""
    state = request.app.state
    if not hasattr(state, "given_tokens"):
        state.given_tokens = GivenTokens()
    found: GivenTokens = state.given_tokens
    return found


def inference_token(context: Context, given: GivenTokens, name: str) -> str:
    """Return a user's token for inference.

    Raises:
        Conflict: they have too many tokens.
    """
    credentials, now = context.people.credentials, context.clock.now()
    owner = context.people.accounts.get(name).noun.name
    settings = TokenSettings(label=LABEL, scopes=frozenset({Permission.INFER}), expires_at=now + SESSION_S)
    return given.give("service", owner, credentials, now, lambda: credentials.make_token(owner, settings).text)
