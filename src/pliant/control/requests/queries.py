"""What people ask: pages of the store, the pool as it stands, why a job has what it has, and where its files lie.

Reads only. File names from outside are matched against what is there, never joined to a path unchecked.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from pliant import __version__
from pliant.api.arrays import ArrayView
from pliant.api.job_views import ChartPage, EventPage, JobDetail, JobPage, LogFile, MetricPage, Why
from pliant.api.pool import ClusterView, SlotView, UsagePage
from pliant.control.jobs.kind import Kinds
from pliant.control.jobs.live import LiveJob
from pliant.control.settings import ControlSettings
from pliant.control.upkeep.results import when_logs_were_removed
from pliant.core.access import VisibleJobs
from pliant.core.errors import NotFound
from pliant.core.event import Event, EventKind
from pliant.core.job import Job, JobId, NodeId, Task, TaskId
from pliant.core.job_filter import NEWEST_FIRST, JobFilter, JobOrder
from pliant.core.lifecycle import JobState
from pliant.core.plan import NodeView, PolicyName
from pliant.core.ports import Clock, EventFilter, Observation, Store
from pliant.core.slot import WHOLE_SLOT
from pliant.core.slot_event import event_shown
from pliant.files.untrusted.opening import refusal
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.walking import list_folder

MAX_PAGE = 1000
NUM_DECISIONS = 50
MAX_TIME = float(2**33)
"""Of a file's last change, which its owner may set to anything: in the year 2242."""
_STREAM = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")


