"""What searches need of the other rooms (the ports of `pliant.tune.searches.ports`), over control and people."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pliant.control.loop.tick import Control
from pliant.core.access import VisibleJobs
from pliant.core.job import JobId, JobSpec, Metric
from pliant.core.ports import Clock
from pliant.core.search import Objective, Search
from pliant.core.search_store import Searches
from pliant.policy.tuning.intake import JobNews, SeriesPoint
from pliant.tune.advice import Adviser, Opening
from pliant.tune.sampler_rules import problems_of_sampler
from pliant.tune.searches.archives import SearchArchives
from pliant.tune.searches.book import SearchBook
from pliant.tune.searches.keeper import SearchKeeper
from pliant.tune.searches.ports import LiveTrial, SearchPorts
from pliant.tune.searches.result_file import read_results
from pliant.tune.searches.use_cases import SearchRequests

FOLDER: Final = "searches"
"""Where the archives of searches lie, in the state folder."""
_HOUR_S: Final = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRoom:
    """The use cases of searches, and what keeps them going."""

    requests: SearchRequests
    keeper: SearchKeeper
    archives: SearchArchives
    book: SearchBook

    def sweep(self) -> None:
        """Remove archives that no search needs; call when nobody creates one."""
        self.archives.sweep([search.checksum for search in self.book.all()])

    def unfinished_jobs(self) -> Collection[str]:
        """Return the jobs of trials that have not ended, or whose search may still look at them."""
        running = [self.book.find(name) for name in self.book.unended()]
        return {one.job_id for found in running if found is not None for one in found.trials if not one.is_known}


def make_searches(
    searches: Searches,
    clock: Clock,
    control: Control,
    knows: Callable[[str], bool],
    *,
    open_adviser: Callable[[Opening], Adviser],
    new_name: Callable[[], str],
) -> SearchRoom:
    """Return the searches over a control room.

    Args:
        knows: tells whether there is such a user.
        new_name: returns a name for a search, never the same.
    """

    def changed(_search: Search) -> None:
        keeper.wake()

    archives = SearchArchives(control.settings.home / FOLDER)
    ports = SearchPorts(
        searches=searches,
        jobs=ControlTrials(control),
        open_adviser=open_adviser,
        problems_of=problems_of_sampler,
        unknown_users=lambda names: [name for name in names if not knows(name)],
        now=clock.now,
        changed=changed,
    )
    book = SearchBook(searches, changed)
    keeper = SearchKeeper(book=book, archives=archives, ports=ports)
    requests = SearchRequests(book=book, archives=archives, ports=ports, new_name=new_name)
    return SearchRoom(requests=requests, keeper=keeper, archives=archives, book=book)


class ControlTrials:
    """The jobs of a control room, as searches see them."""

    def __init__(self, control: Control) -> None:
        self._control = control

    def reserve(self) -> JobId:
        """Return the id of a job to come."""
        return self._control.trials.reserve()

    def check(self, spec: JobSpec, archive: Path, owner: str, visible: VisibleJobs | None) -> Sequence[str]:
        """Return what an owner should know of such a job."""
        return self._control.trials.check(spec, archive, owner, visible)

    def submit(self, job_id: JobId, spec: JobSpec, archive: Path, owner: str, visible: VisibleJobs | None) -> None:
        """Queue a job under a reserved id, unless it was queued before."""
        self._control.trials.submit(job_id, spec, archive, owner, visible)

    def live(self) -> Sequence[LiveTrial]:
        """Return the jobs of all trials that have not ended."""
        return [
            LiveTrial(job_id=live.id, search=part.search, number=part.number, held=bool(live.job.hold))
            for live in self._control.jobs().values()
            if (part := live.job.spec.trial) is not None and not live.over
        ]

    def news(self, job_id: JobId, objectives: Sequence[Objective], after_step: int) -> JobNews:
        """Return what a job has come to."""
        facts = self._control.trials.facts([job_id]).get(job_id)
        if facts is None:
            return JobNews(state="deleted")
        if facts.ended_at is None:
            points = self._points(job_id, [objectives[0].metric], after_step)
            return JobNews(state=facts.state, reason=facts.reason, series=_by_name(points))
        series = {**self._left_behind(job_id), **_by_name(self._points(job_id, (), -1))}
        return JobNews(state=facts.state, reason=facts.reason, series=series, reported=tuple(series))

    def hold(self, job_id: JobId, why: str) -> None:
        """Let a job leave its slots with its state saved."""
        self._control.trials.hold(job_id, why)

    def release(self, job_id: JobId, why: str) -> None:
        """Let a job go on that was held."""
        self._control.trials.release(job_id, why)

    def stop(self, job_id: JobId, who: str) -> None:
        """End a job at its next step boundary."""
        self._control.trials.stop(job_id, who)

    def num_places(self, spec: JobSpec) -> int:
        """Return how many such jobs the slots of its queue can hold at once, each with its minimum."""
        num_slots = self._control.queues.num_slots(spec.queue)
        return max(1, num_slots // max(1, spec.num_slots_for(spec.min_tasks)))

    def slot_hours(self, job_ids: Collection[JobId]) -> float:
        """Return what some jobs have used so far."""
        return sum(self._slot_seconds(job_id) for job_id in job_ids) / _HOUR_S

    def _slot_seconds(self, job_id: JobId) -> float:
        page = self._control.queries.usage(0.0, job_id)
        ends = [*(point.at for point in page.points[1:]), page.now]
        return sum(point.num_slots * (end - point.at) for point, end in zip(page.points, ends, strict=False))

    def _points(self, job_id: JobId, names: Sequence[str], after_step: int) -> Iterator[Metric]:
        while page := self._control.trials.reports(job_id, names, after_step):
            yield from page
            after_step = page[-1].step

    def _left_behind(self, job_id: JobId) -> Mapping[str, Sequence[SeriesPoint]]:
        return read_results(self._control.settings.folders(job_id).result)


def _by_name(points: Iterator[Metric]) -> Mapping[str, Sequence[SeriesPoint]]:
    series: dict[str, list[SeriesPoint]] = {}
    for point in points:
        series.setdefault(point.name, []).append(SeriesPoint(epoch=point.epoch, step=point.step, value=point.value))
    return series
