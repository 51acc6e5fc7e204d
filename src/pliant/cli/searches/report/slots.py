"""Slots over time by trial, from the usage of jobs. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pliant.api.pool import UsagePage
from pliant.core.search import Trial

_MAX_ROWS: Final = 60
_MAX_TIMES: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRow:
    """The slots of a trial at every instant."""

    trial: int | None
    """None: all others together."""
    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotHistory:
    """Slots of trials over time."""

    times: tuple[float, ...]
    """Instants at which slots changed, and the last one; seconds since the epoch."""
    rows: tuple[SlotRow, ...]
    slot_hours: float

    @property
    def duration_s(self) -> float:
        """From the first instant to the last."""
        return max(1e-3, self.times[-1] - self.times[0]) if self.times else 0.0


def slots_over_time(trials: Sequence[Trial], usage: UsagePage, end: float | None) -> SlotHistory:
    """Return the slots of trials, those with the most slot time in rows of their own.

    Args:
        trials: of the search.
        usage: of jobs, also of others.
        end: when the search came to rest; None: it runs.
    """
    number_of = {trial.job_id: trial.number for trial in trials if trial.job_id}
    last = usage.now if end is None else end
    steps: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for point in usage.points:
        if point.job_id in number_of and point.at <= last:
            steps[number_of[point.job_id]].append((point.at, point.num_slots))
    if not steps:
        return SlotHistory(times=(), rows=(), slot_hours=0.0)
    spent = {number: sum(_seconds(own, last)) for number, own in steps.items()}
    times = _instants([at for own in steps.values() for at, _ in own], last)
    most = set(sorted(spent, key=lambda one: -spent[one])[:_MAX_ROWS])
    rows = [SlotRow(trial=number, slots=_at(steps[number], times)) for number in sorted(most)]
    others = [_at(own, times) for number, own in steps.items() if number not in most]
    if others:
        rows.append(SlotRow(trial=None, slots=tuple(map(sum, zip(*others, strict=True)))))
    return SlotHistory(times=times, rows=tuple(rows), slot_hours=sum(spent.values()) / 3600)


def _seconds(own: Sequence[tuple[float, int]], last: float) -> Iterator[float]:
    ends = [*(at for at, _ in own[1:]), last]
    for (at, num_slots), until in zip(own, ends, strict=True):
        yield num_slots * max(0.0, until - at)


def _instants(found: Sequence[float], last: float) -> tuple[float, ...]:
    """Return the instants in order, each once; of too many those that a chart can show."""
    times = sorted({*found, last})
    if len(times) <= _MAX_TIMES:
        return tuple(times)
    width = (last - times[0]) / (_MAX_TIMES - 1)
    return tuple(times[0] + i * width for i in range(_MAX_TIMES))


def _at(own: Sequence[tuple[float, int]], times: Sequence[float]) -> tuple[int, ...]:
    held, place, slots = 0, 0, []
    for at in times:
        while place < len(own) and own[place][0] <= at:
            held = own[place][1]
            place += 1
        slots.append(held)
    return tuple(slots)
