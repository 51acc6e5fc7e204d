"""The statements behind the store's questions. Knows tables, no connection; every one is answered from an index."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import (
    Column,
    ColumnElement,
    CompoundSelect,
    Select,
    String,
    and_,
    case,
    false,
    func,
    or_,
    select,
    union_all,
)

from pliant.core.access import EVERYBODY, VisibleJobs
from pliant.core.event import EventKind
from pliant.core.job import JobId
from pliant.core.job_filter import EVERY_JOB, JobFilter, JobOrder, SortField
from pliant.core.lifecycle import TASK_LIFECYCLE, TaskState, is_final
from pliant.core.name_match import BEGINS, HOLDS, SAME
from pliant.core.ports import EventFilter
from pliant.store.engine import bytewise_text, in_json_array
from pliant.store.tables import DELETED, EVENTS, GENERATIONS, JOB_TEXTS, JOBS, METRICS, NOUN_VIEWERS, TAGS, TASKS, USAGE

LIVE_TASKS: Final = tuple(state.value for state in TaskState if not is_final(TASK_LIFECYCLE, state))

MAX_COMPARED: Final = 1000
"""Of jobs that hold a text so many are compared, the newest."""

Query = Select[Any]

_SORT_COLUMNS: Final[Mapping[SortField, Column[Any]]] = {
    "submitted": JOBS.c.ordinal,
    "ended": JOBS.c.ended_at,
    "name": JOBS.c.name,
    "state": JOBS.c.state,
    "owner": JOBS.c.owner,
    "queue": JOBS.c.queue,
    "priority": JOBS.c.priority,
    "slots": JOBS.c.num_slots,
}


def job(job_id: JobId) -> Query:
    """Ask for one job."""
    return select(JOBS).where(JOBS.c.id == job_id)


def jobs(
    which: JobFilter = EVERY_JOB,
    before: JobId | None = None,
    limit: int = 100,
    visible: VisibleJobs | None = None,
) -> Query:
    """Ask for jobs, newest first."""
    if visible is None:
        return _newest(select(JOBS), which, before, limit)
    own = select(JOBS.c.ordinal).where(JOBS.c.owner == visible.owner)
    shared = select(JOBS.c.ordinal).where(_is_shared(JOBS.c.id, visible), JOBS.c.owner != visible.owner)
    pages = [_newest(query, which, before, limit).subquery() for query in (own, shared)]
    both = union_all(*(select(page.c.ordinal) for page in pages))
    return select(JOBS).where(JOBS.c.ordinal.in_(both)).order_by(JOBS.c.ordinal.desc()).limit(limit)


def ordered_jobs(which: JobFilter, order: JobOrder, offset: int, limit: int, visible: VisibleJobs | None) -> Query:
    """Ask for jobs in an order; which they are is found out on indexes before any whole row is read."""
    wanted = select(JOBS.c.ordinal).where(*_fits(which), *_seen_jobs(visible)).order_by(*_order(order))
    page = wanted.limit(limit).offset(offset)
    return select(JOBS).where(JOBS.c.ordinal.in_(page)).order_by(*_order(order))


def num_jobs(which: JobFilter, visible: VisibleJobs | None) -> Query:
    """Ask how many jobs fit."""
    own, *shared = _counted_apart(select(func.count()).select_from(JOBS).where(*_fits(which)), visible)
    return select(own.scalar_subquery() + shared[0].scalar_subquery()) if shared else own


def num_by_state(which: JobFilter, visible: VisibleJobs | None) -> CompoundSelect[Any]:
    """Ask how many jobs fit, for each state; a state may come twice."""
    counted = select(JOBS.c.state, func.count()).where(*_fits(which)).group_by(JOBS.c.state)
    return union_all(*_counted_apart(counted, visible))


def _counted_apart(query: Query, visible: VisibleJobs | None) -> Iterator[Query]:
    """Yield a question for one's own jobs, and for those that are shared: a condition with OR would read all."""
    if visible is None:
        yield query
        return
    yield query.where(JOBS.c.owner == visible.owner)
    yield query.where(_is_shared(JOBS.c.id, visible), JOBS.c.owner != visible.owner)


def _seen_jobs(visible: VisibleJobs | None) -> Iterator[ColumnElement[bool]]:
    if visible is not None:
        own = JOBS.c.owner == visible.owner
        yield or_(own, _is_shared(JOBS.c.id, visible)) if visible.shared else own


def _order(order: JobOrder) -> Iterator[ColumnElement[Any]]:
    column = _SORT_COLUMNS[order.by]
    value: ColumnElement[Any] = bytewise_text(column) if isinstance(column.type, String) else column
    value = value.desc() if order.descending else value.asc()
    yield value.nulls_last() if column.nullable else value
    if order.by != "submitted":
        yield JOBS.c.ordinal.desc()


