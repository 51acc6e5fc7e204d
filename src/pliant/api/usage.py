"""What was used, as REST shows it."""

from dataclasses import dataclass

from pliant.core.slot_time import UsageKey, UsageSum


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSummary:
    """Slot-seconds between two instants, by user, queue or job: of the jobs that the caller sees."""

    by: UsageKey
    from_at: float
    until_at: float
    slot_seconds: float
    """Of all together, also those that are not listed."""
    num_jobs: int
    """Jobs that held a slot."""
    sums: tuple[UsageSum, ...]
    """The largest first."""
    num_more: int
    """So many sums are not listed."""
