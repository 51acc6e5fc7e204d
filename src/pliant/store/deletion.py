"""Removes all that the store holds of jobs, and writes down that they were there; within a transaction of the store."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, Table, delete, or_, select

from pliant.core.errors import NotFound
from pliant.core.job import DeletedJob
from pliant.core.registry import OF_JOBS
from pliant.store import rows
from pliant.store.engine import upsert
from pliant.store.noun_events import forget_shares
from pliant.store.tables import (
    DELETED,
    EVENTS,
    GENERATIONS,
    HISTOGRAMS,
    JOB_TEXTS,
    JOBS,
    METRICS,
    NOUNS,
    ROLLUPS,
    SLOT_HOURS,
    TAGS,
    TASKS,
    USAGE,
)

_PARTS: Final[tuple[Table, ...]] = (
    TAGS,
    JOB_TEXTS,
    TASKS,
    GENERATIONS,
    METRICS,
    ROLLUPS,
    HISTOGRAMS,
    USAGE,
    SLOT_HOURS,
    EVENTS,
)
"""What belongs to a job beside its row."""
_AT_ONCE: Final = 100
"""Ids in one statement; databases bound the number of parameters, and the depth of conditions."""


def delete_jobs(connection: Connection, deleted: Sequence[DeletedJob]) -> None:
    """Remove jobs; of those that are removed already, change what is left.

    Raises:
        NotFound: one was never there.
    """
    for start in range(0, len(deleted), _AT_ONCE):
        some = deleted[start : start + _AT_ONCE]
        ids = [one.id for one in some]
        there = _ordinals(connection, JOBS, ids)
        ordinals = _ordinals(connection, DELETED, ids) | there
        if missing := [job_id for job_id in ids if job_id not in ordinals]:
            raise NotFound(f"the store holds no job named {', '.join(missing)}; nothing was written")
        if there:
            _delete(connection, list(there))
            forget_shares(connection, list(there), max(one.deleted_at for one in some))
        upsert(connection, DELETED, [rows.deleted_row(one) | {"ordinal": ordinals[one.id]} for one in some])


def _delete(connection: Connection, ids: Sequence[str]) -> None:
    for table in _PARTS:
        connection.execute(delete(table).where(table.c.job_id.in_(ids)))
    named = or_(NOUNS.c.name.in_(ids), *(NOUNS.c.name.like(f"{job_id}.%") for job_id in ids))
    connection.execute(delete(NOUNS).where(NOUNS.c.kind.in_(OF_JOBS), named))
    connection.execute(delete(JOBS).where(JOBS.c.id.in_(ids)))


def _ordinals(connection: Connection, table: Table, ids: Sequence[str]) -> dict[str, int]:
    found = connection.execute(select(table.c.id, table.c.ordinal).where(table.c.id.in_(ids)))
    return {str(job_id): int(ordinal) for job_id, ordinal in found}