def find_jobs(text: str, limit: int, visible: VisibleJobs | None = None) -> Query:
    """Ask for jobs that hold a text in id or name, trials apart; see `Store.find_jobs`."""
    names = (JOBS.c.id, JOBS.c.name)
    holds = or_(*(name.icontains(text, autoescape=True) for name in names))
    begins = or_(*(name.istartswith(text, autoescape=True) for name in names))
    is_it = or_(*(func.lower(name) == func.lower(text) for name in names))
    rank = case((is_it, SAME), (begins, BEGINS), else_=HOLDS).label("rank")
    newest = select(JOBS.c.ordinal, rank).where(holds, JOBS.c.search.is_(None))
    if visible is not None:
        newest = newest.where(or_(JOBS.c.owner == visible.owner, _is_shared(JOBS.c.id, visible)))
    compared = newest.order_by(JOBS.c.ordinal.desc()).limit(MAX_COMPARED).subquery()
    best = select(compared).order_by(compared.c.rank, compared.c.ordinal.desc()).limit(limit).subquery()
    of_them = select(JOBS).join(best, JOBS.c.ordinal == best.c.ordinal)
    return of_them.order_by(best.c.rank, JOBS.c.ordinal.desc())


def array_jobs(array_id: str) -> Query:
    """Ask for the jobs of an array, oldest first."""
    return select(JOBS).where(JOBS.c.array_id == array_id).order_by(JOBS.c.ordinal)


def deleted_job(job_id: JobId) -> Query:
    """Ask for what is left of a job that was deleted."""
    return select(DELETED).where(DELETED.c.id == job_id)


def deleted_jobs() -> Query:
    """Ask for those whose files are not removed yet."""
    return select(DELETED).where(DELETED.c.has_files.is_(True)).order_by(DELETED.c.ordinal)


def _newest(query: Query, which: JobFilter, before: JobId | None, limit: int) -> Query:
    query = query.where(*_fits(which)).order_by(JOBS.c.ordinal.desc()).limit(limit)
    if before is not None:
        older = JOBS.alias("older")
        there = select(older.c.ordinal).where(older.c.id == before).scalar_subquery()
        gone = select(DELETED.c.ordinal).where(DELETED.c.id == before).scalar_subquery()
        query = query.where(JOBS.c.ordinal < func.coalesce(there, gone))
    return query


def _fits(which: JobFilter) -> Iterator[ColumnElement[bool]]:
    """Yield what is asked of a job; all of it holds."""
    if which.states:
        yield JOBS.c.state.in_([state.value for state in which.states])
    if which.owners:
        yield JOBS.c.owner.in_(which.owners)
    if which.queues:
        yield JOBS.c.queue.in_(which.queues)
    if which.searches:
        yield JOBS.c.search.in_(which.searches)
    if which.endpoints:
        yield JOBS.c.endpoint.in_(which.endpoints)
    if which.without_trials:
        yield JOBS.c.search.is_(None)
    if which.kinds:
        yield JOBS.c.kind.in_(which.kinds)
    if which.text:
        found = JOB_TEXTS.c.text.contains(which.text.casefold(), autoescape=True)
        yield JOBS.c.id.in_(select(JOB_TEXTS.c.job_id).where(found))
    for name, values in which.tags.items():
        tagged = select(TAGS.c.job_id).where(TAGS.c.name == name)
        yield JOBS.c.id.in_(tagged.where(TAGS.c.value.in_(values)) if values else tagged)


def _is_visible(job_id: Column[str], visible: VisibleJobs) -> ColumnElement[bool]:
    """Say that the job is one that somebody sees."""
    seen = JOBS.alias("seen")
    theirs = select(seen.c.id).where(seen.c.id == job_id, seen.c.owner == visible.owner).exists()
    return or_(theirs, _is_shared(job_id, visible)) if visible.shared else theirs


def _is_shared(job_id: Column[str], visible: VisibleJobs) -> ColumnElement[bool]:
    return in_json_array(job_id, json.dumps(sorted(visible.shared)))


def tasks(job_id: JobId | None, live: bool) -> Query:
    """Ask for tasks, oldest first."""
    query = select(TASKS).order_by(TASKS.c.ordinal)
    if job_id is not None:
        query = query.where(TASKS.c.job_id == job_id)
    if live:
        query = query.where(TASKS.c.state.in_(LIVE_TASKS))
    return query


def generations(job_id: JobId) -> Query:
    """Ask for a job's generations, oldest first."""
    return select(GENERATIONS).where(GENERATIONS.c.job_id == job_id).order_by(GENERATIONS.c.number)


def events(which: EventFilter) -> Query:
    """Ask for events in order."""
    order = EVENTS.c.seq.desc() if which.newest else EVENTS.c.seq
    return select(EVENTS).where(*_happened(which)).order_by(order).limit(which.limit)


