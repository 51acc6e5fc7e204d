"""A store without a disk: everything is forgotten with the process. Implements `pliant.core.ports.Store`."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from threading import Lock

from pliant.core.access import VisibleJobs
from pliant.core.chart import Bucket, Series, SeriesEnd, merge
from pliant.core.errors import NotFound
from pliant.core.event import Event, EventKind, Usage
from pliant.core.job import DeletedJob, Generation, Job, JobId, Metric, Task, TaskId
from pliant.core.job_filter import EVERY_JOB, NEWEST_FIRST, JobFilter, JobOrder
from pliant.core.lifecycle import JobState
from pliant.core.name_match import rank
from pliant.core.ports import EventFilter, Writes
from pliant.core.slot_history import HOUR_S, CapacitySpan, HourSum, JobLayer, SlotRecords, layer_of
from pliant.core.slot_time import SlotTime, integrate
from pliant.core.tensor_histogram import HistogramSeries, JobHistograms, TensorHistogram, first_names, thin
from pliant.sim.noun_events import MemoryNounEvents
from pliant.sim.registry import MemoryRegistry
from pliant.sim.searches import MemorySearches


class MemoryStore:
    """Dictionaries in the order of first writing. `num_writes` counts what was written, so that rest can be seen."""

    def __init__(self, now: Callable[[], float] = lambda: 0.0) -> None:
        """Begin empty; `now` returns when it is, for events of changes that come without a time."""
        self._log = MemoryNounEvents(now)
        self.registry = MemoryRegistry(self._log)
        self.searches = MemorySearches(self._log)
        self._lock = Lock()
        self._jobs: dict[JobId, Job] = {}
        self._order: list[JobId] = []
        """Ids of all jobs that ever were, oldest first."""
        self._deleted: dict[JobId, DeletedJob] = {}
        self._tasks: dict[TaskId, Task] = {}
        self._generations: dict[tuple[JobId, int], Generation] = {}
        self._metrics: dict[tuple[JobId, int, str], Metric] = {}
        self._histograms: dict[tuple[JobId, str], dict[int, TensorHistogram]] = {}
        self._usage: list[Usage] = []
        self._capacity: dict[int, CapacitySpan] = {}
        self._ids: Counter[str] = Counter()
        self.num_writes = 0

    def write(self, writes: Writes) -> tuple[Event, ...]:
        with self._lock:
            named: list[Task | Generation | Metric | Usage] = [*writes.tasks, *writes.generations, *writes.metrics]
            meant = {part.job_id for part in [*named, *writes.histograms, *writes.usage]}
            strange = {job_id for job_id in meant if job_id not in self._jobs} - {job.id for job in writes.jobs}
            if strange:
                raise NotFound(f"the store holds no job named {', '.join(sorted(strange))}; nothing was written")
            if writes.deleted:
                self._delete(writes.deleted)
            self._order += dict.fromkeys(job.id for job in writes.jobs if job.id not in self._jobs)
            self._jobs.update((job.id, job) for job in writes.jobs)
            self._tasks.update((task.id, task) for task in writes.tasks)
            self._generations.update(((g.job_id, g.number), g) for g in writes.generations)
            self._metrics.update(((m.job_id, m.step, m.name), m) for m in writes.metrics)
            self._keep_histograms(writes.histograms)
            self._usage.extend(writes.usage)
            self._capacity.update((span.number, span) for span in writes.capacity)
            events = self._log.append(writes.events)
            self.num_writes += 1
            return events

    def _delete(self, deleted: Sequence[DeletedJob]) -> None:
        if missing := {one.id for one in deleted} - self._jobs.keys() - self._deleted.keys():
            raise NotFound(f"the store holds no job named {', '.join(sorted(missing))}; nothing was written")
        gone = {one.id for one in deleted} & self._jobs.keys()
        self._tasks = {key: task for key, task in self._tasks.items() if task.job_id not in gone}
        self._generations = {key: one for key, one in self._generations.items() if one.job_id not in gone}
        self._metrics = {key: point for key, point in self._metrics.items() if point.job_id not in gone}
        self._histograms = {key: one for key, one in self._histograms.items() if key[0] not in gone}
        self._usage = [point for point in self._usage if point.job_id not in gone]
        if gone:
            self._log.forget_jobs(gone, max(one.deleted_at for one in deleted))
        for one in deleted:
            self._jobs.pop(one.id, None)
            self._deleted[one.id] = one
            self.registry.forget_job(one.id)

    def job(self, job_id: JobId) -> Job | None:
        return self._jobs.get(job_id)

    def deleted_job(self, job_id: JobId) -> DeletedJob | None:
        return self._deleted.get(job_id)

    def deleted_jobs(self) -> tuple[DeletedJob, ...]:
        with self._lock:
            return tuple(self._deleted[job_id] for job_id in self._order if self._has_files(job_id))

    def _has_files(self, job_id: JobId) -> bool:
        return job_id in self._deleted and self._deleted[job_id].has_files

    def jobs(
        self,
        which: JobFilter = EVERY_JOB,
        *,
        before: JobId | None = None,
        order: JobOrder = NEWEST_FIRST,
        offset: int = 0,
        limit: int = 1000,
        visible: VisibleJobs | None = None,
    ) -> tuple[Job, ...]:
        return tuple(islice(order.sort(self._fitting(which, before, visible)), offset, offset + limit))

    def num_jobs(self, which: JobFilter = EVERY_JOB, *, visible: VisibleJobs | None = None) -> int:
        return len(self._fitting(which, None, visible))

    def num_by_state(
        self, which: JobFilter = EVERY_JOB, *, visible: VisibleJobs | None = None
    ) -> Mapping[JobState, int]:
        return Counter(job.state for job in self._fitting(which, None, visible))

    def _fitting(self, which: JobFilter, before: JobId | None, visible: VisibleJobs | None) -> list[Job]:
        with self._lock:
            start = len(self._order) if before is None else self._order.index(before)
            older = [self._jobs[job_id] for job_id in reversed(self._order[:start]) if job_id in self._jobs]
        return [job for job in older if which.fits(job) and (visible is None or visible.covers(job.id, job.owner))]

    def find_jobs(self, text: str, *, limit: int, visible: VisibleJobs | None = None) -> tuple[Job, ...]:
        jobs = self.jobs(JobFilter(without_trials=True), limit=len(self._order), visible=visible)
        found = [(fit, job) for job in jobs if (fit := rank(text, job.id, job.spec.name)) is not None]
        return tuple(job for _, job in sorted(found, key=lambda one: one[0])[:limit])

    def array_jobs(self, array_id: str) -> tuple[Job, ...]:
        with self._lock:
            jobs = tuple(self._jobs.values())
        return tuple(job for job in jobs if job.spec.array is not None and job.spec.array.id == array_id)

    def tasks(self, job_id: JobId | None = None, *, live: bool = False) -> tuple[Task, ...]:
        with self._lock:
            tasks = tuple(self._tasks.values())
        return tuple(task for task in tasks if job_id in (None, task.job_id) and not (live and task.ended))

    def generations(self, job_id: JobId) -> tuple[Generation, ...]:
        with self._lock:
            found = [generation for generation in self._generations.values() if generation.job_id == job_id]
        return tuple(sorted(found, key=lambda generation: generation.number))

    def events(self, which: EventFilter) -> tuple[Event, ...]:
        with self._lock:
            found = [event for event in self._log.events if which.fits(event) and self._may_read(which, event)]
        return tuple(islice(reversed(found) if which.newest else found, which.limit))

    def count_events(self, which: EventFilter) -> int:
        return len(self.events(which))

    def last_seq(self) -> int:
        events = self._log.events
        return events[-1].seq if events else 0

    def _may_read(self, which: EventFilter, event: Event) -> bool:
        of_noun = self._log.may_read(event, which.visible, which.reader)
        if of_noun is not None:
            return of_noun
        is_others = which.other_slots and event.kind is EventKind.SLOTS_CHANGED
        return is_others or self._sees(which.visible, event.job_id)

    def metrics(
        self, job_id: JobId, *, names: Sequence[str] = (), after_step: int = -1, limit: int = 10_000
    ) -> tuple[Metric, ...]:
        with self._lock:
            points = [m for m in self._metrics.values() if m.job_id == job_id and m.step > after_step]
        wanted = (m for m in sorted(points, key=lambda m: (m.step, m.name)) if not names or m.name in names)
        return tuple(islice(wanted, limit))

    def chart(
        self,
        job_id: JobId,
        *,
        names: Sequence[str] = (),
        first_step: int = 0,
        last_step: int | None = None,
        max_buckets: int = 500,
    ) -> tuple[Series, ...]:
        with self._lock:
            points = [m for m in self._metrics.values() if m.job_id == job_id]
        known = {m.name for m in points}
        inside = [m for m in points if m.step >= first_step and (last_step is None or m.step <= last_step)]
        return tuple(
            Series(
                name=name,
                buckets=merge(
                    [_bucket(m) for m in sorted(inside, key=lambda m: m.step) if m.name == name], max_buckets
                ),
            )
            for name in (names or sorted(known))
            if name in known
        )

    def _keep_histograms(self, written: Sequence[JobHistograms]) -> None:
        for one in written:
            there = [name for job_id, name in self._histograms if job_id == one.job_id]
            for each in first_names(there, one.histograms):
                self._histograms.setdefault((one.job_id, each.name), {})[each.step] = each
        for job_id in {one.job_id for one in written}:
            for found in (by_step for key, by_step in self._histograms.items() if key[0] == job_id):
                for step in thin(sorted(found)):
                    del found[step]

    def histogram_series(self, job_id: JobId) -> tuple[HistogramSeries, ...]:
        with self._lock:
            found = sorted((name, sorted(steps)) for (of, name), steps in self._histograms.items() if of == job_id)
        return tuple(
            HistogramSeries(name=name, num_histograms=len(steps), first_step=steps[0], last_step=steps[-1])
            for name, steps in found
        )

    def histograms(self, job_id: JobId, name: str) -> tuple[TensorHistogram, ...]:
        with self._lock:
            return tuple(one for _, one in sorted(self._histograms.get((job_id, name), {}).items()))

    def series_ends(self, job_id: JobId, *, after: str = "", limit: int = 1000) -> tuple[SeriesEnd, ...]:
        with self._lock:
            points = sorted((m for m in self._metrics.values() if m.job_id == job_id), key=lambda m: m.step)
        names = sorted({m.name for m in points if m.name > after})
        return tuple(_end([m for m in points if m.name == name]) for name in names[:limit])

    def usage(
        self, *, since: float = 0.0, job_id: JobId | None = None, visible: VisibleJobs | None = None
    ) -> tuple[Usage, ...]:
        with self._lock:
            ours = [u for u in self._usage if job_id in (None, u.job_id) and self._sees(visible, u.job_id)]
        points = sorted(ours, key=lambda u: u.at)
        earlier = {point.job_id: point for point in points if point.at < since}
        kept = sorted(earlier.values(), key=lambda u: u.at)
        return (*kept, *(point for point in points if point.at >= since))

    def slot_history(self, begin: float, end: float, *, max_steps: int, by_hour: bool = False) -> SlotRecords | None:
        with self._lock:
            points = sorted(self._usage, key=lambda u: u.at)
            spans = [span for _, span in sorted(self._capacity.items())]
        last = {point.job_id: point.num_slots for point in points if point.at < begin}
        held = {job_id: num_slots for job_id, num_slots in last.items() if num_slots}
        steps = [(point.at, point.job_id, point.num_slots) for point in points if begin <= point.at < end]
        hours = _sum_hours(points, begin, end) if by_hour else []
        if len(steps) > max_steps and not by_hour:
            return None
        before = [span for span in spans if span.from_at <= begin][-1:]
        inside = [span for span in spans if begin < span.from_at < end]
        return SlotRecords(
            held=held,
            steps=() if by_hour else steps,
            hours=hours,
            spans=before + inside or spans[:1],
            layers=self.job_layers(held.keys() | {job_id for _, job_id, _ in steps} | {one[1] for one in hours}),
            last_seq=self.last_seq(),
        )

    def job_layers(self, job_ids: Collection[JobId]) -> Mapping[JobId, JobLayer]:
        with self._lock:
            return {job_id: layer_of(self._jobs[job_id]) for job_id in job_ids if job_id in self._jobs}

    def slot_time(self, start: float, until: float, visible: VisibleJobs | None = None) -> tuple[SlotTime, ...]:
        used = integrate(self.usage(since=start, visible=visible), start, until)
        jobs = {job_id: self._jobs[job_id] for job_id in used}
        return tuple(
            SlotTime(job_id=job_id, name=job.spec.name, owner=job.owner, queue=job.queue, slot_seconds=used[job_id])
            for job_id, job in jobs.items()
        )

    def _sees(self, visible: VisibleJobs | None, job_id: JobId | None) -> bool:
        if visible is None or job_id is None:
            return True
        job = self._jobs.get(job_id)
        return job is not None and visible.covers(job_id, job.owner)

    def next_id(self, name: str, how_many: int = 1) -> int:
        with self._lock:
            self._ids[name] += how_many
            return self._ids[name] - how_many + 1

    def close(self) -> None:
        """Do nothing; there is nothing to close."""


def _sum_hours(points: Sequence[Usage], begin: float, end: float) -> list[HourSum]:
    held: Counter[JobId] = Counter()
    deltas: Counter[tuple[int, JobId]] = Counter()
    areas: defaultdict[tuple[int, JobId], float] = defaultdict(float)
    for point in points:
        hour, delta = int(point.at // HOUR_S), point.num_slots - held[point.job_id]
        held[point.job_id] = point.num_slots
        if begin // HOUR_S <= hour < end / HOUR_S:
            deltas[hour, point.job_id] += delta
            areas[hour, point.job_id] += delta * ((hour + 1) * HOUR_S - point.at)
    return [(hour, job_id, deltas[hour, job_id], areas[hour, job_id]) for hour, job_id in sorted(areas)]


def _bucket(point: Metric) -> Bucket:
    value = None if math.isnan(point.value) else point.value
    return Bucket(
        num_points=1,
        num_values=0 if value is None else 1,
        lowest=value,
        highest=value,
        total=value or 0.0,
        first_step=point.step,
        last_step=point.step,
        epoch=point.epoch,
        at=point.at,
    )


def _end(points: Sequence[Metric]) -> SeriesEnd:
    newest = points[-1]
    return SeriesEnd(
        name=newest.name,
        num_points=len(points),
        first_step=points[0].step,
        last_step=newest.step,
        at=max(point.at for point in points),
        value=None if math.isnan(newest.value) else newest.value,
    )
