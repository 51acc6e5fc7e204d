"""Keeps and reads who held how many slots when: steps, and sums of them over hours, so that months are read quickly.

Of an hour and a job two numbers are kept (see `pliant.policy.slot_chart`): by how much what it held has changed, and
how many slot-seconds these changes came to by the end of the hour. Both only ever add up, so a step is added to its
hour when it is written, and steps of jobs that are deleted go with the job.
"""

from collections.abc import Collection, Sequence
from math import ceil
from typing import Any, Final

from sqlalchemy import Connection, Select, func, select

from pliant.core.event import Usage
from pliant.core.job import JobId
from pliant.core.slot_history import HOUR_S, CapacitySpan, HourSum, JobLayer, SlotRecords, Step
from pliant.store.engine import upsert
from pliant.store.tables import CAPACITY, EVENTS, JOBS, SLOT_HOURS, USAGE

_LAYER: Final = (
    JOBS.c.id.label("job_id"),
    JOBS.c.name,
    JOBS.c.owner,
    JOBS.c.queue,
    JOBS.c.search,
    JOBS.c.endpoint,
    JOBS.c.colour,
    JOBS.c.submitted_at,
    JOBS.c.started_at,
)
_AT_ONCE: Final = 500
"""Ids asked for in one statement; databases bound the number of parameters."""
_MAX_HOUR: Final = 2**31 - 1
_BY_TIME: Final = (USAGE.c.at.desc(), USAGE.c.ordinal.desc())


def add_to_hours(connection: Connection, usage: Sequence[Usage]) -> None:
    """Add steps, not written yet, to the sums of their hours."""
    held: dict[JobId, int] = {}
    for point in usage:
        if not 0 <= point.at < _MAX_HOUR * HOUR_S:
            continue
        if point.job_id not in held:
            newest = select(USAGE.c.num_slots).where(USAGE.c.job_id == point.job_id).order_by(*_BY_TIME).limit(1)
            held[point.job_id] = connection.execute(newest).scalar() or 0
        delta, held[point.job_id] = point.num_slots - held[point.job_id], point.num_slots
        hour = int(point.at // HOUR_S)
        key = {"hour": hour, "job_id": point.job_id}
        there = select(SLOT_HOURS.c.delta, SLOT_HOURS.c.area).where(
            SLOT_HOURS.c.hour == hour, SLOT_HOURS.c.job_id == point.job_id
        )
        before = connection.execute(there).first() or (0, 0.0)
        area = before[1] + delta * ((hour + 1) * HOUR_S - point.at)
        upsert(connection, SLOT_HOURS, [{**key, "delta": before[0] + delta, "area": area}])


def read(connection: Connection, begin: float, end: float, max_steps: int, by_hour: bool) -> SlotRecords | None:
    """Return what was recorded of a window; None if that is more than `max_steps` steps."""
    steps: Sequence[Step] = ()
    hours: Sequence[HourSum] = ()
    if by_hour:
        hours = _hours(connection, int(begin // HOUR_S), ceil(end / HOUR_S))
    else:
        found = _steps(connection, begin, end, max_steps + 1)
        if len(found) > max_steps:
            return None
        steps = found
    held = _held(connection, begin)
    named = held.keys() | {step[1] for step in steps} | {hour[1] for hour in hours}
    return SlotRecords(
        held=held,
        steps=steps,
        hours=hours,
        spans=_spans(connection, begin, end),
        layers=layers(connection, named),
        last_seq=connection.execute(select(func.max(EVENTS.c.seq))).scalar_one() or 0,
    )


def layers(connection: Connection, job_ids: Collection[JobId]) -> dict[JobId, JobLayer]:
    """Return what charts have to know of jobs, those that are there."""
    ids, found = sorted(job_ids), {}
    names = [column.name for column in _LAYER]
    for start in range(0, len(ids), _AT_ONCE):
        query = select(*_LAYER).where(JOBS.c.id.in_(ids[start : start + _AT_ONCE]))
        for row in connection.execute(query):
            found[JobId(row[0])] = JobLayer(**dict(zip(names, row, strict=True)))
    return found


def _held(connection: Connection, begin: float) -> dict[JobId, int]:
    """Return what jobs held just before an instant: of each job that had begun the last step before it."""
    newest = (
        select(USAGE.c.ordinal)
        .where(USAGE.c.job_id == JOBS.c.id, USAGE.c.at < begin)
        .order_by(*_BY_TIME)
        .limit(1)
        .correlate(JOBS)
        .scalar_subquery()
    )
    last = USAGE.alias("last")
    query = (
        select(last.c.job_id, last.c.num_slots)
        .select_from(JOBS)
        .join(last, last.c.ordinal == newest)
        .where(JOBS.c.started_at < begin, last.c.num_slots > 0)
    )
    return {JobId(job_id): num_slots for job_id, num_slots in connection.execute(query)}


def _steps(connection: Connection, begin: float, end: float, limit: int) -> list[Step]:
    query = (
        select(USAGE.c.at, USAGE.c.job_id, USAGE.c.num_slots)
        .where(USAGE.c.at >= begin, USAGE.c.at < end)
        .order_by(USAGE.c.at, USAGE.c.ordinal)
        .limit(limit)
    )
    return [(at, JobId(job_id), num_slots) for at, job_id, num_slots in connection.execute(query)]


def _hours(connection: Connection, first: int, end: int) -> list[HourSum]:
    of = SLOT_HOURS.c
    query = select(of.hour, of.job_id, of.delta, of.area).where(of.hour >= first, of.hour < end).order_by(of.hour)
    return [(hour, JobId(job_id), delta, area) for hour, job_id, delta, area in connection.execute(query)]


def _spans(connection: Connection, begin: float, end: float) -> tuple[CapacitySpan, ...]:
    last_before = select(func.max(CAPACITY.c.number)).where(CAPACITY.c.from_at <= begin).scalar_subquery()
    query: Select[Any] = (
        select(CAPACITY)
        .where(CAPACITY.c.number >= func.coalesce(last_before, 0), CAPACITY.c.from_at < end)
        .order_by(CAPACITY.c.number)
    )
    found = connection.execute(query).mappings().all()
    if not found:
        found = connection.execute(select(CAPACITY).order_by(CAPACITY.c.number).limit(1)).mappings().all()
    return tuple(CapacitySpan(**row) for row in found)