def count_events(which: EventFilter) -> Query:
    """Ask how many events there are, up to the limit."""
    some = select(EVENTS.c.seq).where(*_happened(which)).limit(which.limit).subquery()
    return select(func.count()).select_from(some)


def _happened(which: EventFilter) -> Iterator[ColumnElement[bool]]:
    """Yield what is asked of an event; all of it holds."""
    if which.after or (which.since is None and which.before is None):
        yield EVENTS.c.seq > which.after
    if which.before is not None:
        yield EVENTS.c.seq < which.before
    if which.since is not None:
        yield EVENTS.c.at >= which.since
    if which.until is not None:
        yield EVENTS.c.at < which.until
    if which.job_id is not None:
        yield EVENTS.c.job_id == which.job_id
    if which.kinds:
        yield EVENTS.c.kind.in_([kind.value for kind in which.kinds])
    if which.states:
        of_state = EVENTS.c.data["to"].as_string().in_([state.value for state in which.states])
        yield or_(EVENTS.c.kind != EventKind.JOB_STATE.value, of_state)
    if which.hidden:
        yield EVENTS.c.kind.not_in([kind.value for kind in which.hidden])
    if which.visible is not None:
        yield _may_read(which.visible, which.other_slots)
    else:
        yield or_(EVENTS.c.viewer.is_(None), EVENTS.c.viewer == which.reader)


def _may_read(visible: VisibleJobs, other_slots: bool) -> ColumnElement[bool]:
    """Say that an event is for somebody who does not see all."""
    names = (visible.owner, EVERYBODY)
    this = (NOUN_VIEWERS.c.kind == EVENTS.c.noun, NOUN_VIEWERS.c.name == EVENTS.c.noun_name)
    viewer = select(NOUN_VIEWERS.c.viewer).where(*this, NOUN_VIEWERS.c.viewer.in_(names)).exists()
    of_jobs = or_(EVENTS.c.job_id.is_(None), _is_visible(EVENTS.c.job_id, visible))
    others = EVENTS.c.kind == EventKind.SLOTS_CHANGED.value if other_slots else false()
    of_no_noun = and_(EVENTS.c.noun.is_(None), EVENTS.c.viewer.is_(None), or_(of_jobs, others))
    return or_(of_no_noun, viewer, EVENTS.c.viewer.in_(names))


def last_seq() -> Query:
    """Ask for the newest event's number; NULL if there is none."""
    return select(func.max(EVENTS.c.seq))


def metrics(job_id: JobId, names: Sequence[str], after_step: int, limit: int) -> Query:
    """Ask for points in order of (step, name)."""
    query = select(METRICS).where(METRICS.c.job_id == job_id, METRICS.c.step > after_step)
    if names:
        query = query.where(METRICS.c.name.in_(names))
    return query.order_by(METRICS.c.step, METRICS.c.name).limit(limit)


def usage(since: float, job_id: JobId | None, visible: VisibleJobs | None = None) -> Query:
    """Ask for the points from `since` on and, before them, each job's last earlier one."""
    earlier = USAGE.alias("earlier")
    newest_earlier = (
        select(earlier.c.ordinal)
        .where(earlier.c.job_id == JOBS.c.id, earlier.c.at < since)
        .order_by(earlier.c.at.desc(), earlier.c.ordinal.desc())
        .limit(1)
        .scalar_subquery()
    )
    before = select(USAGE).select_from(JOBS).join(USAGE, USAGE.c.ordinal == newest_earlier)
    inside = select(USAGE).where(USAGE.c.at >= since)
    if job_id is not None:
        before = before.where(JOBS.c.id == job_id)
        inside = inside.where(USAGE.c.job_id == job_id)
    if visible is not None:
        before = before.where(_is_visible(USAGE.c.job_id, visible))
        inside = inside.where(_is_visible(USAGE.c.job_id, visible))
    both = union_all(before, inside).subquery()
    return select(both).order_by(both.c.at, both.c.ordinal)


def slot_time(start: float, until: float, visible: VisibleJobs | None = None) -> Query:
    """Ask what each job used between two instants, those that used anything."""
    points = usage(start, None, visible).subquery()
    following = func.lead(points.c.at).over(partition_by=points.c.job_id, order_by=(points.c.at, points.c.ordinal))
    steps = select(points, following.label("next_at")).where(points.c.at < until).subquery()
    begins = case((steps.c.at < start, start), else_=steps.c.at)
    ends = func.coalesce(steps.c.next_at, until)
    held = func.sum(steps.c.num_slots * (ends - begins)).label("slot_seconds")
    used = select(steps.c.job_id, held).where(steps.c.num_slots > 0, ends > begins).group_by(steps.c.job_id).subquery()
    return select(used.c.job_id, JOBS.c.name, JOBS.c.owner, JOBS.c.queue, used.c.slot_seconds).join(
        JOBS, JOBS.c.id == used.c.job_id
    )
