"""Remembers whose a token is, so that the server is asked once in a while and not with every request.

    a valid token       is taken for true for as long as the server says
    the server is away  it stays good for ten minutes more; a token that nobody knows has to wait, and is refused then
    a worthless token   is refused for 5 s without a question

Requests that show the same token at once ask one question together. Tokens are kept as SHA-256, and so many of them at
most; worthless ones apart, so that strangers who try many push out nobody. Knows no link. Belongs to one event loop.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from pliant.core.errors import Unauthorized, Unavailable
from pliant.core.serving import Answer
from pliant.serve.gateway.callers import CallerRights

K = TypeVar("K")
MAX_KEPT: Final = 10_000
MAX_TOKEN: Final = 1000
MAX_QUESTIONS: Final = 256
"""Under way at once."""
WORTHLESS_S: Final = 5.0
STALE_S: Final = 600.0
_ASK_AGAIN_S: Final = 5.0
"""So long after a question that got no answer."""
_WORTHLESS: Final = (
    "the token opens nothing here: it is wrong, has expired, or was revoked; log on again, or make a new token"
)


class TokenOracle(Protocol):
    """Knows whose tokens are: the server."""

    @property
    def is_there(self) -> bool:
        """Whether a question would reach it now."""
        ...

    async def ask(self, token: str) -> Answer:
        """Return whose a token is.

        Raises:
            Unavailable: no answer came in time.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    rights: CallerRights
    fresh_until: float
    good_until: float
    """While the server is away."""


class KnownCallers:
    """A `CallerBook` over somebody who knows.

    Args:
        oracle: is asked.
        clock: seconds that only grow.
    """

    def __init__(self, oracle: TokenOracle, clock: Callable[[], float]) -> None:
        self._oracle = oracle
        self._clock = clock
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        self._worthless: OrderedDict[bytes, float] = OrderedDict()
        self._questions: dict[bytes, asyncio.Task[CallerRights]] = {}

    def __len__(self) -> int:
        return len(self._known) + len(self._worthless)

    async def who(self, token: str) -> CallerRights:
        """Return who holds a token.

        Raises:
            Unauthorized: it is worthless.
            Unavailable: the server, which would know, does not answer.
        """
        if not (0 < len(token) <= MAX_TOKEN and token.isascii() and token.isprintable()):
            raise Unauthorized(_WORTHLESS)
        digest, now = hashlib.sha256(token.encode()).digest(), self._clock()
        known = self._known.get(digest)
        if known is not None and (now < known.fresh_until or (not self._oracle.is_there and now < known.good_until)):
            self._known.move_to_end(digest)
            return known.rights
        if now < self._worthless.get(digest, now):
            raise Unauthorized(_WORTHLESS)
        return await self._ask_once(digest, token)

    async def _ask_once(self, digest: bytes, token: str) -> CallerRights:
        """Ask together with all who ask the same now; who stops to wait stops nobody else."""
        question = self._questions.get(digest)
        if question is None:
            if len(self._questions) >= MAX_QUESTIONS:
                raise Unavailable("the server is being asked who very many others are; try again in a second")
            question = asyncio.create_task(self._ask(digest, token))
            self._questions[digest] = question
            question.add_done_callback(lambda done: self._forget_question(digest, done))
        return await asyncio.shield(question)

    def _forget_question(self, digest: bytes, done: asyncio.Task[CallerRights]) -> None:
        del self._questions[digest]
        if not done.cancelled():
            done.exception()  # whoever asked may be gone: then nobody else would look at it

    async def _ask(self, digest: bytes, token: str) -> CallerRights:
        try:
            answer = await self._oracle.ask(token)
        except Unavailable:
            return self._recall(digest)
        now = self._clock()
        if answer.name is None:
            self._known.pop(digest, None)
            _keep(self._worthless, digest, now + WORTHLESS_S)
            raise Unauthorized(_WORTHLESS)
        rights = CallerRights(name=answer.name, sees_all=answer.sees_all, may_infer=answer.may_infer)
        self._worthless.pop(digest, None)
        fresh_until = now + answer.valid_s
        _keep(self._known, digest, _Known(rights=rights, fresh_until=fresh_until, good_until=fresh_until + STALE_S))
        return rights

    def _recall(self, digest: bytes) -> CallerRights:
        """Return what the server said last, which did not answer now; it is left alone for a few seconds.

        Raises:
            Unavailable: that is too long ago, or it never said anything.
        """
        known, now = self._known.get(digest), self._clock()
        if known is None or now >= known.good_until:
            raise Unavailable(
                "the server, which knows whose tokens are, does not answer; requests go on as soon as it is back, so "
                "try again in a few seconds"
            )
        fresh_until = min(now + _ASK_AGAIN_S, known.good_until)
        self._known[digest] = _Known(rights=known.rights, fresh_until=fresh_until, good_until=known.good_until)
        return known.rights


def _keep(kept: OrderedDict[bytes, K], digest: bytes, value: K) -> None:
    """Keep a value as the newest; the oldest goes if there are too many."""
    kept[digest] = value
    kept.move_to_end(digest)
    if len(kept) > MAX_KEPT:
        kept.popitem(last=False)
