"""What searches need of the other rooms (the ports of `pliant.tune.searches.ports`), over control and people."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from typing import Final

from pliant.control.loop.tick import Control
from pliant.core.access import VisibleJobs
from pliant.core.errors import Problem
from pliant.core.job import JobId, JobSpec, Metric
from pliant.core.ports import Clock
from pliant.core.search import Constraint, Objective, Resource, Search, SearchSettings, SearchState
from pliant.core.search_store import Searches
from pliant.policy.tuning.intake import JobNews, SeriesPoint
from pliant.policy.tuning.rungs import resource_of
from pliant.tune.sampler_rules import problems_of_sampler
from pliant.tune.searches.archives import SearchArchives
from pliant.tune.searches.asking import Asker
from pliant.tune.searches.asking_thread import AskerThread, RunningAsker
from pliant.tune.searches.book import SearchBook
from pliant.tune.searches.keeper import SearchKeeper
from pliant.tune.searches.ports import AdviserSource, LiveTrial, SearchPorts
from pliant.tune.searches.result_file import read_results
from pliant.tune.searches.series import thin
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

    @contextmanager
    def hold_unended(self) -> Iterator[Sequence[Search]]:
        """Yield the searches that run or may be resumed; none begins or goes on meanwhile."""
        with self.book.lock:
            going = (SearchState.RUNNING, SearchState.STOPPED)
            yield [search for search in self.book.all() if search.state in going or search.unrecovered]

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
    advisers: AdviserSource,
    new_name: Callable[[], str],
    run_asker: Callable[[Asker], RunningAsker] = AskerThread,
) -> SearchRoom:
    """Return the searches over a control room.

    Args:
        knows: tells whether there is such a user.
        advisers: where what chooses values comes from.
        new_name: returns a name for a search, never the same.
        run_asker: lets somebody ask for a search from now on.
    """

    def changed(_search: Search) -> None:
        keeper.wake()

    def hear(metrics: Sequence[Metric]) -> None:
        if jobs.awaits(metrics):
            keeper.wake()

    jobs = ControlTrials(control)
    control.trials.subscribe(hear)
    archives = SearchArchives(control.settings.home / FOLDER)
    ports = SearchPorts(
        searches=searches,
        jobs=jobs,
        open_adviser=advisers.open,
        problems_of=_problems_of,
        unknown_users=lambda names: [name for name in names if not knows(name)],
        now=clock.now,
        changed=changed,
        algorithms=advisers.algorithms,
        colour_of=control.slots.colour_of_search,
    )
    book = SearchBook(searches, changed)
    keeper = SearchKeeper(book=book, archives=archives, ports=ports, run_asker=run_asker)
    requests = SearchRequests(book=book, archives=archives, ports=ports, new_name=new_name)
    return SearchRoom(requests=requests, keeper=keeper, archives=archives, book=book)


def _problems_of(settings: SearchSettings) -> tuple[Problem, ...]:
    return problems_of_sampler(settings, has_scipy=find_spec("scipy") is not None)


def _place(point: SeriesPoint, resource: Resource) -> int:
    return point.step if resource == "step" else point.epoch


class ControlTrials:
    """The jobs of a control room, as searches see them."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._awaited: dict[JobId, tuple[str, int, int]] = {}
        """Of jobs that have not ended: the metric that is waited for, at which revision it was read, to which step."""

    def awaits(self, metrics: Sequence[Metric]) -> bool:
        """Tell whether a value is among these that a search waits for; from any thread."""
        return any(self._awaited.get(one.job_id, ("",))[0] == one.name for one in metrics)

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
        found = [
            LiveTrial(job_id=live.id, search=part.search, number=part.number, held=bool(live.job.hold))
            for live in self._control.jobs().values()
            if (part := live.job.spec.trial) is not None and not live.over
        ]
        ids = {one.job_id for one in found}
        self._awaited = {job_id: known for job_id, known in self._awaited.items() if job_id in ids}
        return found

    def news(self, job_id: JobId, read: Sequence[Objective | Constraint], after_step: int) -> JobNews:
        """Return what a job has come to."""
        facts = self._control.trials.facts([job_id]).get(job_id)
        if facts is None or facts.ended_at is not None:
            self._awaited.pop(job_id, None)
        if facts is None:
            return JobNews(state="deleted")
        if facts.ended_at is None:
            metric = read[0].metric
            _, revision, step = self._awaited.get(job_id, ("", -1, -1))
            if revision == facts.revision and step <= after_step:
                return JobNews(state=facts.state, reason=facts.reason)
            series = self._series(job_id, [metric], after_step)
            newest = max((one.step for one in series.get(metric, ())), default=after_step)
            self._awaited[job_id] = (metric, facts.revision, newest)
            return JobNews(state=facts.state, reason=facts.reason, series=series)
        left = read_results(self._control.settings.folders(job_id).result)
        series = {**left, **self._series(job_id, [*dict.fromkeys(one.metric for one in read)], -1)}
        some = {point.name for point in self._control.trials.reports(job_id, (), -1)}
        return JobNews(state=facts.state, reason=facts.reason, series=series, reported=tuple({*some, *series}))

    def values_at_rung(
        self, job_id: JobId, settings: SearchSettings, rung: int
    ) -> Mapping[str, Sequence[SeriesPoint]] | None:
        """Return what a job had reported of what constraints bound when it came to a rung; None while more may come.

        That is what stands at or before the step of its first value at the rung. The script may report several times at
        a step; once the job is beyond it, or at rest, what it reported there is stored.
        """
        facts = self._control.trials.facts([job_id]).get(job_id)
        resource, metric = resource_of(settings), settings.objectives[0].metric
        if facts is None:
            return {}
        came = (one for one in self._points(job_id, metric, -1) if rung <= _place(one, resource))
        step = next((one.step for one in came), 0)
        if facts.ended_at is None and not facts.rests and facts.step <= step:
            return None
        names = dict.fromkeys(one.metric for one in settings.constraints)
        return {name: thin(takewhile(lambda one: one.step <= step, self._points(job_id, name, -1))) for name in names}

    def hold(self, job_id: JobId, why: str) -> None:
        """Let a job leave its slots with its state saved."""
        self._control.trials.hold(job_id, why)

    def release(self, job_id: JobId, why: str) -> None:
        """Let a job go on that was held."""
        self._control.trials.release(job_id, why)

    def stop(self, job_id: JobId, why: str) -> None:
        """End a job at its next step boundary."""
        self._control.trials.stop(job_id, why)

    def num_places(self, spec: JobSpec) -> int:
        """Return how many such jobs the slots of its queue can hold at once, each with its minimum."""
        nodes = self._control.inquiries.machines.out_of_use.usable_now()
        rules = next((rules for rules in self._control.queues.views(nodes) if rules.name == spec.queue), None)
        own = None if rules is None else rules.slots
        num_slots = sum(len(node.slots) if own is None else own.get(node.id, 0) for node in nodes)
        return max(1, num_slots // max(1, spec.num_slots_for(spec.min_tasks)))

    def slot_hours(self, job_ids: Collection[JobId]) -> float:
        """Return what some jobs have used so far."""
        return sum(self._slot_seconds(job_id) for job_id in job_ids) / _HOUR_S

    def _slot_seconds(self, job_id: JobId) -> float:
        page = self._control.queries.usage(0.0, job_id)
        ends = [*(point.at for point in page.points[1:]), page.now]
        return sum(point.num_slots * (end - point.at) for point, end in zip(page.points, ends, strict=False))

    def _series(self, job_id: JobId, names: Sequence[str], after_step: int) -> Mapping[str, Sequence[SeriesPoint]]:
        series = {name: thin(self._points(job_id, name, after_step)) for name in names}
        return {name: points for name, points in series.items() if points}

    def _points(self, job_id: JobId, name: str, after_step: int) -> Iterator[SeriesPoint]:
        while page := self._control.trials.reports(job_id, [name], after_step):
            yield from (SeriesPoint(epoch=one.epoch, step=one.step, value=one.value) for one in page)
            after_step = page[-1].step
