"""Personal tokens: for programs that act for a user, for up to a year, limited to scopes if the user likes."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from pliant.api.people import DEFAULT_TOKEN_S, MAX_TOKEN_S, TokenRequest
from pliant.core.access import Permission
from pliant.core.errors import Conflict, InvalidInput, NotFound, Problem, Stale
from pliant.core.ports import Clock
from pliant.core.registry import Kept, Registry
from pliant.people.opaque import PERSONAL, Opaque, TokenHex, is_id, mint
from pliant.people.pages import every

MAX_TOKENS: Final = 100
"""Of one user."""
USED_EVERY_S: Final = 60.0
"""When a token was last used is written no more often than this."""
_SHOWN_S: Final = 30 * 86400.0
"""So long an expired token is still listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalToken:
    """Opens what its owner may do, or less."""

    KIND: ClassVar[str] = "token"

    name: str
    """Its id."""
    owner: str
    label: str
    digest: str = field(repr=False)
    scopes: tuple[Permission, ...] | None
    """None: all that the owner's role allows."""
    expires_at: float
    last_used_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeToken:
    """A token that was made, with its text, which nobody can show again."""

    kept: Kept[PersonalToken]
    text: str = field(repr=False)


class Tokens:
    """Makes, finds, lists and revokes personal tokens. Safe to use from any thread."""

    def __init__(self, *, registry: Registry, clock: Clock, token_hex: TokenHex) -> None:
        self._registry = registry
        self._clock = clock
        self._token_hex = token_hex

    def make(self, owner: str, request: TokenRequest) -> MadeToken:
        """Make a token of a user.

        Raises:
            InvalidInput: it would end in the past, or in more than a year.
            Conflict: the user has too many.
        """
        now = self._clock.now()
        expires_at = now + DEFAULT_TOKEN_S if request.expires_at is None else request.expires_at
        _check_end(expires_at, now)
        if sum(1 for kept in self.of(owner) if kept.noun.expires_at > now) >= MAX_TOKENS:
            raise Conflict(
                f"{owner} has {MAX_TOKENS} tokens, which is the most; revoke one that is not needed any more"
            )
        opaque = mint(PERSONAL, self._token_hex)
        token = PersonalToken(
            name=opaque.id,
            owner=owner,
            label=request.label,
            digest=opaque.digest,
            scopes=None if request.scopes is None else tuple(sorted(request.scopes)),
            expires_at=expires_at,
        )
        return MadeToken(kept=self._registry.add(token, at=now), text=opaque.text)

    def of(self, owner: str) -> list[Kept[PersonalToken]]:
        """Return a user's tokens, newest first; those that expired long ago are forgotten."""
        shown, now = [], self._clock.now()
        for kept in every(self._registry, PersonalToken, owner):
            if kept.noun.expires_at + _SHOWN_S < now:
                self._remove(kept.noun.name)
            else:
                shown.append(kept)
        return sorted(shown, key=lambda kept: (-kept.created_at, kept.noun.name))

    def find(self, opaque: Opaque) -> PersonalToken | None:
        """Return the token, and note that it was used; None if there is none, or it has expired."""
        kept = self._registry.get(PersonalToken, opaque.id)
        if not opaque.matches(None if kept is None else kept.noun.digest) or kept is None:
            return None
        now = self._clock.now()
        if now >= kept.noun.expires_at:
            return None
        return self._used(kept, now)

    def revoke(self, token_id: str, *, owner: str | None = None) -> None:
        """Make a token open nothing any more, at once; only if it is this owner's, if one is given.

        Raises:
            NotFound: there is none.
        """
        kept = self._registry.get(PersonalToken, token_id) if is_id(token_id) else None
        if kept is None or (owner is not None and kept.noun.owner != owner):
            raise NotFound(f"there is no token {token_id!r:.80}; list them to see which there are")
        self._registry.remove(PersonalToken, token_id)

    def revoke_all(self, owner: str) -> None:
        """Revoke every token of a user."""
        for kept in every(self._registry, PersonalToken, owner):
            self._remove(kept.noun.name)

    def _used(self, kept: Kept[PersonalToken], now: float) -> PersonalToken | None:
        """Write that a token was used, unless that was written a short while ago; None if it was revoked meanwhile."""
        last = kept.noun.last_used_at
        if last is not None and now - last < USED_EVERY_S:
            return kept.noun
        try:
            return self._registry.replace(replace(kept.noun, last_used_at=now), at=now, revision=kept.revision).noun
        except Stale:  # another request wrote it
            return kept.noun
        except NotFound:
            return None

    def _remove(self, token_id: str) -> None:
        try:
            self._registry.remove(PersonalToken, token_id)
        except NotFound:
            return


def _check_end(expires_at: float, now: float) -> None:
    if not now < expires_at <= now + MAX_TOKEN_S:
        message = (
            f"{expires_at:.0f} is no end of a token: it has to lie between now ({now:.0f}) and a year from now "
            f"({now + MAX_TOKEN_S:.0f}); times are seconds since the epoch"
        )
        raise InvalidInput(Problem(field="expires_at", message=message))
