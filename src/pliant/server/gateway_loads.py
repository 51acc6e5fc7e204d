"""What several gateways report of a version, made one report over all of them (`GatewayLoads.merge`).

    reported, 0.25 s each                        made of it
    local    10.00 s  queued 4, completed 8      queued 4, completed 8: nobody else has reported, so it stays as it is
    local-1  10.10 s  queued 1, completed 3      queued 5, completed 3, in 0.10 s
    local    10.25 s  queued 0, completed 9      queued 1, completed 9, in 0.15 s

How things stand is the sum of what each gateway said last; what has happened is what this one reports. So requests
that arrived, which are those completed and those that are more than before, are counted once each. A kernel is
connected with every gateway: kernels are not added up.

Invariants: of a version that one gateway alone reports, every report stays the very object that it was, and totals
that fall mean that counting has begun anew. As long as several are known, totals never fall: what a process has counted
stays in the sum when another one takes its place. Who is cut off, or silent for `SILENT_S`, has no queue. A version
that nobody has reported for `FORGET_S` is forgotten, and begins anew. Knows no clock. For one thread at a time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Final

from pliant.core.histogram import Histogram
from pliant.core.job import JobId
from pliant.core.serving import CountedLoad, LoadTotals, VersionLoad
from pliant.core.time_counts import add_counts, quantiles_of
from pliant.policy.autoscale.window import WINDOW_S

SILENT_S: Final = 3.0
"""Who has reported nothing for so long may be a stopped process: what waits there is not counted."""
FORGET_S: Final = 600.0
_SHARES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Report:
    """The newest of a gateway."""

    load: VersionLoad
    pid: int
    at: float


@dataclass(slots=True, kw_only=True)
class _Version:
    """What is remembered of a version."""

    reports: dict[str, _Report] = field(default_factory=dict)
    """By the name of the gateway."""
    ended: LoadTotals | None = None
    """What processes have counted in whose place others are; None: there are no such ones."""
    newest: LoadTotals = field(default_factory=LoadTotals)
    """The newest totals that were made."""
    merged_at: float | None = None


class GatewayLoads:
    """Keeps the newest report of every gateway."""

    def __init__(self) -> None:
        self._pids: dict[str, int] = {}
        """Of the processes that are connected or were, by name."""
        self._connected: set[str] = set()
        self._versions: dict[JobId, _Version] = {}
        self._review_at = 0.0

    def __len__(self) -> int:
        return len(self._versions)

    def connect(self, name: str, pid: int) -> None:
        """Take note which process speaks as a gateway from now on."""
        self._pids[name] = pid
        self._connected.add(name)

    def disconnect(self, name: str) -> None:
        """Take note that a gateway is cut off; the same process may come back."""
        self._connected.discard(name)

    def merge(self, name: str, load: VersionLoad, now: float) -> VersionLoad:
        """Return the report of one gateway as that over all.

        Args:
            name: of the gateway.
            load: its newest report of a version.
            now: the time of whoever takes the result; the next one lasts from now on.
        """
        self._review(now)
        version = self._versions.setdefault(load.job_id, _Version())
        report = _Report(load=load, pid=self._pids.get(name, 0), at=now)
        _put(version, name, report)
        before = version.merged_at
        version.merged_at = now if before is None or now < before - WINDOW_S else max(now, before)  # as `take` has it
        if len(version.reports) == 1 and version.ended is None:
            version.newest = load.totals
            return load
        others = ((other, one) for other, one in version.reports.items() if other != name)
        here = [load, *(one.load for other, one in others if self._counts(other, one, now))]
        every = [one.load.totals for one in version.reports.values()]
        version.newest = _totals(every if version.ended is None else [version.ended, *every], version.newest)
        seconds = load.seconds if before is None or now <= before else now - before
        return _over_all(_recent_part(load, seconds), here, seconds, version.newest)

    def _counts(self, name: str, report: _Report, now: float) -> bool:
        """Tell whether what a gateway said last still holds."""
        is_there = name in self._connected and self._pids.get(name) == report.pid
        return is_there and now - report.at < SILENT_S

    def _review(self, now: float) -> None:
        """Forget, now and then, what nobody reports any more."""
        if abs(now - self._review_at) < FORGET_S / 10:
            return
        self._review_at = now
        for job_id, version in list(self._versions.items()):
            if all(abs(now - one.at) > FORGET_S for one in version.reports.values()):
                del self._versions[job_id]


def _put(version: _Version, name: str, report: _Report) -> None:
    """Keep a report; what was counted before another process, or the same anew, began at 0 stays in the sum.

    Where there is no other gateway nothing stays: whoever sees the totals fall takes that for the new beginning it is.
    """
    before = version.reports.get(name)
    version.reports[name] = report
    if before is None or (before.pid == report.pid and not _fall(before.load.totals, report.load.totals)):
        return
    if len(version.reports) > 1 or version.ended is not None:
        version.ended = _sum([before.load.totals] if version.ended is None else [version.ended, before.load.totals])


def _recent_part(load: VersionLoad, seconds: float) -> VersionLoad:
    """Return a report with what has happened in a window at most, or in the time that it is to stand for.

    A gateway that was without a server says all since then at once, and the others have reported just before.
    """
    most = max(WINDOW_S, seconds)
    if load.seconds <= most:
        return load
    share = most / load.seconds
    return replace(
        load,
        completed=round(load.completed * share),
        failed=round(load.failed * share),
        refused=round(load.refused * share),
        num_batches=round(load.num_batches * share),
        busy_s=load.busy_s * share,
    )


def _over_all(load: VersionLoad, here: list[VersionLoad], seconds: float, totals: LoadTotals) -> VersionLoad:
    latency_s, service_p95_s = _quantiles(here)
    return VersionLoad(
        job_id=load.job_id,
        seconds=seconds,
        in_flight=sum(one.in_flight for one in here),
        queued=sum(one.queued for one in here),
        mean_load=sum(one.mean_load for one in here),
        oldest_wait_s=max(one.oldest_wait_s for one in here),
        num_ready=max(one.num_ready for one in here),
        completed=load.completed,
        failed=load.failed,
        refused=load.refused,
        num_batches=load.num_batches,
        busy_s=load.busy_s,
        latency_s=latency_s,
        service_p95_s=service_p95_s,
        totals=totals,
    )


def _quantiles(here: list[VersionLoad]) -> tuple[Mapping[str, float], float]:
    """Return those of all values together; the largest where a gateway does not say its counts."""
    if not all(isinstance(one, CountedLoad) for one in here):
        largest = {name: max(one.latency_s.get(name, 0.0) for one in here) for name in _SHARES}
        return {name: value for name, value in largest.items() if value}, max(one.service_p95_s for one in here)
    counted = [one for one in here if isinstance(one, CountedLoad)]
    latency = _quantiles_of([one.latency_counts for one in counted], tuple(_SHARES.values()))
    service = _quantiles_of([one.service_counts for one in counted], (_SHARES["p95"],))
    return dict(zip(_SHARES, latency, strict=False)), next(iter(service), 0.0)


def _quantiles_of(several: list[Mapping[int, int]], shares: tuple[float, ...]) -> tuple[float, ...]:
    counts = add_counts(several)
    return quantiles_of(counts.items(), sum(counts.values()), shares)


def _totals(several: Iterable[LoadTotals], before: LoadTotals) -> LoadTotals:
    """Return the sum; seconds no less than before, since the order of a sum changes their last digit."""
    total = _sum(several)
    return replace(
        total,
        latency_s=_no_less(total.latency_s, before.latency_s),
        batch_size=_no_less(total.batch_size, before.batch_size),
        busy_s=max(total.busy_s, before.busy_s),
    )


def _no_less(histogram: Histogram, before: Histogram) -> Histogram:
    return Histogram(histogram.counts, max(histogram.total, before.total))


def _sum(several: Iterable[LoadTotals]) -> LoadTotals:
    every = tuple(several)
    return LoadTotals(
        succeeded=sum(one.succeeded for one in every),
        rejected=sum(one.rejected for one in every),
        failed=sum(one.failed for one in every),
        refused=sum(one.refused for one in every),
        latency_s=_add([one.latency_s for one in every]),
        batch_size=_add([one.batch_size for one in every]),
        busy_s=sum(one.busy_s for one in every),
    )


def _add(histograms: list[Histogram]) -> Histogram:
    counts = tuple(map(sum, zip_longest(*(one.counts for one in histograms), fillvalue=0)))
    return Histogram(counts, sum(one.total for one in histograms))


def _fall(before: LoadTotals, after: LoadTotals) -> bool:
    """Tell whether something was counted that is not counted any more."""
    return any(new < old for old, new in zip(_numbers(before), _numbers(after), strict=True))


def _numbers(totals: LoadTotals) -> tuple[float, ...]:
    counts = (totals.latency_s.count, totals.batch_size.count)
    return (totals.succeeded, totals.rejected, totals.failed, totals.refused, *counts, totals.busy_s)
