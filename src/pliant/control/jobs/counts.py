"""What control counts for those who watch it, since the server was started: events, ends of jobs, and how long it took.

Counted when it is written, so what could not be written is not counted. Used under the ledger's lock.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pliant.core.event import EventKind
from pliant.core.histogram import DURATION_BOUNDS_S, BucketCounts
from pliant.core.lifecycle import JobState
from pliant.core.ports import Writes

ENDED = (JobState.COMPLETED, JobState.FAILED, JobState.STOPPED)


class ControlCounts:
    """Counts that only grow.

    Args:
        now: the time; a clock that is set back while something is timed counts as no time at all.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.events: Counter[EventKind] = Counter()
        self.ended: Counter[JobState] = Counter()
        self.pauses_s = BucketCounts(DURATION_BOUNDS_S)
        """How long trainings stood still when their size changed."""
        self.plans_s = BucketCounts(DURATION_BOUNDS_S)
        """How long the scheduler took to decide, without the writing."""
        self.ticks_s = BucketCounts(DURATION_BOUNDS_S)
        """How long the control loop took for one look at everything."""
        self._now = now

    def take(self, writes: Writes) -> None:
        """Count what was written."""
        for event in writes.events:
            self.events[event.kind] += 1
            pause_ms = event.data.get("pause_ms")
            if event.kind is EventKind.GENERATION_SWITCHED and event.data.get("from_size") and pause_ms is not None:
                self.pauses_s.add(float(pause_ms) / 1000)
            if event.kind is EventKind.JOB_STATE and (state := event.data.get("to")) in ENDED:
                self.ended[JobState(str(state))] += 1

    @contextmanager
    def timed(self, buckets: BucketCounts) -> Iterator[None]:
        """Count how long the block takes."""
        began = self._now()
        yield
        buckets.add(max(0.0, self._now() - began))
