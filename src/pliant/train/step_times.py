"""What a step usually takes this task, as it sees it: from one commit to the next in the same generation.

Steps that begin with a change of members or end in a loss do not count. Knows no other task and no gradient.
"""

import statistics
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

_NUM_KEPT: Final = 9


@dataclass(slots=True, kw_only=True)
class StepTimes:
    """The times of the newest steps.

    Args:
        clock: monotonic, seconds.
    """

    clock: Callable[[], float]
    _times: deque[float] = field(default_factory=lambda: deque(maxlen=_NUM_KEPT))
    _since: float | None = None

    def interrupt(self) -> None:
        """Do not count what goes on now as a step."""
        self._since = None

    def commit(self) -> None:
        """Note that a step is done."""
        now = self.clock()
        if self._since is not None:
            self._times.append(now - self._since)
        self._since = now

    @property
    def step_us(self) -> int:
        """Microseconds of a usual step; 0 if none is known."""
        return round(statistics.median(self._times) * 1e6) if self._times else 0
