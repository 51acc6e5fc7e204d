"""When requests are sent: an open loop. What became of those before has no part in it.

Pure: time is handed in.
"""

from dataclasses import dataclass
from random import Random
from typing import Final

TICK_S: Final = 0.002
"""Instants are exact to this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """A rate, in requests per second, that goes from one value to another in a straight line, and stays there."""

    from_rate: float
    to_rate: float
    began_at: float
    within_s: float

    def at(self, now: float) -> float:
        """Return the rate at an instant."""
        if now >= self.began_at + self.within_s:
            return self.to_rate
        if now <= self.began_at:
            return self.from_rate
        done = (now - self.began_at) / self.within_s
        return self.from_rate + done * (self.to_rate - self.from_rate)

    def turn(self, to_rate: float, *, within_s: float, now: float) -> "Slope":
        """Return the slope that goes on from the present rate to another one."""
        return Slope(from_rate=self.at(now), to_rate=to_rate, began_at=now, within_s=within_s)


class Arrivals:
    """Instants as irregular as chance makes them (a Poisson process whose rate follows a slope)."""

    def __init__(self, *, seed: int, now: float) -> None:
        self._dice = Random(seed)
        self._at = now
        self._left = self._dice.expovariate(1.0)
        """What the rate still has to add up to before the next request is due."""
        self.slope = Slope(from_rate=0.0, to_rate=0.0, began_at=now, within_s=0.0)

    def turn(self, to_rate: float, *, within_s: float, now: float) -> None:
        """Change the rate from now on."""
        self.slope = self.slope.turn(to_rate, within_s=within_s, now=now)

    def until(self, now: float) -> list[float]:
        """Return the instants since the last call, oldest first. A call that comes late returns all that were due."""
        due = []
        while self._at + TICK_S <= now:
            self._at += TICK_S
            self._left -= self.slope.at(self._at) * TICK_S
            while self._left <= 0:
                due.append(self._at)
                self._left += self._dice.expovariate(1.0)
        return due
