"""Who has come to which rung of a search, and in which order they rank there.

Trials that violate constraints rank behind all that keep them, by how far they violate them; then by value, the best
first; equal ones by number. A trial counts at a rung as it was when it came there, whatever it has reported since. NaN
has come there, and has no rank. So has a trial that ended before it had a value.

    rung 1    come: 0 1 2 3 4    loss 0.3 0.1 nan 0.2 0.1, where 4 violates a bound     ranks: 1 3 0 4

A search has thousands of trials of which few change between two decisions. So rankings are kept, and follow: they
compare each trial with the one that they were shown before. A trial never changes, another one takes its place; so
they are the same object or worked out anew.

Invariant: rankings are those of the trials that were shown last, whatever was shown before.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan

from pliant.core.search import SearchSettings, Trial
from pliant.policy.tuning.constraints import is_measured, violation_at
from pliant.policy.tuning.rungs import rungs_of, value_at

_Rank = tuple[float, float, int]
"""By how much it violates constraints, its value (small is good), its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arrival:
    """A trial has come to a rung."""

    bracket: int
    rung: int
    rank: _Rank | None
    """None: it has no number there."""
    has_passed: bool


@dataclass(slots=True)
class Ranking:
    """Those that have come to one rung of one bracket."""

    num_arrived: int = 0
    num_passed: int = 0
    """So many of them have gone on."""
    ranks: list[_Rank] = field(default_factory=list)
    """Sorted."""

    def places(self, most: int | None = None) -> Mapping[int, int]:
        """Return the places of trials, 1 for the best, by number: of so many at most, or of all that have one."""
        return {number: place for place, (_, _, number) in enumerate(self.ranks[:most], start=1)}


class Rankings:
    """The rankings of all rungs of a search."""

    def __init__(self) -> None:
        self._trials: list[Trial] = []
        self._arrivals: list[Sequence[_Arrival]] = []
        """Of each trial."""
        self._rankings: dict[tuple[int, int], Ranking] = {}
        self._settings: SearchSettings | None = None

    def at(self, bracket: int, rung: int) -> Ranking:
        """Return who has come to a rung, counted from 0; to be read only."""
        return self._rankings.get((bracket, rung), Ranking())

    def follow(self, settings: SearchSettings, trials: Sequence[Trial]) -> None:
        """Become the rankings of these trials.

        Args:
            settings: of their search.
            trials: all of them, by number.
        """
        if settings != self._settings or len(trials) < len(self._trials):
            self._trials, self._arrivals, self._rankings = [], [], {}
            self._settings = settings
        changed = [
            number for number, (old, new) in enumerate(zip(self._trials, trials, strict=False)) if old is not new
        ]
        changed += range(len(self._trials), len(trials))
        self._arrivals += [()] * (len(trials) - len(self._trials))
        self._trials = [*trials]
        found = {number: tuple(_arrivals_of(settings, trials[number])) for number in changed}
        self._replace({number: new for number, new in found.items() if new != self._arrivals[number]})

    def _replace(self, arrivals: Mapping[int, Sequence[_Arrival]]) -> None:
        """Put arrivals of some trials in the place of those that they had."""
        for number in arrivals:
            self._take_away(self._arrivals[number])
        unsorted = set()
        for number, new in arrivals.items():
            self._arrivals[number] = new
            for one in new:
                ranking = self._rankings.setdefault((one.bracket, one.rung), Ranking())
                ranking.num_arrived += 1
                ranking.num_passed += one.has_passed
                if one.rank is not None:
                    ranking.ranks.append(one.rank)
                    unsorted.add((one.bracket, one.rung))
        for place in unsorted:
            self._rankings[place].ranks.sort()

    def _take_away(self, arrivals: Sequence[_Arrival]) -> None:
        for one in arrivals:
            ranking = self._rankings[one.bracket, one.rung]
            ranking.num_arrived -= 1
            ranking.num_passed -= one.has_passed
            if one.rank is not None:
                del ranking.ranks[bisect_left(ranking.ranks, one.rank)]


def has_come(settings: SearchSettings, trial: Trial, rung: int, resource: int) -> bool:
    """Tell whether all is known of a trial that counts at a rung: its own, or one that it has passed."""
    if trial.ended:
        return True
    is_known = trial.rung > rung or is_measured(settings, trial)
    return is_known and value_at(trial, resource) is not None


def _arrivals_of(settings: SearchSettings, trial: Trial) -> Iterator[_Arrival]:
    """Yield how a trial counts at each rung that it has come to."""
    sign = 1 if settings.objectives[0].direction == "minimize" else -1
    rungs = () if trial.is_known else rungs_of(settings, trial.bracket)
    for rung, resource in enumerate(rungs[: trial.rung + 1]):
        if not has_come(settings, trial, rung, resource):
            return
        value = value_at(trial, resource)
        rank = None
        if value is not None and not isnan(value):
            rank = violation_at(trial, rung), sign * value, trial.number
        yield _Arrival(bracket=trial.bracket, rung=rung, rank=rank, has_passed=trial.rung > rung)