class Queries:
    """Answers from the store and from what control has in memory; safe to call from any thread."""

    def __init__(
        self,
        *,
        store: Store,
        observe: Callable[[], Observation],
        clock: Clock,
        settings: ControlSettings,
        jobs: Callable[[], Mapping[JobId, LiveJob]],
        policy: Callable[[], PolicyName],
        kinds: Kinds,
    ) -> None:
        self._store = store
        self._observe = observe
        self._clock = clock
        self._settings = settings
        self._jobs = jobs
        self._policy = policy
        self._kinds = kinds

    def job(self, job_id: str) -> Job:
        """Return a job.

        Raises:
            NotFound: nothing of that name.
        """
        return self.require_visible(job_id, None)

    def require_visible(self, job_id: str, visible: VisibleJobs | None) -> Job:
        """Return a job that somebody sees. Of other people's jobs they do not learn that there are such.

        Raises:
            NotFound: nothing of that name, for them.
        """
        job = self._store.job(JobId(job_id))
        if job is None:
            self._refuse_deleted(job_id, visible)
        if job is None or (visible is not None and not visible.covers(job.id, job.owner)):
            raise NotFound(f"no job is named {job_id!r}; list them to see which there are")
        return job

    def _refuse_deleted(self, job_id: str, visible: VisibleJobs | None) -> None:
        """Say to its owner, and to who sees all, that a job was deleted; to others it never was."""
        gone = self._store.deleted_job(JobId(job_id))
        if gone is not None and (visible is None or visible.owner == gone.owner):
            at = f"{datetime.fromtimestamp(gone.deleted_at, UTC):%Y-%m-%d %H:%M:%S} UTC"
            raise NotFound(f"{gone.id} was deleted by {gone.deleted_by} at {at}")

    def has_any(self, which: JobFilter, visible: VisibleJobs | None) -> bool:
        """Tell whether somebody sees a job of those."""
        return bool(self._store.jobs(which, limit=1, visible=visible))

    def sees(self, job_id: str, visible: VisibleJobs | None) -> bool:
        """Tell whether there is such a job and somebody sees it."""
        job = self._store.job(JobId(job_id))
        return job is not None and (visible is None or visible.covers(job.id, job.owner))

    def array(self, array_id: str, visible: VisibleJobs | None) -> tuple[Job, ...]:
        """Return the jobs of an array that are there, in their order, to somebody who sees them all.

        Raises:
            NotFound: nothing of that name, for them.
        """
        jobs = self._store.array_jobs(array_id)
        if not jobs or (visible is not None and not all(visible.covers(job.id, job.owner) for job in jobs)):
            raise NotFound(f"no array is named {array_id!r}; list jobs to see which array each is of")
        return jobs

    def array_view(self, array_id: str, visible: VisibleJobs | None = None, notes: Sequence[str] = ()) -> ArrayView:
        """Return an array with its jobs.

        Raises:
            NotFound: nothing of that name, for them.
        """
        jobs = self.array(array_id, visible)
        array = jobs[0].spec.array
        assert array is not None, "it was found by that"
        return ArrayView(
            id=array.id,
            name=array.name,
            owner=jobs[0].owner,
            num_jobs=array.num_jobs,
            max_running=array.max_running,
            states=Counter(job.state for job in jobs),
            jobs=jobs,
            notes=tuple(notes),
        )

    def page(
        self,
        which: JobFilter,
        before: str | None,
        limit: int,
        visible: VisibleJobs | None = None,
        *,
        order: JobOrder = NEWEST_FIRST,
        offset: int = 0,
    ) -> JobPage:
        """Return a page of the jobs that somebody asks for and sees.

        Raises:
            NotFound: `before` is no job that they see, or saw before it was deleted.
        """
        if before is not None and self._store.deleted_job(JobId(before)) is None:
            self.require_visible(before, visible)
        cursor = None if before is None else JobId(before)
        jobs = self._store.jobs(which, before=cursor, order=order, offset=offset, limit=limit + 1, visible=visible)
        more = len(jobs) > limit and order == NEWEST_FIRST
        total = self._store.num_jobs(which, visible=visible)
        return JobPage(jobs=jobs[:limit], next=jobs[limit - 1].id if more else None, total=total)

    def find(self, text: str, limit: int, visible: VisibleJobs | None = None) -> tuple[Job, ...]:
        """Return jobs that somebody sees whose id or name holds a text, the best first."""
        return self._store.find_jobs(text, limit=limit, visible=visible)

    def detail(self, job_id: str) -> JobDetail:
        """Return a job with its tasks and generations."""
        job = self.job(job_id)
        return JobDetail(
            job=job,
            tasks=self._store.tasks(job.id),
            generations=self._store.generations(job.id),
            remark=self._remark(job.id),
        )

    def _remark(self, job_id: JobId) -> str:
        live = self._jobs().get(job_id)
        return "" if live is None else self._kinds.of(live.job).remark(live, self._clock.now())

    def last_event(self) -> int:
        """Return the number of the newest event."""
        return self._store.last_seq()

    def why(self, job_id: str) -> Why:
        """Return why a job has the slots it has."""
        job = self.job(job_id)
        live = self._jobs().get(job.id)
        decisions = self._decisions(job.id)
        waiting = job.reason if job.state in (JobState.STOPPING, *_ENDED) else job.why
        return Why(
            job_id=job.id,
            state=job.state,
            num_tasks=len(live.running) if live else 0,
            target_tasks=live.target if live and live.competes else 0,
            sentence=waiting or job.reason or "the scheduler has not looked at it yet",
            remark=self._remark(job.id),
            search="" if job.spec.trial is None else job.spec.trial.search,
            trial=None if job.spec.trial is None else job.spec.trial.number,
            history=tuple(reversed(decisions)),
        )

    def _decisions(self, job_id: JobId) -> list[Event]:
        newest: list[Event] = []
        after = 0
        while True:
            page = self._store.events(
                EventFilter(after=after, job_id=job_id, kinds=(EventKind.DECISION,), limit=MAX_PAGE)
            )
            newest = [*newest, *page][-NUM_DECISIONS:]
            if len(page) < MAX_PAGE:
                return newest
            after = page[-1].seq

    def metrics(self, job_id: str, names: Sequence[str], after_step: int) -> MetricPage:
        """Return points of a job's series."""
        return MetricPage(points=self._store.metrics(self.job(job_id).id, names=names, after_step=after_step))

    def chart(
        self, job_id: str, names: Sequence[str], first_step: int, last_step: int | None, max_buckets: int
    ) -> ChartPage:
        """Return a job's series between two steps, downsampled."""
        series = self._store.chart(
            self.job(job_id).id, names=names, first_step=first_step, last_step=last_step, max_buckets=max_buckets
        )
        return ChartPage(series=series)

    def events(self, which: EventFilter) -> EventPage:
        """Return events, of one job or of those that somebody sees; `last` is how far was looked.

        Raises:
            NotFound: that job is none that they see.
        """
        if which.job_id is not None:
            self.require_visible(which.job_id, which.visible)
            which = replace(which, visible=None)
        page = self._page_of_events(which)
        shown = (event_shown(event, which.visible) for event in page.events)
        return replace(page, events=tuple(shown))

    def _page_of_events(self, which: EventFilter) -> EventPage:
        newest = self._store.last_seq()
        if which.newest:
            events = self._store.events(replace(which, limit=which.limit + 1))
            more = events[which.limit - 1].seq if len(events) > which.limit else None
            return EventPage(events=events[: which.limit], last=newest, next=more)
        events = self._store.events(which)
        found = events[-1].seq if events else which.after
        return EventPage(events=events, last=found if len(events) == which.limit else max(found, newest))

    def usage(self, since: float, job_id: str | None, visible: VisibleJobs | None = None) -> UsagePage:
        """Return who held how many slots, and when."""
        one = None if job_id is None else self.require_visible(job_id, visible).id
        points = self._store.usage(since=since, job_id=one, visible=visible if one is None else None)
        return UsagePage(points=points, now=self._clock.now())

    def nodes(self) -> tuple[NodeView, ...]:
        """Return the hosts that there are now."""
        return self._observe().nodes

    def cluster(self, visible: VisibleJobs | None = None) -> ClusterView:
        """Return the pool as it stands; which jobs and tasks hold the slots only of those that somebody sees."""
        nodes = self._observe().nodes
        held: dict[tuple[NodeId, int], list[_Held]] = defaultdict(list)
        for live in self._jobs().values():
            is_seen = visible is None or visible.covers(live.id, live.job.owner)
            for task in live.running:
                for slot in task.slots:
                    held[task.node_id, slot].append(_Held(task, live.job.spec.slot_share < WHOLE_SLOT, is_seen))
        return ClusterView(
            policy=self._policy(),
            nodes=nodes,
            slots=tuple(_slot(node.id, slot, held.get((node.id, slot), ())) for node in nodes for slot in node.slots),
            version=__version__,
            now=self._clock.now(),
        )

    def logs(self, job_id: str) -> tuple[LogFile, ...]:
        """Return the streams of all tasks of a job that have written anything, in order of the tasks.

        Raises:
            NotFound: no such job, or its logs were removed.
        """
        job = self.job(job_id)
        found = tuple(
            LogFile(task_id=task.id, stream=stream, num_bytes=num_bytes)
            for task in self._store.tasks(job.id)
            for stream, num_bytes in self._streams(task).items()
        )
        if not found:
            self._refuse_removed(job.id)
        return found

    def _refuse_removed(self, job_id: JobId) -> None:
        if words := when_logs_were_removed(self._settings.folders(job_id)):
            raise NotFound(f"the logs of {job_id} were removed at {words}")

    def log(self, job_id: str, task_id: str, stream: str, *, early: bool = False) -> UntrustedPath:
        """Return the file of one stream of one task.

        Args:
            early: any stream that it may have, if it has none yet.

        Raises:
            NotFound: no such job, task or stream; names that would lead elsewhere are such.
        """
        job = self.job(job_id)
        task = next((t for t in self._store.tasks(job.id) if t.id == task_id), None)
        if task is None:
            raise NotFound(f"{job_id} has no task {task_id!r}; its detail lists them")
        streams = self._streams(task)
        is_ahead = early and not streams and _STREAM.fullmatch(stream) is not None
        if not streams:
            self._refuse_removed(job.id)
        if stream not in streams and not is_ahead:
            raise NotFound(f"{task_id} has no stream {stream!r}; it has {', '.join(streams) or 'none yet'}")
        return self._settings.folders(task.job_id).log(task.id, task.node_id) / stream

    def _streams(self, task: Task) -> dict[str, int]:
        """Return the plain files in a task's log folder whose names are those of streams, with their lengths."""
        folder = self._settings.folders(task.job_id).log(task.id, task.node_id)
        return {
            name: facts.st_size
            for name, facts in list_folder(folder)
            if _STREAM.fullmatch(name) and not refusal(facts, None)
        }

    def users_of(self, dataset: str) -> tuple[JobId, ...]:
        """Return the jobs that use a data set and have not ended, or have processes that still may read it."""
        return tuple(job_id for job_id, live in self._jobs().items() if live.job.spec.dataset == dataset)

    def task_runs(self, task_id: str) -> bool:
        """Tell whether a task has not ended."""
        return any(TaskId(task_id) in live.tasks for live in self._jobs().values())


_ENDED = (JobState.COMPLETED, JobState.FAILED, JobState.STOPPED)


class _Held(NamedTuple):
    """A task that holds a slot."""

    task: Task
    is_part: bool
    """It holds a part of it only."""
    is_seen: bool


def _slot(node_id: NodeId, slot: int, held: Sequence[_Held]) -> SlotView:
    """Return a slot with who holds it, if that may be seen."""
    seen = sorted((one for one in held if one.is_seen), key=lambda one: one.task.started_at)
    task = seen[0].task if seen else None
    return SlotView(
        node_id=node_id,
        slot=slot,
        taken=bool(held),
        sharers=tuple(one.task.id for one in seen if one.is_part),
        job_id=task.job_id if task else None,
        task_id=task.id if task else None,
    )
