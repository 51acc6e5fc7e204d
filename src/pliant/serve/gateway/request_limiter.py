"""Holds the requests of one token to its limits: so many per second, and so many at once.

The rate is a token bucket, kept as one number (the generic cell rate algorithm, ITU-T I.371): `_due`, when the bucket
will be full again. A request moves it on by 1/r seconds, and is refused if it would come to lie more than the bucket
holds ahead of now. The bucket holds what comes in one second, and one request at least, so that in any time t no more
than r*t + max(1, r) requests pass. Example: at r = 2 two requests pass at once, the third one half a second later.
"""

import math
from collections.abc import Callable
from typing import Final

from pliant.core.serving import RequestLimits
from pliant.serve.gateway.refused import TRY_AGAIN_S, Refused

_BURST_S: Final = 1.0
_ROUNDING_S: Final = 1e-9
"""Whoever comes at the very moment that they were told is not refused for the last digit of a sum."""


class RequestLimiter:
    """Counts requests. Every call takes the same, short time.

    Args:
        limits: what it holds them to.
        clock: seconds that only grow.
    """

    __slots__ = ("_clock", "_due", "_num_under_way", "limits")

    def __init__(self, limits: RequestLimits, clock: Callable[[], float]) -> None:
        self.limits = limits
        self._clock = clock
        self._due = -math.inf
        self._num_under_way = 0

    def is_idle(self) -> bool:
        """Whether nothing is under way and the bucket is full: a new one would do the same."""
        return not self._num_under_way and self._due <= self._clock()

    def enter(self) -> None:
        """Begin a request; `leave` has to follow.

        Raises:
            Refused: there are too many; it does not count then.
        """
        most, rate = self.limits.max_concurrent, self.limits.max_rate
        if most is not None and self._num_under_way >= most:
            message = f"{most} requests with this token are under way, which is the most; wait for an answer"
            raise Refused(429, message, retry_after_s=TRY_AGAIN_S)
        if rate is not None:
            self._pass(rate)
        self._num_under_way += 1

    def leave(self) -> None:
        """End a request."""
        self._num_under_way -= 1

    def _pass(self, rate: float) -> None:
        now = self._clock()
        due = max(self._due, now) + 1 / rate
        wait_s = due - now - max(_BURST_S, 1 / rate)
        if wait_s > _ROUNDING_S:
            message = f"this token may send {rate:g} requests a second; send the next one in {wait_s:.3f} s"
            raise Refused(429, message, retry_after_s=math.ceil(wait_s))
        self._due = due
