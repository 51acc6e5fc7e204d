"""The store over a SQL database: short transactions, one per call.

Invariants: a write is one transaction; event numbers come from a counter row that the transaction holds locked until it
commits, so they have no gaps and follow the order of commits, also between processes. An acknowledged write survives
the death of the process; with SQLite a power cut can take the newest ones, never half of one. With a term, only the
leader of that term writes (`pliant.store.leadership`).
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import Any, Final, TypeVar

from sqlalchemy import Column, Connection, RowMapping, Table, delete, insert, select

from pliant.core.access import VisibleJobs
from pliant.core.chart import Series, SeriesEnd
from pliant.core.event import Event, Usage
from pliant.core.job import DeletedJob, Generation, Job, JobId, Metric, Task
from pliant.core.job_filter import EVERY_JOB, NEWEST_FIRST, JobFilter, JobOrder
from pliant.core.lifecycle import JobState
from pliant.core.ports import EventFilter, Writes
from pliant.core.slot_history import JobLayer, SlotRecords
from pliant.core.slot_time import SlotTime
from pliant.core.tensor_histogram import HistogramSeries, TensorHistogram
from pliant.store import histograms, queries, rollups, rows, slot_history
from pliant.store.deletion import delete_jobs
from pliant.store.engine import (
    advance_counter,
    bytewise,
    open_engine,
    read_transaction,
    snapshot_transaction,
    upsert,
)
from pliant.store.fence import Fence
from pliant.store.migrate import migrate
from pliant.store.noun_events import EVENT_COUNTER, NounEvents
from pliant.store.registry import SqlAudit, SqlRegistry
from pliant.store.searches import SqlSearches
from pliant.store.tables import (
    CAPACITY,
    COUNTERS,
    EVENTS,
    GENERATIONS,
    JOB_TEXTS,
    JOBS,
    METRICS,
    ROLLUPS,
    TAGS,
    TASKS,
    USAGE,
)
from pliant.store.upkeep import SqlRecords

T = TypeVar("T")

_MAX_KEYS: Final = 500
"""Ids asked for in one statement; databases bound the number of parameters."""


class SqlStore:
    """A `Store` in the database at `url`, brought up to date when it is opened."""

    def __init__(self, url: str, *, term: int | None = None, now: Callable[[], float] = time.time) -> None:
        """Open the database, make it if it is new, and apply the migrations that it lacks.

        Args:
            term: the server's, if it had to take the lead; then it writes only while this is the newest.
            now: returns when it is, for events of changes that come without a time.

        Raises:
            InvalidInput: the URL names no database that we can use.
            Conflict: a newer Pliant wrote the database.
            Unavailable: the database does not answer.
        """
        self._engine = open_engine(url)
        self._write_lock = Lock()
        self._fence = Fence(self._engine, term)
        try:
            migrate(self._engine)
        except BaseException:
            self._engine.dispose()
            raise
        events = NounEvents(now)
        self.registry = SqlRegistry(self._engine, self._write_transaction, events)
        self.audit = SqlAudit(self._engine, self._write_transaction)
        self.searches = SqlSearches(self._engine, self._write_transaction, events)
        self.records = SqlRecords(self._engine, self._write_transaction)

    def write(self, writes: Writes) -> tuple[Event, ...]:
        """Write all or nothing; return the events with their numbers.

        Raises:
            NotFound: a task, generation, metric, histogram or usage point names a job that is not stored; nothing was
                written.
        """
        with self._write_transaction() as connection:
            delete_jobs(connection, writes.deleted)
            before = _upsert_in_order(connection, JOBS, [rows.job_row(job) for job in writes.jobs], JOBS.c.tags)
            _write_texts(connection, [job for job in writes.jobs if job.id not in before or before[job.id] != job.tags])
            _write_tags(connection, [job for job in writes.jobs if (before.get(job.id) or {}) != job.tags])
            _upsert_in_order(connection, TASKS, [rows.task_row(task) for task in writes.tasks], TASKS.c.id)
            upsert(connection, GENERATIONS, [rows.generation_row(generation) for generation in writes.generations])
            upsert(connection, METRICS, [rows.metric_row(metric) for metric in writes.metrics])
            rollups.refresh(connection, writes.metrics)
            histograms.write(connection, writes.histograms)
            _append_usage(connection, writes.usage)
            upsert(connection, CAPACITY, [rows.capacity_row(span) for span in writes.capacity])
            return _append_events(connection, writes.events)

    def job(self, job_id: JobId) -> Job | None:
        """Return a job, or None if there is none of that id."""
        found = self._read(queries.job(job_id), rows.job_of)
        return found[0] if found else None

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
        """Return jobs in an order, those that somebody may see or all; `before` is the last id of the page before."""
        if order == NEWEST_FIRST and not offset:
            return self._read(queries.jobs(which, before, limit, visible), rows.job_of)
        return self._read(queries.ordered_jobs(which, order, offset, limit, visible), rows.job_of)

    def num_jobs(self, which: JobFilter = EVERY_JOB, *, visible: VisibleJobs | None = None) -> int:
        """Return how many jobs fit, of those that somebody may see or of all."""
        with read_transaction(self._engine) as connection:
            return int(connection.execute(queries.num_jobs(which, visible)).scalar_one())

    def find_jobs(self, text: str, *, limit: int, visible: VisibleJobs | None = None) -> tuple[Job, ...]:
        """Return jobs that hold a text in id or name, the best first."""
        return self._read(queries.find_jobs(text, limit, visible), rows.job_of)

    def num_by_state(
        self, which: JobFilter = EVERY_JOB, *, visible: VisibleJobs | None = None
    ) -> Mapping[JobState, int]:
        """Return how many of these jobs are in each state; states that none is in are left out."""
        counts: Counter[JobState] = Counter()
        with read_transaction(self._engine) as connection:
            for state, number in connection.execute(queries.num_by_state(which, visible)):
                counts[JobState(state)] += number
        return counts

    def deleted_job(self, job_id: JobId) -> DeletedJob | None:
        """Return what is left of a job that was deleted."""
        found = self._read(queries.deleted_job(job_id), rows.deleted_of)
        return found[0] if found else None

    def deleted_jobs(self) -> tuple[DeletedJob, ...]:
        """Return those whose files are not removed yet, in the order in which they were submitted."""
        return self._read(queries.deleted_jobs(), rows.deleted_of)

    def array_jobs(self, array_id: str) -> tuple[Job, ...]:
        """Return the jobs of an array in their order; none if there is no such array."""
        return self._read(queries.array_jobs(array_id), rows.job_of)

    def tasks(self, job_id: JobId | None = None, *, live: bool = False) -> tuple[Task, ...]:
        """Return tasks oldest first."""
        return self._read(queries.tasks(job_id, live), rows.task_of)

    def generations(self, job_id: JobId) -> tuple[Generation, ...]:
        """Return a job's generations oldest first."""
        return self._read(queries.generations(job_id), rows.generation_of)

    def events(self, which: EventFilter) -> tuple[Event, ...]:
        """Return events in order of their numbers."""
        return self._read(queries.events(which), rows.event_of)

    def last_seq(self) -> int:
        """Return the number of the newest event, 0 if there is none."""
        with read_transaction(self._engine) as connection:
            return connection.execute(queries.last_seq()).scalar_one() or 0

    def histogram_series(self, job_id: JobId) -> tuple[HistogramSeries, ...]:
        """Return which names a job has histograms of, in their order."""
        with read_transaction(self._engine) as connection:
            return histograms.series(connection, job_id)

    def histograms(self, job_id: JobId, name: str) -> tuple[TensorHistogram, ...]:
        """Return the histograms that a job has of a name, in the order of their steps."""
        with read_transaction(self._engine) as connection:
            return histograms.read(connection, job_id, name)

    def metrics(
        self, job_id: JobId, *, names: Sequence[str] = (), after_step: int = -1, limit: int = 10_000
    ) -> tuple[Metric, ...]:
        """Return points in order of (step, name)."""
        return self._read(queries.metrics(job_id, names, after_step, limit), rows.metric_of)

    def chart(
        self,
        job_id: JobId,
        *,
        names: Sequence[str] = (),
        first_step: int = 0,
        last_step: int | None = None,
        max_buckets: int = 500,
    ) -> tuple[Series, ...]:
        """Return series between two steps, each in so many buckets at most."""
        found = []
        with read_transaction(self._engine) as connection:
            for name in names or rollups.names(connection, job_id):
                if (extent := rollups.extent(connection, job_id, name)) is None:
                    continue
                first, last = max(first_step, extent[0]), min(extent[1], extent[1] if last_step is None else last_step)
                buckets = rollups.read(connection, job_id, name, first, last, max_buckets) if first <= last else ()
                found.append(Series(name=name, buckets=buckets))
        return tuple(found)

    def series_ends(self, job_id: JobId, *, after: str = "", limit: int = 1000) -> tuple[SeriesEnd, ...]:
        """Return which series a job has after a name, in the order of their names, and how each ends."""
        with read_transaction(self._engine) as connection:
            return rollups.ends(connection, job_id, bytewise(self._engine, ROLLUPS.c.name), after, limit)

    def usage(
        self, *, since: float = 0.0, job_id: JobId | None = None, visible: VisibleJobs | None = None
    ) -> tuple[Usage, ...]:
        """Return the points at or after `since`, oldest first, and before them each job's last earlier one."""
        return self._read(queries.usage(since, job_id, visible), rows.usage_of)

    def slot_history(self, begin: float, end: float, *, max_steps: int, by_hour: bool = False) -> SlotRecords | None:
        """Return who held how many slots in a window, all of it as it is at one instant; None if there are more steps.

        With `by_hour` sums of hours are read instead.
        """
        with snapshot_transaction(self._engine) as connection:
            return slot_history.read(connection, begin, end, max_steps, by_hour)

    def job_layers(self, job_ids: Collection[JobId]) -> Mapping[JobId, JobLayer]:
        """Return what charts have to know of jobs, those that are there."""
        with read_transaction(self._engine) as connection:
            return slot_history.layers(connection, job_ids)

    def count_events(self, which: EventFilter) -> int:
        """Return how many events there are of those, `which.limit` at most."""
        with read_transaction(self._engine) as connection:
            return int(connection.execute(queries.count_events(which)).scalar_one())

    def slot_time(self, start: float, until: float, visible: VisibleJobs | None = None) -> tuple[SlotTime, ...]:
        """Return what each job used between two instants, of those that used anything and somebody may see."""
        return self._read(queries.slot_time(start, until, visible), lambda row: SlotTime(**row))

    def next_id(self, name: str, how_many: int = 1) -> int:
        """Return 1, 2, 3, … for each name, or the first of so many; never the same number twice, also after a crash."""
        with self._write_transaction() as connection:
            return advance_counter(connection, COUNTERS, f"id/{name}", how_many) - how_many + 1

    @property
    def diverged(self) -> bool:
        """Whether the database holds a write that was reported as failed: what is in memory must be read anew."""
        return self._fence.diverged

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def _write_transaction(self) -> Iterator[Connection]:
        with self._write_lock, self._fence.write_transaction() as connection:
            yield connection

    def _read(self, query: queries.Query, noun_of: Callable[[RowMapping], T]) -> tuple[T, ...]:
        with read_transaction(self._engine) as connection:
            return tuple(noun_of(row) for row in connection.execute(query).mappings())


