"""A clock that stands still until somebody moves it. Invariant: it never runs backwards."""

import heapq
import itertools
from collections.abc import Callable


class VirtualClock:
    """Time, and what is to happen at which time; implements `pliant.core.ports.Clock`."""

    def __init__(self, start_at: float = 0.0) -> None:
        self._now = start_at
        self._order = itertools.count()
        self._due: list[tuple[float, int, Callable[[], None]]] = []

    def now(self) -> float:
        return self._now

    def call_later(self, delay_s: float, action: Callable[[], None]) -> None:
        """Run an action when the clock has moved on so far; equal times run in the order of the calls.

        Raises:
            ValueError: the delay is negative.
        """
        if delay_s < 0:
            raise ValueError(f"delay_s is {delay_s}; the past cannot be scheduled, give 0 or more")
        heapq.heappush(self._due, (self._now + delay_s, next(self._order), action))

    def next_at(self) -> float | None:
        """Return when the next action is due; None if there is none."""
        return self._due[0][0] if self._due else None

    def advance(self, seconds: float) -> None:
        """Move on; run what falls due on the way, each at its own time, also what that schedules.

        Raises:
            ValueError: the seconds are negative.
        """
        if seconds < 0:
            raise ValueError(f"seconds is {seconds}; a clock moves forward only, give 0 or more")
        until = self._now + seconds
        while self._due and self._due[0][0] <= until:
            self._now, _, action = heapq.heappop(self._due)
            action()
        self._now = until
