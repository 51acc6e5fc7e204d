"""Gives each new workload its colour. Trials of a search share one, and so do the versions of an endpoint.

Which colours were given in what order is read from the newest jobs once, and remembered then.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from pliant.core.job import Job, JobSpec
from pliant.core.job_filter import JobFilter
from pliant.core.ports import Store
from pliant.policy.colour import NUM_COLOURS, choose_colour

_NUM_NEWEST: Final = 100
"""So many jobs tell which colours were given last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFamily:
    """Jobs that are one workload for those who look at a chart."""

    kind: Literal["search", "endpoint"]
    name: str


def family_of(spec: JobSpec) -> JobFamily | None:
    """Return what a job is a part of; None if it is alone."""
    if spec.trial is not None:
        return JobFamily(kind="search", name=spec.trial.search)
    return None if spec.endpoint is None else JobFamily(kind="endpoint", name=spec.endpoint.name)


class Colours:
    """Which colours were given. Used under the ledger's lock."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._given: list[int] | None = None

    def choose(self, spec: JobSpec, there: Iterable[Job]) -> int:
        """Return the colour of a new job.

        Args:
            spec: what was asked for.
            there: the jobs that have not ended, also those that were queued a moment ago.
        """
        family, jobs = family_of(spec), list(there)
        if family is not None and (relative := self._relative(family, jobs)) is not None:
            return relative.colour
        if self._given is None:
            self._given = [job.colour for job in reversed(self._store.jobs(limit=_NUM_NEWEST))]
        users = {family_of(job.spec) or job.id: job.colour for job in jobs}
        colour = choose_colour(Counter(users.values()), self._given)
        self._given = [*(one for one in self._given if one != colour), colour][-NUM_COLOURS:]
        return colour

    def _relative(self, family: JobFamily, jobs: Iterable[Job]) -> Job | None:
        for job in jobs:
            if family_of(job.spec) == family:
                return job
        which = JobFilter(searches=(family.name,)) if family.kind == "search" else JobFilter(endpoints=(family.name,))
        return next(iter(self._store.jobs(which, limit=1)), None)