def _upsert_in_order(
    connection: Connection, table: Table, given: list[rows.Row], asked: Column[Any]
) -> Mapping[str, Any]:
    """Write rows that have an ordinal: new ones get the next numbers, known ones keep theirs.

    Return what a column of those that were known held before, by id.
    """
    if not given:
        return {}
    known = _known(connection, table, [row["id"] for row in given], asked)
    new = dict.fromkeys(row["id"] for row in given if row["id"] not in known)
    numbers = dict(zip(new, _numbers(connection, f"ordinal/{table.name}", len(new)), strict=True))
    upsert(connection, table, [row | {"ordinal": numbers.get(row["id"], 0)} for row in given], keep=["ordinal"])
    return known


def _known(connection: Connection, table: Table, ids: Sequence[str], asked: Column[Any]) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for start in range(0, len(ids), _MAX_KEYS):
        query = select(table.c.id, asked).where(table.c.id.in_(ids[start : start + _MAX_KEYS]))
        known.update((row[0], row[1]) for row in connection.execute(query))
    return known


def _write_tags(connection: Connection, jobs: Sequence[Job]) -> None:
    """Replace what jobs are found by."""
    for start in range(0, len(jobs), _MAX_KEYS):
        ids = [job.id for job in jobs[start : start + _MAX_KEYS]]
        connection.execute(delete(TAGS).where(TAGS.c.job_id.in_(ids)))
    _insert(connection, TAGS, [row for job in jobs for row in rows.tag_rows(job)])


