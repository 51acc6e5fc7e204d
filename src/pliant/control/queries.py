"""What people ask: pages of the store, the pool as it stands, why a job has what it has, and where its files lie.

Reads only. File names from outside are matched against what is there, never joined to a path unchecked.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pliant import __version__
from pliant.control.archive import pack
from pliant.control.live import LiveJob
from pliant.control.settings import ControlSettings
from pliant.core.errors import NotFound
from pliant.core.event import Event, EventKind
from pliant.core.job import Job, JobId, Task, TaskId
from pliant.core.lifecycle import JobState
from pliant.core.ports import Clock, Cluster, EventFilter, Store
from pliant.wire.api import ClusterView, EventPage, JobDetail, JobPage, LogFile, MetricPage, SlotView, UsagePage, Why

MAX_PAGE = 1000
NUM_DECISIONS = 50
_STREAM = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")


class Queries:
    """Answers from the store and from what control has in memory; safe to call from any thread."""

    def __init__(
        self,
        *,
        store: Store,
        cluster: Cluster,
        clock: Clock,
        settings: ControlSettings,
        jobs: Callable[[], Mapping[JobId, LiveJob]],
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._clock = clock
        self._settings = settings
        self._jobs = jobs

    def job(self, job_id: str) -> Job:
        """Return a job.

        Raises:
            NotFound: nothing of that name.
        """
        job = self._store.job(JobId(job_id))
        if job is None:
            raise NotFound(f"no job is named {job_id!r}; list them to see which there are")
        return job

    def page(self, states: Sequence[JobState], before: str | None, limit: int) -> JobPage:
        """Return a page of jobs, newest first."""
        if before is not None:
            self.job(before)
        jobs = self._store.jobs(states=states, before=JobId(before) if before else None, limit=limit + 1)
        more = len(jobs) > limit
        return JobPage(jobs=jobs[:limit], next=jobs[limit - 1].id if more else None)

    def detail(self, job_id: str) -> JobDetail:
        """Return a job with its tasks and generations."""
        job = self.job(job_id)
        return JobDetail(job=job, tasks=self._store.tasks(job.id), generations=self._store.generations(job.id))

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

    def events(self, after: int, job_id: str | None, limit: int) -> EventPage:
        """Return events after a number."""
        which = EventFilter(after=after, job_id=self.job(job_id).id if job_id else None, limit=limit)
        events = self._store.events(which)
        return EventPage(events=events, last=events[-1].seq if events else after)

    def usage(self, since: float, job_id: str | None) -> UsagePage:
        """Return who held how many slots, and when."""
        points = self._store.usage(since=since, job_id=self.job(job_id).id if job_id else None)
        return UsagePage(points=points, now=self._clock.now())

    def cluster(self) -> ClusterView:
        """Return the pool as it stands."""
        nodes = self._cluster.observe().nodes
        held = {(t.node_id, slot): t for live in self._jobs().values() for t in live.running for slot in t.slots}
        slots = []
        for node in nodes:
            for slot in node.slots:
                task = held.get((node.id, slot))
                slots.append(
                    SlotView(
                        node_id=node.id,
                        slot=slot,
                        job_id=task.job_id if task else None,
                        task_id=task.id if task else None,
                    )
                )
        return ClusterView(
            policy=self._settings.policy.name,
            nodes=nodes,
            slots=tuple(slots),
            version=__version__,
            now=self._clock.now(),
        )

    def logs(self, job_id: str) -> tuple[LogFile, ...]:
        """Return the streams of all tasks of a job that have written anything, in order of the tasks."""
        return tuple(
            LogFile(task_id=task.id, stream=path.name, num_bytes=path.stat().st_size)
            for task in self._store.tasks(self.job(job_id).id)
            for path in self._streams(task)
        )

    def log(self, job_id: str, task_id: str, stream: str) -> Path:
        """Return the file of one stream of one task.

        Raises:
            NotFound: no such job, task or stream; names that would lead elsewhere are such.
        """
        job = self.job(job_id)
        task = next((t for t in self._store.tasks(job.id) if t.id == task_id), None)
        if task is None:
            raise NotFound(f"{job_id} has no task {task_id!r}; its detail lists them")
        paths = {path.name: path for path in self._streams(task)}
        if stream not in paths:
            raise NotFound(f"{task_id} has no stream {stream!r}; it has {', '.join(paths) or 'none yet'}")
        return paths[stream]

    def _streams(self, task: Task) -> Iterator[Path]:
        folder = self._settings.folders(task.job_id).log(task.id, task.node_id)
        if not folder.is_dir():
            return
        for path in sorted(folder.iterdir()):
            if _STREAM.fullmatch(path.name) and path.is_file() and not path.is_symlink():
                yield path

    def task_runs(self, task_id: str) -> bool:
        """Tell whether a task has not ended."""
        return any(TaskId(task_id) in live.tasks for live in self._jobs().values())

    def result(self, job_id: str) -> Iterator[bytes]:
        """Return a tar.gz of a job's results, made while it is read; without its checkpoints."""
        return pack(self._settings.folders(self.job(job_id).id).result, exclude=frozenset({"checkpoint"}))


_ENDED = (JobState.COMPLETED, JobState.FAILED, JobState.STOPPED)
