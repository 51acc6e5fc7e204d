"""Remembers whose a token is, so that the server is asked once in a while and not with every request.

    a valid token       is taken for true for as long as the server says
    the server is away  it stays good for ten minutes more; a token that nobody knows has to wait, and is refused then
    a worthless token   is refused for 5 s without a question
    the server says that what somebody's tokens open has changed: they are forgotten, and asked for again
    the server is back  every token is asked for again, since nobody knows what was said meanwhile

Requests that show the same token at once ask one question together. Tokens are kept as SHA-256, and so many of them at
most; worthless ones apart, so that strangers who try many push out nobody. What a token has used of its limits outlives
what is known of it: as many more are kept of those that are forgotten before their limits are whole again. Knows no
link. Belongs to one event loop.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol

from pliant.core.errors import Unauthorized, Unavailable
from pliant.core.serving import Answer, RequestLimits
from pliant.serve.gateway.callers import CallerRights
from pliant.serve.gateway.gateway_share import ALONE, GatewayShare
from pliant.serve.gateway.request_limiter import RequestLimiter

MAX_KEPT: Final = 10_000
MAX_TOKEN: Final = 1000
MAX_QUESTIONS: Final = 256
"""Under way at once."""
WORTHLESS_S: Final = 5.0
STALE_S: Final = 600.0
_ASK_AGAIN_S: Final = 5.0
"""So long after a question that got no answer."""
_AWAY: Final = (
    "the server, which knows whose tokens are, does not answer; requests go on as soon as it is back, so try again in "
    "a few seconds"
)
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
    era: int
    """Of what was said by the server; what is of an earlier one is asked for again."""
    fresh_until: float
    good_until: float
    """While the server is away."""


class KnownCallers:
    """A `CallerBook` over somebody who knows.

    Args:
        oracle: is asked.
        clock: seconds that only grow.
        share: which of several processes this is; tokens' limits hold for all together.
    """

    def __init__(self, oracle: TokenOracle, clock: Callable[[], float], share: GatewayShare = ALONE) -> None:
        self._oracle = oracle
        self._share = share
        self._clock = clock
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        self._worthless: OrderedDict[bytes, float] = OrderedDict()
        self._questions: dict[bytes, asyncio.Task[CallerRights]] = {}
        self._used: OrderedDict[bytes, RequestLimiter] = OrderedDict()
        """Of tokens that were forgotten."""
        self._era = 0
        self._num_forgotten = 0

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
        if known is not None and self._is_good(known, now):
            self._known.move_to_end(digest)
            return known.rights
        if now < self._worthless.get(digest, now):
            raise Unauthorized(_WORTHLESS)
        return await self._ask_once(digest, token)

    def forget(self, name: str) -> None:
        """Forget all tokens of a user: what they open has changed."""
        self._num_forgotten += 1
        for digest in [digest for digest, known in self._known.items() if known.rights.name == name]:
            self._drop(digest)
        self._questions.clear()  # their answers may be from before; who asks now asks anew

    def doubt(self) -> None:
        """Ask again for every token, as far as there is somebody who answers."""
        self._era += 1

    def _is_good(self, known: _Known, now: float) -> bool:
        if self._oracle.is_there:
            return known.era == self._era and now < known.fresh_until
        return now < known.good_until

    async def _ask_once(self, digest: bytes, token: str) -> CallerRights:
        """Ask together with all who ask the same now; who stops to wait stops nobody else."""
        question = self._questions.get(digest)
        if question is None:
            if len(self._questions) >= MAX_QUESTIONS:
                return self._recall(digest, "the server is being asked who very many others are; try again in a second")
            question = asyncio.create_task(self._ask(digest, token))
            self._questions[digest] = question
            question.add_done_callback(lambda done: self._forget_question(digest, done))
        return await asyncio.shield(question)

    def _forget_question(self, digest: bytes, done: asyncio.Task[CallerRights]) -> None:
        if self._questions.get(digest) is done:
            del self._questions[digest]
        if not done.cancelled():
            done.exception()  # whoever asked may be gone: then nobody else would look at it

    async def _ask(self, digest: bytes, token: str) -> CallerRights:
        era, num_forgotten = self._era, self._num_forgotten
        try:
            answer = await self._oracle.ask(token)
        except Unavailable:
            return self._recall(digest, _AWAY)
        now = self._clock()
        if answer.name is None:
            self._drop(digest)
            self._worthless[digest] = now + WORTHLESS_S
            if len(self._worthless) > MAX_KEPT:
                self._worthless.popitem(last=False)
            raise Unauthorized(_WORTHLESS)
        rights = CallerRights(
            name=answer.name,
            sees_all=answer.sees_all,
            may_infer=answer.may_infer,
            endpoints=None if answer.endpoints is None else frozenset(answer.endpoints),
            limiter=self._limiter(digest, answer.limits),
        )
        self._worthless.pop(digest, None)
        if num_forgotten == self._num_forgotten:  # else the answer may be from before: it is for this request alone
            until = now + answer.valid_s
            self._keep(digest, _Known(rights=rights, era=era, fresh_until=until, good_until=until + STALE_S))
        elif rights.limiter is not None:
            self._keep_used(digest, rights.limiter)
        return rights

    def _limiter(self, digest: bytes, limits: RequestLimits) -> RequestLimiter | None:
        """Return what counts the requests with a token: the one that has counted so far, if there is one."""
        if limits == RequestLimits():
            return None
        known = self._known.get(digest)
        before = self._used.pop(digest, None) if known is None else known.rights.limiter
        if before is not None and before.limits == limits:
            return before
        return RequestLimiter(limits, self._clock, use=self._share.use_of("token", digest))

    def _keep(self, digest: bytes, known: _Known) -> None:
        """Keep something as the newest; the oldest goes if there are too many."""
        self._known[digest] = known
        self._known.move_to_end(digest)
        if len(self._known) > MAX_KEPT:
            self._drop(next(iter(self._known)))

    def _drop(self, digest: bytes) -> None:
        known = self._known.pop(digest, None)
        if known is not None and known.rights.limiter is not None:
            self._keep_used(digest, known.rights.limiter)

    def _keep_used(self, digest: bytes, limiter: RequestLimiter) -> None:
        """Keep what a token has used until its limits are whole again, and no new limiter would allow more."""
        self._used[digest] = limiter
        self._used.move_to_end(digest)
        while self._used and (len(self._used) > MAX_KEPT or next(iter(self._used.values())).is_idle()):
            self._used.popitem(last=False)

    def _recall(self, digest: bytes, why: str) -> CallerRights:
        """Return what the server said last, which did not answer now; it is left alone for a few seconds.

        Raises:
            Unavailable: that is too long ago, or it never said anything.
        """
        known, now = self._known.get(digest), self._clock()
        if known is None or now >= known.good_until:
            raise Unavailable(why)
        fresh_until = min(now + _ASK_AGAIN_S, known.good_until)
        self._known[digest] = replace(known, era=self._era, fresh_until=fresh_until)
        return known.rights
