"""What one version had to do: since the report before (`VersionLoad`), and since the gateway began (for `stats`, and
the `LoadTotals` of every report).

Knows no clock: times are arguments.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields

from pliant.core.histogram import BATCH_BOUNDS, LATENCY_BOUNDS_S, BucketCounts
from pliant.core.job import JobId
from pliant.core.serving import CountedLoad, LoadTotals, VersionLoad
from pliant.serve.gateway.latency import RecentTimes

_SHARES = (0.5, 0.95, 0.99)


@dataclass(slots=True)
class TimeSum:
    """How often something was done, and how long it took in all."""

    count: int = 0
    seconds: float = 0.0

    def add(self, seconds: float, count: int = 1) -> None:
        """Add what was done."""
        self.count += count
        self.seconds += seconds


@dataclass(slots=True)
class VersionTotals:
    """Since the gateway began."""

    success: TimeSum = field(default_factory=TimeSum)
    """Requests answered well, with their wait."""
    fail: TimeSum = field(default_factory=TimeSum)
    queue: TimeSum = field(default_factory=TimeSum)
    """Their wait for a kernel."""
    service: TimeSum = field(default_factory=TimeSum)
    """Their time in a kernel."""
    batches: dict[int, TimeSum] = field(default_factory=dict)
    """Batches by their size, and what they computed."""
    last_at: float | None = None
    """When a request was answered last, by the meter's clock."""


def add_totals(several: Iterable[VersionTotals]) -> VersionTotals:
    """Return what several gateways have counted of one version, together; their clocks are the same."""
    total = VersionTotals()
    for one in several:
        for name in ("success", "fail", "queue", "service"):
            part: TimeSum = getattr(one, name)
            getattr(total, name).add(part.seconds, part.count)
        for size, batch in one.batches.items():
            total.batches.setdefault(size, TimeSum()).add(batch.seconds, batch.count)
        if one.last_at is not None:
            total.last_at = one.last_at if total.last_at is None else max(total.last_at, one.last_at)
    return total


@dataclass(slots=True)
class _SinceBegin:
    """What `LoadTotals` says, while it is counted."""

    succeeded: int = 0
    rejected: int = 0
    failed: int = 0
    refused: int = 0
    busy_s: float = 0.0
    latency: BucketCounts = field(default_factory=lambda: BucketCounts(LATENCY_BOUNDS_S))
    batches: BucketCounts = field(default_factory=lambda: BucketCounts(BATCH_BOUNDS))

    def totals(self) -> LoadTotals:
        return LoadTotals(
            succeeded=self.succeeded,
            rejected=self.rejected,
            failed=self.failed,
            refused=self.refused,
            latency_s=self.latency.histogram(),
            batch_size=self.batches.histogram(),
            busy_s=self.busy_s,
        )


@dataclass(slots=True)
class _SinceReport:
    completed: int = 0
    failed: int = 0
    refused: int = 0
    num_batches: int = 0
    busy_s: float = 0.0
    load_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLevel:
    """How things stand."""

    in_flight: int
    queued: int
    num_ready: int
    oldest_wait_s: float


class LoadMeter:
    """Counts what becomes of the requests of one version.

    Args:
        now: from here on it counts.
    """

    def __init__(self, now: float) -> None:
        self.totals = VersionTotals()
        self._news = _SinceReport()
        self._sums = _SinceBegin()
        self._latency = RecentTimes()
        self._service = RecentTimes()
        self._began_at = self._level_at = now
        self._level = 0

    def level(self, now: float, num: int) -> None:
        """Take note that from now on so many requests wait or are held."""
        self._news.load_seconds += self._level * (now - self._level_at)
        self._level, self._level_at = num, now

    def answer(self, now: float, status: int, latency_s: float, service_s: float) -> None:
        """Count a request that a kernel has answered."""
        self._news.completed += 1
        self._latency.add(now, latency_s)
        self._service.add(now, service_s)
        totals = self.totals
        totals.last_at = now
        (totals.success if status < 400 else totals.fail).add(latency_s)
        totals.queue.add(latency_s - service_s)
        totals.service.add(service_s)
        self._sums.latency.add(latency_s)
        if status < 400:
            self._sums.succeeded += 1
        elif status < 500:
            self._sums.rejected += 1
        else:
            self._news.failed += 1
            self._sums.failed += 1

    def fail(self, latency_s: float) -> None:
        """Count a request that ended with 5xx, and no kernel has answered."""
        self._news.failed += 1
        self._sums.failed += 1
        self._sums.latency.add(latency_s)
        self.totals.fail.add(latency_s)

    def refuse(self) -> None:
        """Count a request that a limit has refused."""
        self._news.refused += 1
        self._sums.refused += 1

    def batch(self, size: int, busy_s: float) -> None:
        """Count a batch that a kernel has computed."""
        self._news.num_batches += 1
        self._news.busy_s += busy_s
        self._sums.batches.add(size)
        self._sums.busy_s += busy_s
        if size in self.totals.batches or len(self.totals.batches) < 128:  # kernels say the size: it bounds nothing
            self.totals.batches.setdefault(size, TimeSum()).add(busy_s)

    def report(self, now: float, job_id: JobId, level: QueueLevel) -> VersionLoad:
        """Return what happened since the report before."""
        self.level(now, self._level)
        news, seconds = self._news, now - self._began_at
        self._news, self._began_at = _SinceReport(), now
        latency = self._latency.quantiles(now, _SHARES)
        return VersionLoad(
            job_id=job_id,
            seconds=seconds,
            in_flight=level.in_flight,
            queued=level.queued,
            mean_load=news.load_seconds / seconds if seconds > 0 else float(self._level),
            oldest_wait_s=level.oldest_wait_s,
            num_ready=level.num_ready,
            completed=news.completed,
            failed=news.failed,
            refused=news.refused,
            num_batches=news.num_batches,
            busy_s=news.busy_s,
            latency_s=dict(zip(("p50", "p95", "p99"), latency, strict=True)) if latency else {},
            service_p95_s=next(iter(self._service.quantiles(now, (0.95,))), 0.0),
            totals=self._sums.totals(),
        )

    def count(self, now: float, load: VersionLoad) -> CountedLoad:
        """Return a report with the counts that its quantiles were made from, for whoever adds up several gateways.

        Args:
            now: as for `report`.
            load: what `report` has just returned.
        """
        return CountedLoad(
            **{one.name: getattr(load, one.name) for one in fields(load)},
            latency_counts=self._latency.counts(now),
            service_counts=self._service.counts(now),
        )