def _write_texts(connection: Connection, jobs: Sequence[Job]) -> None:
    """Write the texts that jobs are searched in."""
    upsert(connection, JOB_TEXTS, [rows.text_row(job) for job in {job.id: job for job in jobs}.values()])


def _append_usage(connection: Connection, usage: Sequence[Usage]) -> None:
    slot_history.add_to_hours(connection, usage)
    numbers = _numbers(connection, "ordinal/usage", len(usage))
    _insert(connection, USAGE, [rows.usage_row(u) | {"ordinal": n} for n, u in zip(numbers, usage, strict=True)])


def _append_events(connection: Connection, events: Sequence[Event]) -> tuple[Event, ...]:
    numbers = _numbers(connection, EVENT_COUNTER, len(events))
    numbered = tuple(replace(event, seq=seq) for seq, event in zip(numbers, events, strict=True))
    _insert(connection, EVENTS, [rows.event_row(event) for event in numbered])
    return numbered


def _numbers(connection: Connection, counter: str, how_many: int) -> Iterable[int]:
    if how_many == 0:
        return ()
    last = advance_counter(connection, COUNTERS, counter, how_many)
    return range(last - how_many + 1, last + 1)


def _insert(connection: Connection, table: Table, given: list[dict[str, Any]]) -> None:
    if given:
        connection.execute(insert(table), given)
