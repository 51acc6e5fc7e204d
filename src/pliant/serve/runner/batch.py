"""How many requests a kernel computes at once (`BatchCap`). Pure.

A batch never waits: it takes what is there. But a batch of n takes about a + b·n seconds, and everyone in it waits for
all of it. So it is not larger than what fits into half of the endpoint's latency objective; the other half is for the
wait in the queue. Example: a = 40 ms, b = 20 ms, an objective of 0.4 s; half of it is 200 ms, and the cap is 8.

a and b are a least-squares fit in which older batches count less and less. The fit leans towards a cost in proportion
to n, which decides where all batches were of one size. What it predicts is corrected by what happens: every miss
lowers the cap by a tenth, every hit brings a little of it back (additive increase, multiplicative decrease, as in
Clipper, NSDI 2017). Two things keep it from being stuck where it is: a model that takes longer than the half for a
single request gets what costs a quarter more than one alone, since smaller batches could not help; and after many
batches that the cap cut short, one may be of twice the size, to see what that costs.
"""

import math
from dataclasses import dataclass
from typing import Final

_DECAY: Final = 0.95
"""How much of its weight a batch keeps with every batch after it: the last 20 or so count."""
_LEAN: Final = 0.005
"""The weight of a cost in proportion to n, in batches that are one request larger or smaller than the mean."""
_SURPRISE: Final = 4.0
"""A batch counts as at most so many times what was predicted: one may be slow by chance, many cannot be."""
_QUICK_S: Final = 0.001
_SHARE: Final = 0.5
_ALONE: Final = 1.25
_DECREASE: Final = 0.9
_INCREASE: Final = 0.02
_LEAST_TRUST: Final = 0.1
_PROBE_AFTER: Final = 32


@dataclass(slots=True)
class LatencyFit:
    """A line `a + b·n` through the seconds that batches of n took; newer ones count more."""

    weight: float = 0.0
    mean_n: float = 0.0
    mean_s: float = 0.0
    variance: float = 0.0
    covariance: float = 0.0

    def add(self, num: int, seconds: float) -> None:
        """Take in a batch."""
        old = self.weight * _DECAY
        self.weight = old + 1
        off_n, off_s = num - self.mean_n, seconds - self.mean_s
        share = 1 / self.weight
        self.mean_n += share * off_n
        self.mean_s += share * off_s
        kept = old / self.weight
        self.variance = kept * (self.variance + share * off_n * off_n)
        self.covariance = kept * (self.covariance + share * off_n * off_s)

    def most(self, num: int) -> float:
        """Return the most that a batch of this size may take to be believed at once."""
        fixed, slope = self.line()
        return _SURPRISE * max(fixed + slope * num, _QUICK_S) if self.weight else math.inf

    def line(self) -> tuple[float, float]:
        """Return a and b, neither below 0; both 0 before the first batch."""
        if not self.weight:
            return 0.0, 0.0
        alike = self.mean_s / self.mean_n
        slope = (self.covariance + _LEAN * alike) / (self.variance + _LEAN)
        slope = min(max(slope, 0.0), alike)
        return self.mean_s - slope * self.mean_n, slope


class BatchCap:
    """The largest batch that keeps to a latency objective, learned from the batches so far."""

    def __init__(self) -> None:
        self._fit = LatencyFit()
        self._trust = 1.0
        self._is_warm = False
        self._num_cut = 0

    def limit(self, batch_size: int, objective_s: float) -> int:
        """Return how many requests the next batch may have: at least 1, never above `batch_size`."""
        fitting = self._fitting(objective_s)
        if fitting >= batch_size:
            return batch_size
        cap = max(1, math.floor(fitting))
        return min(batch_size, 2 * cap) if self._num_cut >= _PROBE_AFTER else cap

    def observe(self, num: int, seconds: float, *, objective_s: float, was_cut: bool = False) -> None:
        """Learn from a batch of `num` requests.

        Args:
            num: requests in it.
            seconds: what it took.
            objective_s: the endpoint's.
            was_cut: more requests waited than the cap let in.
        """
        if not self._is_warm:  # the first one allocates, compiles and imports
            self._is_warm = True
            return
        probed = self._num_cut >= _PROBE_AFTER
        self._num_cut = 0 if probed else self._num_cut + was_cut
        if num > 1 and not probed:
            missed = seconds > max(_SHARE * objective_s, _ALONE * self._alone())
            self._trust = max(_LEAST_TRUST, self._trust * _DECREASE) if missed else min(1.0, self._trust + _INCREASE)
        self._fit.add(num, min(seconds, self._fit.most(num)))

    def _alone(self) -> float:
        return sum(self._fit.line())

    def _fitting(self, objective_s: float) -> float:
        fixed, slope = self._fit.line()
        budget = max(_SHARE * objective_s, _ALONE * (fixed + slope))
        return self._trust * (budget - fixed) / slope if slope > 0 else math.inf
