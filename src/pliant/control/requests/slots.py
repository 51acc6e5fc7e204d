"""What people ask about slots over time: the chart of stacked layers, and the marks on it. Reads only."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pliant.api.slots import MarkPage
from pliant.core.access import VisibleJobs
from pliant.core.errors import InternalError, InvalidInput
from pliant.core.job import JobId
from pliant.core.job_filter import JobFilter
from pliant.core.lifecycle import JobState
from pliant.core.ports import Clock, EventFilter, Store
from pliant.core.queue import Queue
from pliant.core.registry import Kept
from pliant.core.slot_history import HOUR_S, CapacitySpan, JobLayer, SlotChart, SlotRecords
from pliant.policy.slot_chart import BucketRow, ChartRequest, buckets_for, draw
from pliant.policy.slot_marks import ENDS, MARKED, mark_of

MAX_STEPS: Final = 50_000
"""So many changes are looked at one by one; of windows with more the sums of hours are read."""
MAX_WIDE_STEPS: Final = 10_000
"""The same, where buckets are of whole hours anyway."""
MAX_COUNTED: Final = 10_000
"""So many marks are counted beyond those that are shown."""
MAX_TIME: Final = float(2**33)
"""Seconds since the epoch, and before now; in the year 2242."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindow:
    """A part of time as somebody asks for it. What is not positive is relative to now."""

    from_at: float
    until_at: float = 0.0

    def resolve(self, now: float) -> tuple[float, float]:
        """Return its ends, the later one not after now.

        Raises:
            InvalidInput: it ends before it begins, or begins after now.
        """
        begin, end = (at if at > 0 else now + at for at in (self.from_at, self.until_at))
        begin, end = max(0.0, begin), min(end, now)
        if begin >= end:
            raise InvalidInput.at(
                "from",
                f"the window begins at {begin:.3f} and ends at {end:.3f} at the latest, and it is {now:.3f} now; give "
                f"an earlier beginning: seconds since the epoch, or with a minus seconds before now",
            )
        return begin, end


class SlotQueries:
    """Answers from what the store has recorded; safe to call from any thread.

    Args:
        span: returns the span of capacity that this server keeps; None before it has begun one.
        queues: returns all queues.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        span: Callable[[], CapacitySpan | None],
        queues: Callable[[], Sequence[Kept[Queue]]],
    ) -> None:
        self._store = store
        self._clock = clock
        self._span = span
        self._queues = queues

    def chart(self, request: ChartRequest, visible: VisibleJobs | None = None) -> SlotChart:
        """Return the slots of a window in layers; of jobs that somebody does not see only their sum.

        `from_at` and `until_at` may be relative to now, as in `TimeWindow`.

        Raises:
            InvalidInput: there is no such window.
        """
        now = self._clock.now()
        begin, end = TimeWindow(from_at=request.from_at, until_at=request.until_at).resolve(now)
        request = replace(request, from_at=begin, until_at=end)
        row, history = self._read(request)
        history = replace(history, spans=self._reach_now(history.spans, now))
        if request.by == "group":
            groups = {kept.noun.name: kept.noun.resource_group for kept in self._queues()}
            history = replace(history, layers=_in_groups(history.layers, groups))
        return draw(request, history, row, now, lambda layer: _sees(visible, layer))

    def _read(self, request: ChartRequest) -> tuple[BucketRow, SlotRecords]:
        row = buckets_for(request)
        if row.width < HOUR_S or row.width % HOUR_S:
            found = self._store.slot_history(row.begins_at, row.ends_at, max_steps=MAX_STEPS)
        else:
            found = self._store.slot_history(row.begins_at, row.ends_at, max_steps=MAX_WIDE_STEPS)
        if found is None:
            row = buckets_for(request, HOUR_S)
            found = self._store.slot_history(row.begins_at, row.ends_at, max_steps=0, by_hour=True)
        if found is None:
            raise InternalError("sums of hours were asked for, and refused for their number")
        return row, found

    def _reach_now(self, spans: Sequence[CapacitySpan], now: float) -> tuple[CapacitySpan, ...]:
        own = self._span()
        return tuple(
            replace(span, until_at=max(span.until_at, now)) if own is not None and span.number == own.number else span
            for span in spans
        )

    def colour_of_search(self, name: str) -> int | None:
        """Return the colour that the trials of a search share; None if it has none."""
        found = self._store.jobs(JobFilter(searches=(name,)), limit=1)
        return found[0].colour if found else None

    def marks(
        self, window: TimeWindow, limit: int, job_id: JobId | None = None, visible: VisibleJobs | None = None
    ) -> MarkPage:
        """Return the newest marks of a window, in order, as far as somebody sees the jobs.

        Raises:
            InvalidInput: there is no such window.
        """
        begin, end = window.resolve(self._clock.now())
        which = EventFilter(
            since=begin,
            until=end if window.until_at > 0 else None,
            job_id=job_id,
            kinds=MARKED,
            states=tuple(map(JobState, ENDS)),
            newest=True,
            limit=limit,
            visible=visible,
        )
        events = tuple(reversed(self._store.events(which)))
        layers = self._store.job_layers({event.job_id for event in events if event.job_id is not None})
        found = (mark_of(event, None if event.job_id is None else layers.get(event.job_id)) for event in events)
        more = 0
        if len(events) == limit:
            more = self._store.count_events(replace(which, newest=False, before=events[0].seq, limit=MAX_COUNTED))
        return MarkPage(marks=tuple(mark for mark in found if mark is not None), num_more=more)


def _in_groups(layers: Mapping[JobId, JobLayer], groups: Mapping[str, str]) -> Mapping[JobId, JobLayer]:
    """Return layers with their groups in the place of their queues; a queue that is gone stands for itself."""
    return {
        job_id: replace(layer, queue=groups.get(layer.queue, f"{layer.queue} (removed queue)"))
        for job_id, layer in layers.items()
    }


def _sees(visible: VisibleJobs | None, layer: JobLayer) -> bool:
    return visible is None or visible.covers(layer.job_id, layer.owner)
