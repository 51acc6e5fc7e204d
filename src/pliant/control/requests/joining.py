"""Who may join the pool: tokens are made and used up, and machines that have joined are remembered.

Theory of operation. A token opens the door once, or as often as it says; of two machines that come with it at once,
one takes the last use, since a use is written against the revision that was read. A machine that has joined is known by
its record: who shows a certificate of a name that has none, or with another key, has been removed, and is not let in.
Nothing here knows of links, certificates or sockets; `JoiningRoom` names what others do.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from pliant.core.errors import Conflict, Forbidden, InvalidInput, NotFound, Problem, Stale, Unauthorized
from pliant.core.joining import (
    MAX_JOIN_TOKEN_S,
    MAX_TOKEN_USES,
    NUM_ID_BYTES,
    NUM_SECRET_BYTES,
    JoinedMachine,
    JoinToken,
    hash_of_secret,
    join_token_text,
    machine_name_fault,
    problems_of_machine,
    used_once_more,
)
from pliant.core.registry import Kept, Registry, iterate_nouns

MAX_JOIN_TOKENS: Final = 1000
"""That have not expired, of all people together."""
_NOBODYS: Final = JoinToken(name="", owner="", secret_hash=hash_of_secret(""), expires_at=0.0)
_UNKNOWN: Final = (
    "this join token is none of this pool's: it was never made here, has been revoked, or expired a while ago; make "
    "another one with `pliant machines token`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJoinToken:
    """A token that was just made, with its text, which nobody can show again."""

    token: JoinToken
    text: str = field(repr=False)


class Joining:
    """Tokens, and machines that have joined. Safe to call from any thread, and in several servers."""

    def __init__(self, *, registry: Registry, now: Callable[[], float], token_hex: Callable[[int], str]) -> None:
        """Begin with what the registry holds; `token_hex` returns random bytes as `secrets.token_hex` does."""
        self._registry = registry
        self._now = now
        self._token_hex = token_hex

    # Tokens

    def make_token(self, who: str, *, machine: str, valid_s: float, max_uses: int, pin: str) -> NewJoinToken:
        """Make a token with which a machine can join.

        Args:
            who: makes it.
            machine: the only name with which one may join; empty: any.
            valid_s: how long it is good.
            max_uses: so many machines may join with it.
            pin: of the certificate with which the server answers agents.

        Raises:
            InvalidInput: with everything that is wrong.
            Conflict: there are too many.
        """
        if problems := tuple(_problems(machine, valid_s, max_uses)):
            raise InvalidInput(*problems)
        if len(self.tokens()) >= MAX_JOIN_TOKENS:
            raise Conflict(
                f"there are {MAX_JOIN_TOKENS} join tokens, which is the most; revoke those that are not needed, or "
                f"make one for several machines"
            )
        now, secret = self._now(), self._token_hex(NUM_SECRET_BYTES)
        token = JoinToken(
            name=self._token_hex(NUM_ID_BYTES),
            owner=who,
            secret_hash=hash_of_secret(secret),
            expires_at=now + valid_s,
            machine=machine,
            max_uses=max_uses,
        )
        self._registry.add(token, at=now)
        return NewJoinToken(token=token, text=join_token_text(token.name, secret, pin))

    def tokens(self) -> Sequence[Kept[JoinToken]]:
        """Return the tokens that have not expired, the newest first; the others are forgotten."""
        now, live = self._now(), []
        for kept in iterate_nouns(self._registry, JoinToken):
            if now < kept.noun.expires_at:
                live.append(kept)
            else:
                self._forget(kept.noun.name)
        return sorted(live, key=lambda kept: (-kept.created_at, kept.noun.name))

    def revoke_token(self, token_id: str) -> None:
        """Make a token worthless at once; machines that have joined with it stay.

        Raises:
            NotFound: there is none of this id.
        """
        unknown = NotFound(f"there is no join token {token_id!r:.80}; list them to see which there are")
        if not _is_id(token_id):
            raise unknown
        try:
            self._registry.remove(JoinToken, token_id)
        except NotFound:
            raise unknown from None

    def admit(self, token_id: str, secret: str, machine: str) -> JoinToken:
        """Let a machine join with a token, and take a use of it; return the token as it is then.

        What is wrong with a token is said to those alone who know its secret.

        Raises:
            Unauthorized: there is no such token, this is not its secret, or it has expired.
            InvalidInput: no machine may have this name.
            Forbidden: it was made for another name.
            Conflict: it is used up.
        """
        while True:
            kept = self._match(token_id, secret)
            _require_usable(kept.noun, machine)
            try:
                return self._registry.replace(used_once_more(kept.noun), at=self._now(), revision=kept.revision).noun
            except Stale:  # another machine took a use; there are ever fewer, so this comes to an end
                continue
            except NotFound:
                raise Unauthorized(_UNKNOWN) from None

    def check(self, token_id: str, secret: str, machine: str) -> None:
        """Raise what `admit` would raise; no use is taken."""
        _require_usable(self._match(token_id, secret).noun, machine)

    def _match(self, token_id: str, secret: str) -> Kept[JoinToken]:
        """Return the token; of one that there is none of the search takes as long."""
        kept = self._registry.get(JoinToken, token_id) if _is_id(token_id) else None
        fits = (_NOBODYS if kept is None else kept.noun).matches(secret)
        if kept is None or not fits:
            raise Unauthorized(_UNKNOWN)
        if kept.noun.expires_at <= self._now():
            raise Unauthorized("this join token has expired; make another one with `pliant machines token`")
        return kept

    def _forget(self, token_id: str) -> None:
        try:
            self._registry.remove(JoinToken, token_id)
        except NotFound:  # another server was faster
            return

    # Machines

    def note(self, machine: JoinedMachine) -> None:
        """Remember a machine, or what its agent said last; written only if something of it is new.

        Raises:
            InvalidInput: with everything of it that nobody can remember.
        """
        if problems := problems_of_machine(machine):
            raise InvalidInput(*problems)
        known = self.get(machine.name)
        if known == machine:
            return
        try:
            if known is None:
                self._registry.add(machine, at=self._now())
            else:
                self._registry.replace(machine, at=self._now())
        except (Conflict, NotFound):  # it was added, or removed, between the two
            (self._registry.replace if known is None else self._registry.add)(machine, at=self._now())

    def get(self, name: str) -> JoinedMachine | None:
        """Return a machine that has joined; None: none of this name has."""
        kept = self._registry.get(JoinedMachine, name)
        return None if kept is None else kept.noun

    def require(self, name: str, fingerprint: str) -> JoinedMachine:
        """Return the machine that shows a certificate of this name, for the key with this fingerprint.

        Raises:
            Unauthorized: it was removed, or another machine has joined by its name since.
        """
        machine = self.get(name)
        if machine is None:
            raise Unauthorized(
                f"{name!r:.80} was removed from this pool; to come back it has to join again, with a token that "
                f"`pliant machines token` makes"
            )
        if machine.fingerprint != fingerprint:
            raise Unauthorized(
                f"another machine has joined this pool as {name!r:.80} since; give one of the two another name, and "
                f"let it join with a token that `pliant machines token` makes"
            )
        return machine

    def all(self) -> tuple[JoinedMachine, ...]:
        """Return the machines that have joined, by name."""
        return tuple(kept.noun for kept in iterate_nouns(self._registry, JoinedMachine))

    def remove(self, name: str) -> None:
        """Forget a machine: its certificate opens nothing any more.

        Raises:
            NotFound: none of this name has joined.
        """
        try:
            self._registry.remove(JoinedMachine, name)
        except NotFound:
            raise NotFound(f"no machine {name!r:.80} has joined; list them to see which there are") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoiningRoom:
    """What a server that takes machines has for it. A server without it takes none."""

    joining: Joining
    pin: Callable[[], str]
    """Of the certificate with which agents are answered."""
    address: Callable[[], str]
    """Where agents reach this server, HOST:PORT."""
    is_here: Callable[[str], bool]
    """Tells whether a machine's agent is linked now."""
    forget: Callable[[str], None]
    """Closes the link of a machine that was removed, and takes it out of the pool; of one without, nothing.

    Called under the lock of decisions, as what is asked of the cluster: it waits for nothing that needs that lock.
    """


