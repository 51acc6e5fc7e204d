"""Makes a chart of stacked layers of what was recorded: pure sums over time, no SQL and no clock.

Theory of operation. What a layer holds is a step function: it begins with `held`, and every record is a change `delta`
at an instant. Sums of step functions are step functions, so each layer needs two numbers for each bucket: by how much
it changed within the bucket, and what these changes came to by the bucket's end.

    bucket 10 s to 20 s, 2 slots before; at 14 s the job gets 2 more: change +2, by the end 2 × 6 s = 12 slot-seconds
    its mean is (2 × 10 + 12) / 10 = 3.2 slots, and the next bucket begins with 4

Records can be sums themselves, over whole hours (`HourSum`): the two numbers are all that there is of an hour, and it
lies within one bucket because buckets are then made of whole hours.

Laws: values times lengths of buckets are the integral of what was recorded. Buckets begin at multiples of their width,
so who asks for the next window sees the same full buckets again. Whoever sees nothing of a job sees it in `others`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import Final
from zlib import crc32

from pliant.core.job import JobId
from pliant.core.slot_history import (
    HOUR_S,
    CapacitySpan,
    ChartBy,
    JobLayer,
    LayerKey,
    LayerKind,
    LayerRest,
    SlotChart,
    SlotRecords,
    TimeSpan,
)
from pliant.policy.colour import NUM_COLOURS, NUM_PLAIN

LADDER: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
"""Widths of buckets, seconds; beyond these it is whole days, twice as many each time."""
_DIGITS: Final = 6

Key = tuple[LayerKind, str]
"""Kind and id of a layer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartRequest:
    """What somebody wants to see."""

    from_at: float
    until_at: float
    by: ChartBy = "job"
    max_buckets: int = 1000
    top: int = 20
    """So many layers are shown one by one, those that held the most."""
    search: str | None = None
    """Only its trials are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketRow:
    """Buckets of one width, side by side."""

    width: int
    first: int
    """The first bucket begins at so many widths since the epoch."""
    num: int

    @property
    def begins_at(self) -> float:
        return float(self.first * self.width)

    @property
    def ends_at(self) -> float:
        return float((self.first + self.num) * self.width)


def buckets_for(request: ChartRequest, least_s: int = 1) -> BucketRow:
    """Return the narrowest buckets, of at least this width, of which no more than asked for cover the window."""
    width, narrower = 0, iter(LADDER)
    while True:
        width = next(narrower, 2 * width)
        first = floor(request.from_at / width)
        num = max(1, ceil(request.until_at / width) - first)
        if width >= least_s and num <= max(2, request.max_buckets):
            return BucketRow(width=width, first=first, num=num)


def exact_times(request: ChartRequest, history: SlotRecords) -> tuple[float, ...] | None:
    """Return the beginning of a window and the instants of all changes in it; None if that is more than asked for."""
    if history.hours:
        return None
    instants = {at for at, _, _ in history.steps} | {span.from_at for span in history.spans}
    inside = {at for at in instants if request.from_at < at < request.until_at}
    if len(inside) >= request.max_buckets:
        return None
    return (request.from_at, *sorted(inside))


def draw(
    request: ChartRequest, history: SlotRecords, row: BucketRow, now: float, sees: Callable[[JobLayer], bool]
) -> SlotChart:
    """Return the chart of a window.

    Args:
        request: what is to be seen.
        history: from where the buckets begin until they end, or until now.
        row: the buckets, unless all changes can be shown as they are.
        now: the right end of everything.
        sees: tells whether the caller may see a job.
    """
    if request.search is not None:
        history = _of_search(history, request.search)
    times = exact_times(request, history)
    exact = times is not None
    if times is None:
        until = min(row.ends_at, now)
        times = tuple(float((row.first + n) * row.width) for n in range(row.num) if (row.first + n) * row.width < until)
    else:
        until = request.until_at
    canvas = _Canvas(times, until, None if exact else row.width)
    keys = {job_id: _key_of(layer, request.by) if sees(layer) else None for job_id, layer in history.layers.items()}
    held, changes = _within(history, times[0])
    amounts = _slot_seconds(held, changes, keys, times[0], until)
    shown, num_rest = _choose(amounts, history.layers, keys, request)
    rows = {key: number for number, key in enumerate(shown)}
    rest, others, capacity = len(shown), len(shown) + 1, len(shown) + 2
    canvas.add_rows(len(shown) + 3)
    place = {job_id: others if key is None else rows.get(key, rest) for job_id, key in keys.items()}
    canvas.fill(held, changes, place)
    canvas.fill(*_capacity(history.spans, times[0]), {_POOL: capacity})
    values = canvas.values()
    return SlotChart(
        from_at=times[0],
        until_at=until,
        now=now,
        width_s=0 if exact else row.width,
        exact=exact,
        times=times,
        keys=_describe(shown, amounts, history.layers, keys),
        values=values[:rest],
        rest=LayerRest(num_keys=num_rest, values=values[rest]),
        others=values[others],
        capacity=values[capacity],
        gaps=_gaps(history.spans, times[0], until),
        last_seq=history.last_seq,
    )


def _of_search(history: SlotRecords, search: str) -> SlotRecords:
    """Return what was recorded of the trials of a search."""
    layers = {job_id: layer for job_id, layer in history.layers.items() if layer.search == search}
    return replace(
        history,
        layers=layers,
        held={job_id: num for job_id, num in history.held.items() if job_id in layers},
        steps=[step for step in history.steps if step[1] in layers],
        hours=[hour for hour in history.hours if hour[1] in layers],
    )


_Change = tuple[float, float, JobId, int, float]
"""Begin and end of what is summed up (equal for a single change), whose, by how much, and slot-seconds by the end."""
_POOL: Final = JobId("")


class _Canvas:
    """Changes of some layers by bucket."""

    def __init__(self, times: Sequence[float], until: float, width: int | None) -> None:
        self._times = times
        self._ends = [*times[1:], until]
        self._width = width
        self._exact = {at: number for number, at in enumerate(times)}
        self._held: list[int] = []
        self._deltas: list[list[int]] = []
        self._areas: list[list[float]] = []

    def add_rows(self, how_many: int) -> None:
        """Add empty layers."""
        self._held += [0] * how_many
        self._deltas += [[0] * len(self._times) for _ in range(how_many)]
        self._areas += [[0.0] * len(self._times) for _ in range(how_many)]

    def fill(self, held: Mapping[JobId, int], changes: Sequence[_Change], place: Mapping[JobId, int]) -> None:
        """Add what jobs held and how that changed, each to the layer that is its place."""
        for job_id, num_slots in held.items():
            self._held[place[job_id]] += num_slots
        first, width, exact, ends, last = self._times[0], self._width, self._exact, self._ends, self._ends[-1]
        deltas, areas = self._deltas, self._areas
        for begin, end, job_id, delta, area in changes:
            if begin >= last:
                continue
            bucket = exact[begin] if width is None else int((begin - first) // width)
            number = place[job_id]
            deltas[number][bucket] += delta
            areas[number][bucket] += area + delta * (ends[bucket] - end)

    def values(self) -> tuple[tuple[float, ...], ...]:
        """Return the mean of each layer in each bucket."""
        lengths = [end - begin for begin, end in zip(self._times, self._ends, strict=True)]
        return tuple(
            tuple(_means(level, deltas, areas, lengths))
            for level, deltas, areas in zip(self._held, self._deltas, self._areas, strict=True)
        )


def _means(level: int, deltas: Sequence[int], areas: Sequence[float], lengths: Sequence[float]) -> Iterator[float]:
    for delta, area, length in zip(deltas, areas, lengths, strict=True):
        yield round(level + area / length, _DIGITS) if area else float(level)
        level += delta


def _within(history: SlotRecords, begin: float) -> tuple[dict[JobId, int], list[_Change]]:
    """Return what jobs held at the beginning of a window, and how that changed afterwards."""
    held, changes = dict(history.held), []
    if history.hours:
        for hour, job_id, delta, area in history.hours:
            changes.append((float(hour * HOUR_S), float((hour + 1) * HOUR_S), job_id, delta, area))
        return held, changes
    now_held = dict(held)
    for at, job_id, num_slots in history.steps:
        delta = num_slots - now_held.get(job_id, 0)
        now_held[job_id] = num_slots
        if at <= begin:
            held[job_id] = num_slots
        elif delta:
            changes.append((at, at, job_id, delta, 0.0))
    return held, changes


def _slot_seconds(
    held: Mapping[JobId, int],
    changes: Sequence[_Change],
    keys: Mapping[JobId, Key | None],
    begin: float,
    until: float,
) -> dict[Key, float]:
    """Return what each layer comes to in a window; none of jobs that are not seen."""
    by_job: dict[JobId, float] = {job_id: num_slots * (until - begin) for job_id, num_slots in held.items()}
    for at, end, job_id, delta, area in changes:
        if at < until:
            by_job[job_id] = by_job.get(job_id, 0.0) + area + delta * (until - end)
    found: defaultdict[Key, float] = defaultdict(float)
    for job_id, amount in by_job.items():
        if (key := keys[job_id]) is not None:
            found[key] += amount
    return found


def _choose(
    amounts: Mapping[Key, float],
    layers: Mapping[JobId, JobLayer],
    keys: Mapping[JobId, Key | None],
    request: ChartRequest,
) -> tuple[list[Key], int]:
    """Return the layers that are shown, from the bottom to the top, and how many are not."""
    first: dict[Key, tuple[float, int, str]] = {}
    for job_id, key in keys.items():
        if key is not None:
            layer = layers[job_id]
            since = layer.submitted_at if layer.started_at is None else layer.started_at
            age = (since, len(job_id), job_id)
            first[key] = min(first.get(key, age), age)
    held = [key for key, amount in amounts.items() if amount > 0]
    wanted = held if request.by not in ("endpoint", "search") else [key for key in held if key[0] == request.by]
    most = sorted(wanted, key=lambda key: (-amounts[key], first[key]))[: request.top]
    return sorted(most, key=lambda key: (key[0] == "endpoint", first[key])), len(held) - len(most)


def _key_of(layer: JobLayer, by: ChartBy) -> Key:
    if by == "user":
        return "user", layer.owner
    if by in ("queue", "group"):
        return by, layer.queue
    if layer.search is not None and by != "trial":
        return "search", layer.search
    if layer.endpoint is not None:
        return "endpoint", layer.endpoint
    return "job", layer.job_id


def _describe(
    shown: Sequence[Key],
    amounts: Mapping[Key, float],
    layers: Mapping[JobId, JobLayer],
    keys: Mapping[JobId, Key | None],
) -> tuple[LayerKey, ...]:
    of = {key: layers[job_id] for job_id, key in keys.items() if key is not None}
    own = colours_of([name for kind, name in shown if kind in ("queue", "group", "user")])
    return tuple(
        LayerKey(
            id=key[1],
            name=of[key].name if key[0] == "job" else key[1],
            kind=key[0],
            colour=own.get(key[1], of[key].colour),
            slot_seconds=round(amounts[key], _DIGITS),
        )
        for key in shown
    )


def colours_of(names: Sequence[str]) -> dict[str, int]:
    """Return a colour for each of some names that have none of their own, mostly the same in every chart.

    Each begins with what its letters say, and takes the next one if another name has that already.
    """
    found: dict[str, int] = {}
    for name in sorted(names):
        begin = crc32(name.encode()) % NUM_PLAIN
        turn = ((begin + n) % NUM_PLAIN + NUM_PLAIN * (n // NUM_PLAIN) for n in range(NUM_COLOURS))
        found[name] = next((colour for colour in turn if colour not in found.values()), begin)
    return found


def _capacity(spans: Sequence[CapacitySpan], begin: float) -> tuple[dict[JobId, int], list[_Change]]:
    """Return how many slots there were at the beginning, and how that changed; before any record as with the first."""
    level = spans[0].num_slots if spans else 0
    held, changes = level, []
    for span in spans:
        if span.from_at <= begin:
            held = span.num_slots
        elif span.num_slots != level:
            changes.append((span.from_at, span.from_at, _POOL, span.num_slots - level, 0.0))
        level = span.num_slots
    return {_POOL: held}, changes


def _gaps(spans: Sequence[CapacitySpan], begin: float, until: float) -> tuple[TimeSpan, ...]:
    """Return the parts of a window in which no span lies."""
    gaps, at = [], begin
    for span in spans:
        if span.from_at > at:
            gaps.append(TimeSpan(from_at=at, until_at=min(span.from_at, until)))
        at = max(at, span.until_at)
        if at >= until:
            return tuple(gaps)
    return (*gaps, TimeSpan(from_at=at, until_at=until))
