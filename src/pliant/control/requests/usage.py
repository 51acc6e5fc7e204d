"""What people ask of the slots that were used: sums of slot-seconds by user, queue or job."""

from typing import Final

from pliant.api.usage import UsageSummary
from pliant.core.access import VisibleJobs
from pliant.core.errors import InvalidInput
from pliant.core.ports import Clock, Store
from pliant.core.slot_time import UsageKey, add_up

MAX_SUMS: Final = 10_000
DEFAULT_SPAN_S: Final = 30 * 86400.0


class UsageQueries:
    """Answers from the store; safe to call from any thread."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def summary(
        self, by: UsageKey, start: float, until: float, limit: int, visible: VisibleJobs | None
    ) -> UsageSummary:
        """Return what was used between two instants, of the jobs that somebody sees.

        Args:
            by: what is added up.
            start: seconds since the epoch; a negative number is so long before now.
            until: the same; 0 is now. What lies after now is not used yet.
            limit: so many sums at most.
            visible: which jobs they see; None: all.

        Raises:
            InvalidInput: the span has no length.
        """
        now = self._clock.now()
        first, last = _instant(start, now), min(now, _instant(until, now) if until else now)
        if first >= last:
            raise InvalidInput.at(
                "from", f"{start:g} is not before until ({until:g}, now is {now:.0f}); give an earlier"
            )
        times = self._store.slot_time(first, last, visible)
        sums = add_up(times, by)
        return UsageSummary(
            by=by,
            from_at=first,
            until_at=last,
            slot_seconds=sum(time.slot_seconds for time in times),
            num_jobs=len(times),
            sums=sums[:limit],
            num_more=max(0, len(sums) - limit),
        )


def _instant(given: float, now: float) -> float:
    return max(0.0, now + given) if given < 0 else given
