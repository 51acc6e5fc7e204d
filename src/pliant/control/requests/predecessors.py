"""What a job may be told to run after: jobs and arrays that its owner sees, and that can still end as they have to."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pliant.control.jobs.live import LiveJob
from pliant.control.jobs.waiting import AWAITED, Awaited, how_it_ended, names_of
from pliant.control.requests.queries import Queries
from pliant.core.access import VisibleJobs
from pliant.core.errors import InvalidInput, NotFound, Problem
from pliant.core.job import Job, JobId
from pliant.core.lifecycle import JobState

MAX_NAMED_JOBS: Final = 2000
"""That the names a job waits for stand for: they are looked up while nothing else is decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Predecessors:
    """Finds jobs by what they are called. Used under the ledger's lock where it decides."""

    queries: Queries
    live: Callable[[JobId], LiveJob | None]
    """Returns a job that has not ended, or whose processes are not gone."""

    def problems(self, after: Sequence[str], after_any: Sequence[str], visible: VisibleJobs | None) -> list[Problem]:
        """Return what keeps a job from running after these."""
        return self._look(after, after_any, visible)[0]

    def left(self, after: Sequence[str], after_any: Sequence[str], visible: VisibleJobs | None) -> Awaited:
        """Return those of them that are not over yet, each once.

        Raises:
            InvalidInput: as `problems` says.
        """
        problems, found = self._look(after, after_any, visible)
        if problems:
            raise InvalidInput(*problems)
        going_on = {name for name, jobs in found.items() if any(self.live(job.id) is not None for job in jobs)}
        first, second = (tuple(n for n in dict.fromkeys(names) if n in going_on) for names in (after, after_any))
        return first, second

    def _look(
        self, after: Sequence[str], after_any: Sequence[str], visible: VisibleJobs | None
    ) -> tuple[list[Problem], dict[str, Sequence[Job]]]:
        """Return what is wrong with these names, and the jobs that they stand for."""
        both = [name for name in dict.fromkeys(after) if name in after_any]
        problems = [Problem(field="after_any", message=f"{name} is in after, too; name it once") for name in both]
        found: dict[str, Sequence[Job]] = {}
        for field, names in zip(AWAITED, (after, after_any), strict=True):
            for number, name in enumerate(names):
                try:
                    found[name] = found.get(name) or self._find(name, visible)
                except NotFound as error:
                    problems.append(Problem(field=f"{field}.{number}", message=str(error)))
                    continue
                if field == "after":
                    problems += self._never(f"{field}.{number}", name, found[name])
                if sum(map(len, found.values())) > MAX_NAMED_JOBS:
                    message = f"they stand for more than {MAX_NAMED_JOBS:,} jobs; name those that end last only"
                    return [*problems, Problem(field=field, message=message)], found
        return problems, found

    def refuse_ring(self, waiter: Job, names: Sequence[str]) -> None:
        """Do nothing if none of these waits, itself or by others, for the job.

        Raises:
            InvalidInput: one does, so that none of them would ever start.
        """
        own = set(names_of(waiter))
        seen: set[str] = set()
        ways: list[tuple[str, tuple[str, ...]]] = [(name, (name,)) for name in names]
        while ways:
            name, way = ways.pop()
            if name in own:
                chain = ", which waits for ".join(way)
                raise InvalidInput.at("after", f"{waiter.id} would wait for {chain}: it would never start")
            if name not in seen:
                seen.add(name)
                ways += [
                    (more, (*way, more)) for job in self._unfinished(name) for more in (*job.after, *job.after_any)
                ]

    @staticmethod
    def _never(field: str, name: str, jobs: Sequence[Job]) -> Iterator[Problem]:
        """Yield that not all of these can complete, if one of them has ended otherwise."""
        wrong = next((job for job in jobs if job.ended and job.state is not JobState.COMPLETED), None)
        if wrong is not None:
            said = f"{how_it_ended(name, wrong)}; a job that is to run after {'it' if name == wrong.id else name} has"
            ways = "leave it out, or give it in after_any, which takes any end"
            yield Problem(field=field, message=f"{said} completed would never start: {ways}")

    def _find(self, name: str, visible: VisibleJobs | None) -> Sequence[Job]:
        if name.startswith("array-"):
            return self.queries.array(name, visible)
        return (self.queries.require_visible(name, visible),)

    def _unfinished(self, name: str) -> list[Job]:
        ids = [job.id for job in self._find(name, None)] if name.startswith("array-") else [JobId(name)]
        lives = (self.live(job_id) for job_id in ids)
        return [live.job for live in lives if live is not None]