def _problems(machine: str, valid_s: float, max_uses: int) -> Sequence[Problem]:
    problems = []
    if machine and (fault := machine_name_fault(machine)):
        problems.append(Problem(field="machine", message=fault))
    if not 1 <= valid_s <= MAX_JOIN_TOKEN_S:
        message = (
            f"{valid_s:g} s is no time for a join token: it is good for 1 s to {MAX_JOIN_TOKEN_S / 86400:.0f} days"
        )
        problems.append(Problem(field="valid_s", message=message))
    if not 1 <= max_uses <= MAX_TOKEN_USES:
        message = f"{max_uses} machines cannot join with one token: give 1 to {MAX_TOKEN_USES}"
        problems.append(Problem(field="max_uses", message=message))
    if machine and max_uses > 1:
        message = f"a token for the name {machine!r} is for one machine, not for {max_uses}; leave out one of the two"
        problems.append(Problem(field="max_uses", message=message))
    return problems


def _require_usable(token: JoinToken, machine: str) -> None:
    if fault := machine_name_fault(machine):
        raise InvalidInput.at("name", fault)
    if token.machine not in ("", machine):
        raise Forbidden(
            f"this join token is for a machine of the name {token.machine!r}, and this one wants to be {machine!r}; "
            f"give it that name, or make a token for this one with `pliant machines token`"
        )
    if token.num_uses >= token.max_uses:
        times = "once" if token.max_uses == 1 else f"{token.max_uses} times"
        raise Conflict(
            f"this join token was used {times} already, which is all it is good for; make another one with "
            f"`pliant machines token`"
        )


def _is_id(text: str) -> bool:
    return len(text) == 2 * NUM_ID_BYTES and text.isascii() and text.isalnum()
