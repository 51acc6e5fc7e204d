"""How fast this task computes, and how the tasks of its generation share the virtual workers for it.

Theory of operation
-------------------
Every task measures what its own parts of a step take, without what it waits for others. The leader asks, now and then,
in a control element of a step's gradients: so all members see it at the same step. After that step they tell each other
their times in a table, and each works out the same shares from it (`pliant.train.shares`); the next step is computed by
them. So a new division costs one small collective, no generation and no message of the server's. The parts stay what
they are, and so does every bit of the result.

Example: two tasks with 4 and 4 of 8 virtual workers; the second one takes twice as long for each.

    step 40    10 s after they have met the leader sets its element; both see 1
    after it   the table has 0.1 s and 0.2 s; shares of 6 and 2 are done after 0.6 s instead of 0.8 s, which is worth it
    step 41    the first computes the parts 0 to 5, the second 6 and 7

With a generation all members tell their times, too: who has measured something before keeps its speed, and a newcomer
counts as usual. A generation that is lost meanwhile is lost for all: they share anew in the next one.

Knows no sample, no gradient and no server.
"""

import statistics
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import torch

from pliant.train.shares import even, rebalance

FIRST_S: Final = 10.0
"""Speeds are compared so long after the tasks have met, and then every so often:"""
EVERY_S: Final = 60.0
_NUM_KEPT: Final = 4096
"""Steps whose times count, of those since times were compared last: their median, which a slow moment does not move."""
_NUM_NEEDED: Final = 3


class Stopwatch:
    """The time between two moments of a task's computing, as its device spends it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._times = (0.0, 0.0)
        self._events: tuple[torch.cuda.Event, torch.cuda.Event] | None = None

    def start(self, device: torch.device) -> None:
        """Begin to measure what follows on this device."""
        self._times = (self._clock(), 0.0)
        self._events = None
        if device.type == "cuda":  # the host only orders what a GPU does later
            self._events = (_event(), _event())
            self._events[0].record()

    def stop(self) -> None:
        """End it; without waiting for the device."""
        self._times = (self._times[0], self._clock())
        if self._events is not None:
            self._events[1].record()

    def seconds(self) -> float:
        """Return what it took; asked once the device has come so far anyway."""
        if self._events is None:
            return self._times[1] - self._times[0]
        begin, end = self._events
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1000


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


@dataclass(slots=True, kw_only=True)
class SpeedBalance:
    """The shares of a generation's tasks, and this task's times. If it is not enabled, shares stay even.

    All members call `begin_generation` and `divide` with the same table at the same step, so that they share alike.
    """

    clock: Callable[[], float] = lambda: 0.0
    """Monotonic, seconds."""
    virtual_workers: int = 1
    is_enabled: bool = False
    first_s: float = FIRST_S
    every_s: float = EVERY_S
    shares: tuple[int, ...] = ()
    """Virtual workers of every task, in rank order; empty while they are even."""
    _size: int = 1
    _known_s: float = 0.0
    """Seconds for a part as they were measured last; 0 if they never were."""
    _of_part: deque[float] = field(default_factory=lambda: deque(maxlen=_NUM_KEPT))
    _of_step: deque[float] = field(default_factory=lambda: deque(maxlen=_NUM_KEPT))
    """Seconds of whole steps in which this task did not compute its parts."""
    _due_at: float = 0.0
    _watch: Stopwatch | None = None
    _begun_at: float | None = None
    _num_mine: int = 0
    _computed_s: float = 0.0

    @property
    def num_elements(self) -> int:
        """Control elements that this needs, behind all others."""
        return int(self.is_enabled)

    # -- a step -----------------------------------------------------------------------------------------------------

    def begin_step(self, device: torch.device, *, num_parts: int) -> None:
        """Start to measure a step of which this task computes so many parts."""
        if not self.is_enabled or self._size == 1:
            return
        now = self.clock()
        if self._begun_at is not None and self._computed_s > 0:
            self._of_step.append(max(0.0, now - self._begun_at - self._computed_s))
        self._begun_at, self._computed_s = now, 0.0
        self._watch = Stopwatch(self.clock)
        self._watch.start(device)
        self._num_mine = num_parts

    def end_computing(self) -> None:
        """Note that this task has computed its parts; from now on it waits for others."""
        if self._watch is not None:
            self._watch.stop()

    def end_step(self) -> None:
        """Note that the step is done, and its sum was read on the host."""
        watch, self._watch = self._watch, None
        if watch is not None and self._num_mine > 0:
            self._computed_s = watch.seconds()
            self._of_part.append(self._computed_s / self._num_mine)

    # -- shares -----------------------------------------------------------------------------------------------------

    def is_due(self) -> bool:
        """Tell whether the leader is to ask for everybody's times."""
        enough = self.is_enabled and self._size > 1 and len(self._of_part) >= _NUM_NEEDED
        return enough and self.clock() >= self._due_at

    def row(self) -> list[float]:
        """Return this task's times: seconds for a part, and what else a step takes; 0 for what is not known."""
        if len(self._of_part) >= _NUM_NEEDED:
            self._known_s = statistics.median(self._of_part)
        return [self._known_s, statistics.median(self._of_step) if self._of_step else 0.0]

    def begin_generation(self, table: Sequence[Sequence[float]]) -> None:
        """Share the virtual workers among new members, one row each."""
        self._size, self.shares = len(table), ()
        self._forget_steps()
        self._share([(of_part, 0.0) for of_part, _ in table])
        self._due_at = self.clock() + self.first_s

    def divide(self, table: Sequence[Sequence[float]]) -> None:
        """Share the virtual workers anew if that saves enough of a step; what comes after it is measured anew."""
        self._share(table)
        self._forget_steps()
        self._due_at = self.clock() + self.every_s

    def _share(self, table: Sequence[Sequence[float]]) -> None:
        if not self.is_enabled or not 1 < self._size <= self.virtual_workers:
            return
        usual = even(self.virtual_workers, self._size)
        # who waits for others has waiting in the rest of its steps; the slowest has none
        shares = rebalance(self.shares or usual, [row[0] for row in table], min(row[1] for row in table))
        self.shares = () if shares == usual else shares

    def _forget_steps(self) -> None:
        self._of_part.clear()
        self._of_step.clear()
        self._begun_at, self._computed_s, self._watch = None, 0.0, None
