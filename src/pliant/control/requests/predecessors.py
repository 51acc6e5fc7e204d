"""What a job may be told to run after: jobs and arrays that its owner sees, and that can still end as they have to."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pliant.control.jobs.live import LiveJob
from pliant.control.jobs.waiting import AWAITED, Awaited, how_it_ended, names_of
from pliant.control.requests.queries import Queries
from pliant.core.access import VisibleJobs
from pliant.core.errors import InvalidInput, NotFound, Problem
from pliant.core.job import Job, JobId
from pliant.core.lifecycle import JobState


@dataclass(frozen=True, slots=True, kw_only=True)
class Predecessors:
    """Finds jobs by what they are called. Used under the ledger's lock where it decides."""

    queries: Queries
    live: Callable[[JobId], LiveJob | None]
    """Returns a job that has not ended, or whose processes are not gone."""

    def problems(self, after: Sequence[str], after_any: Sequence[str], visible: VisibleJobs | None) -> list[Problem]:
        """Return what keeps a job from running after these."""
        both = [name for name in dict.fromkeys(after) if name in after_any]
        twice = (Problem(field="after_any", message=f"{name} is in after, too; name it once") for name in both)
        named = (
            (f"{field}.{i}", name) for field, names in self._given(after, after_any) for i, name in enumerate(names)
        )
        return [*twice, *(problem for field, name in named for problem in self._problems_of(field, name, visible))]

    def left(self, after: Sequence[str], after_any: Sequence[str], visible: VisibleJobs | None) -> Awaited:
        """Return those of them that are not over yet, each once.

        Raises:
            InvalidInput: as `problems` says.
        """
        if problems := self.problems(after, after_any, visible):
            raise InvalidInput(*problems)
        first, second = (
            tuple(name for name in dict.fromkeys(names) if self._goes_on(name)) for names in (after, after_any)
        )
        return first, second

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
    def _given(after: Sequence[str], after_any: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
        yield from zip(AWAITED, (after, after_any), strict=True)

    def _problems_of(self, field: str, name: str, visible: VisibleJobs | None) -> Iterator[Problem]:
        try:
            found = self._find(name, visible)
        except NotFound as error:
            yield Problem(field=field, message=str(error))
            return
        wrong = [job for job in found if job.ended and job.state is not JobState.COMPLETED]
        if wrong and field.startswith("after."):
            said = f"{how_it_ended(name, wrong[0])}; a job that is to run after {'it' if name == wrong[0].id else name}"
            message = (
                f"{said} has completed would never start: leave it out, or give it in after_any, which takes any end"
            )
            yield Problem(field=field, message=message)

    def _find(self, name: str, visible: VisibleJobs | None) -> Sequence[Job]:
        if name.startswith("array-"):
            return self.queries.array(name, visible)
        return (self.queries.require_visible(name, visible),)

    def _goes_on(self, name: str) -> bool:
        return any(self.live(job.id) is not None for job in self._find(name, None))

    def _unfinished(self, name: str) -> list[Job]:
        lives = (self.live(job.id) for job in self._find(name, None))
        return [live.job for live in lives if live is not None]
