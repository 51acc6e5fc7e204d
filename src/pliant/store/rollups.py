"""Keeps what a chart needs of a long series: counts, extremes and sums of its points over spans of steps, in levels.

A bucket of level 1 spans 32 steps, each level above 32 buckets of the one below. A bucket is computed anew from what
lies under it whenever a point in it is written. Adding the new point to it would be cheaper, but a point can replace
another one, and then it would be counted twice.

An example: 40,000 steps shall be shown in 500 buckets. The points themselves are 40,000 rows, the buckets of level 1
are 1,250: that is less than four rows for each bucket that is shown, so level 1 is read, and each three neighbours are
merged into one: 417 buckets. Level 2 would have been 40 rows, too coarse for what was asked.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Executable, Select, and_, bindparam, func, literal, select

from pliant.core.chart import Bucket, SeriesEnd
from pliant.core.job import JobId, Metric
from pliant.store.engine import upsert_from
from pliant.store.tables import METRICS, ROLLUPS

FAN: Final = 32
"""Buckets (or steps) under one bucket."""
NUM_LEVELS: Final = 3
_MAX_READ: Final = 4
"""Buckets read for one that is shown, at most; fewer would be coarser than what was asked for."""


def refresh(connection: Connection, points: Sequence[Metric]) -> None:
    """Compute the buckets anew that these points, written already, are in."""
    touched = {(point.job_id, point.name, point.step) for point in points}
    for level in range(1, NUM_LEVELS + 1) if touched else ():
        touched = {(job_id, name, number // FAN) for job_id, name, number in touched}
        rows = [
            {"of_job": job_id, "of_name": name, "of_bucket": bucket, "begin": bucket * FAN, "end": (bucket + 1) * FAN}
            for job_id, name, bucket in sorted(touched)
        ]
        connection.execute(_refresh(connection.dialect.name, level), rows)


@cache
def _refresh(dialect: str, level: int) -> Executable:
    """Return the statement that computes one bucket; it takes longer to make than to run."""
    of, number, found = METRICS.c, METRICS.c.step, _points()
    if level > 1:
        of, number, found = ROLLUPS.c, ROLLUPS.c.bucket, _buckets(level - 1)
    names = found.selected_columns.keys()
    job_id, name = bindparam("of_job", type_=of.job_id.type), bindparam("of_name", type_=of.name.type)
    begin, end = bindparam("begin", type_=number.type), bindparam("end", type_=number.type)
    found = found.where(of.job_id == job_id, of.name == name, number >= begin, number < end)
    found = found.add_columns(job_id, name, literal(level), bindparam("of_bucket", type_=number.type))
    return upsert_from(dialect, ROLLUPS, (*names, "job_id", "name", "level", "bucket"), found)


def _points() -> Select[Any]:
    value = METRICS.c.value
    return select(
        func.count().label("num_points"),
        func.count(value).label("num_values"),
        func.min(value).label("lowest"),
        func.max(value).label("highest"),
        func.coalesce(func.sum(value), 0.0).label("total"),
        func.min(METRICS.c.step).label("first_step"),
        func.max(METRICS.c.step).label("last_step"),
        func.max(METRICS.c.epoch).label("epoch"),
        func.max(METRICS.c.at).label("at"),
    )


def _buckets(level: int) -> Select[Any]:
    of = ROLLUPS.c
    return select(
        func.sum(of.num_points).label("num_points"),
        func.sum(of.num_values).label("num_values"),
        func.min(of.lowest).label("lowest"),
        func.max(of.highest).label("highest"),
        func.coalesce(func.sum(of.total), 0.0).label("total"),
        func.min(of.first_step).label("first_step"),
        func.max(of.last_step).label("last_step"),
        func.max(of.epoch).label("epoch"),
        func.max(of.at).label("at"),
    ).where(of.level == level)


def names(connection: Connection, job_id: JobId) -> Sequence[str]:
    """Return the series that a job has, in order."""
    top = ROLLUPS.c.level == NUM_LEVELS
    query = select(ROLLUPS.c.name).where(ROLLUPS.c.job_id == job_id, top).distinct().order_by(ROLLUPS.c.name)
    return sorted(connection.execute(query).scalars())


def extent(connection: Connection, job_id: JobId, name: str) -> tuple[int, int] | None:
    """Return the first and the last step of a series; None if it has no point."""
    top = (ROLLUPS.c.job_id == job_id, ROLLUPS.c.name == name, ROLLUPS.c.level == NUM_LEVELS)
    query = select(func.min(ROLLUPS.c.first_step), func.max(ROLLUPS.c.last_step)).where(*top)
    first, last = connection.execute(query).one()
    return None if first is None else (first, last)


def ends(
    connection: Connection, job_id: JobId, name: ColumnElement[str], after: str, limit: int
) -> tuple[SeriesEnd, ...]:
    """Return which series a job has after a name, and how each ends.

    Args:
        connection: to the database.
        job_id: the job.
        name: the column of the names, in the order in which they are compared.
        after: the last name of the page before.
        limit: so many at most.
    """
    of = ROLLUPS.c
    found = (
        select(
            of.name,
            func.sum(of.num_points).label("num_points"),
            func.min(of.first_step).label("first_step"),
            func.max(of.last_step).label("last_step"),
            func.max(of.at).label("at"),
        )
        .where(of.job_id == job_id, of.level == NUM_LEVELS, name > after)
        .group_by(of.name)
        .order_by(name)
        .limit(limit)
        .subquery()
    )
    newest = and_(METRICS.c.job_id == job_id, METRICS.c.name == found.c.name, METRICS.c.step == found.c.last_step)
    query = select(found, METRICS.c.value).join(METRICS, newest)
    rows = [SeriesEnd(**row) for row in connection.execute(query).mappings()]
    return tuple(sorted(rows, key=lambda row: row.name))


def read(
    connection: Connection, job_id: JobId, name: str, first_step: int, last_step: int, max_buckets: int
) -> tuple[Bucket, ...]:
    """Return these steps in `max_buckets` buckets at most, which the database makes of the finest level that suffices.

    Law: it is what `pliant.core.chart.merge` makes of that level. Buckets at the ends reach beyond the steps asked for
    where a level above the points is read.
    """
    level = 0
    while level < NUM_LEVELS and (last_step - first_step) // FAN**level >= _MAX_READ * max_buckets:
        level += 1
    table = ROLLUPS if level else METRICS
    number, begins = (ROLLUPS.c.bucket, ROLLUPS.c.first_step) if level else (METRICS.c.step, METRICS.c.step)
    width = FAN**level
    where = [table.c.job_id == job_id, table.c.name == name, number.between(first_step // width, last_step // width)]
    if level:
        where.append(ROLLUPS.c.level == level)
    found = select(func.count(), func.min(begins), func.max(begins)).where(*where)
    num_found, first, last = connection.execute(found).one()
    span = -(-(last - first + 1) // max_buckets) if num_found > max_buckets else 1
    together = (begins - (first or 0)) // span
    query = (_buckets(level) if level else _points()).where(*where).group_by(together).order_by(func.min(begins))
    rows = connection.execute(query)
    fields = tuple(rows.keys())
    return tuple(Bucket(**dict(zip(fields, row, strict=True))) for row in rows.all())
