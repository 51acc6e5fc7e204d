"""Holds the requests with one token, or to one endpoint, to its limits: so many per second, and so many at once.

The rate is a token bucket, kept as one number (the generic cell rate algorithm, ITU-T I.371): `due`, when the bucket
will be full again. A request moves it on by 1/r seconds, and is refused if it would come to lie more than the bucket
holds ahead of now. The bucket holds what comes in one second, and one request at least, so that in any time t no more
than r*t + max(1, r) requests pass. Example: at r = 2 two requests pass at once, the third one half a second later.
"""

import math
from collections.abc import Callable
from typing import Final, Protocol

from pliant.core.serving import RequestLimits
from pliant.serve.gateway.refused import TRY_AGAIN_S, Refused

_BURST_S: Final = 1.0
_ROUNDING_S: Final = 1e-9
"""Whoever comes at the very moment that they were told is not refused for the last digit of a sum."""


class LimitUse(Protocol):
    """How much of limits is used, by all processes that share it."""

    due: float
    """When the bucket will be full again."""

    @property
    def num(self) -> int:
        """Requests that are under way."""
        ...

    def add(self, num: int) -> None:
        """Count so many more, or fewer."""
        ...

    def spend(self, now: float, seconds: float) -> None:
        """Take from the bucket what fills it in so many seconds."""
        ...

    def lock(self) -> bool:
        """Keep other processes from changing it until `unlock`; False: there are none."""
        ...

    def unlock(self) -> None: ...


class OwnUse:
    """What a process uses that shares limits with no other."""

    __slots__ = ("due", "num")

    def __init__(self) -> None:
        self.due = -math.inf
        self.num = 0

    def add(self, num: int) -> None:
        """Count so many more, or fewer."""
        self.num += num

    def spend(self, now: float, seconds: float) -> None:
        """Take from the bucket what fills it in so many seconds."""
        self.due = max(self.due, now) + seconds

    def lock(self) -> bool:
        """Nobody else changes it."""
        return False

    def unlock(self) -> None:
        """There is nothing to unlock."""


class RequestLimiter:
    """Counts requests. Every call takes the same, short time.

    Args:
        limits: what it holds them to.
        clock: seconds that only grow, and are the same for all processes that share the use.
        whose: says which requests it counts, after "requests".
        use: what is used of the limits; None: nothing, and by nobody else.
    """

    __slots__ = ("_clock", "_use", "_whose", "limits")

    def __init__(
        self,
        limits: RequestLimits,
        clock: Callable[[], float],
        whose: str = "with this token",
        use: LimitUse | None = None,
    ) -> None:
        self.limits = limits
        self._clock = clock
        self._whose = whose
        self._use: LimitUse = OwnUse() if use is None else use

    def is_idle(self) -> bool:
        """Whether nothing is under way and the bucket is full: a new one would do the same."""
        return not self._use.num and self._use.due <= self._clock()

    def change(self, limits: RequestLimits) -> None:
        """Hold requests to other limits; those that are under way count on, and a new rate begins with what is left of
        its bucket: nothing at the most.
        """
        self.limits = limits
        if limits.max_rate is not None:
            self._use.lock()
            self._use.due = min(self._use.due, self._clock() + _bucket_s(limits.max_rate))
            self._use.unlock()

    def check(self) -> None:
        """Refuse a request if there are too many.

        Raises:
            Refused: there are.
        """
        most, rate = self.limits.max_concurrent, self.limits.max_rate
        if most is not None and self._use.num >= most:
            message = f"{most} requests {self._whose} are under way, which is the most; wait for an answer"
            raise Refused(429, message, retry_after_s=TRY_AGAIN_S)
        if rate is None:
            return
        now = self._clock()
        wait_s = max(self._use.due, now) + 1 / rate - now - _bucket_s(rate)
        if wait_s > _ROUNDING_S:
            message = f"{rate:g} requests a second {self._whose} are taken; send the next one in {wait_s:.3f} s"
            raise Refused(429, message, retry_after_s=math.ceil(wait_s))

    def begin(self) -> None:
        """Count a request that was checked just now; `leave` has to follow."""
        if self.limits.max_rate is not None:
            self._use.spend(self._clock(), 1 / self.limits.max_rate)
        self._use.add(1)

    def leave(self) -> None:
        """End a request."""
        self._use.add(-1)

    def lock(self) -> bool:
        """Keep other processes from beginning a request until `unlock`; False: that need not be."""
        if self.limits.max_rate is None and self.limits.max_concurrent is None:
            return False
        return self._use.lock()

    def unlock(self) -> None:
        """End that."""
        self._use.unlock()


def enter(*limiters: RequestLimiter) -> None:
    """Begin a request that all of these count; `leave` of each has to follow.

    Raises:
        Refused: one of them says that there are too many; it counts for none then.
    """
    locked = [limiter for limiter in limiters if limiter.lock()]
    try:
        for limiter in limiters:
            limiter.check()
        for limiter in limiters:
            limiter.begin()
    finally:
        for limiter in locked:
            limiter.unlock()


def _bucket_s(rate: float) -> float:
    """Return in what time a full bucket has filled."""
    return max(_BURST_S, 1 / rate)
