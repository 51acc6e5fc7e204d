"""Keeps the histograms of jobs, within transactions of the store. `core.tensor_histogram` says what is too many."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Final

from sqlalchemy import Connection, delete, func, select
from sqlalchemy.engine import RowMapping

from pliant.core.job import JobId
from pliant.core.tensor_histogram import HistogramSeries, JobHistograms, TensorHistogram, first_names, thin
from pliant.store.engine import upsert
from pliant.store.tables import HISTOGRAMS

_COLUMNS: Final = tuple(field.name for field in fields(TensorHistogram))
_STEP: Final = HISTOGRAMS.c.step


def write(connection: Connection, written: Sequence[JobHistograms]) -> None:
    """Keep histograms; one of a step that there is takes the place of that.

    Raises:
        NotFound: the job is not stored.
    """
    for one in written:
        there = {found.name: found.num_histograms for found in series(connection, one.job_id)}
        kept = first_names(there, one.histograms)
        upsert(connection, HISTOGRAMS, [_row(one.job_id, each) for each in kept])
        for name in {each.name for each in kept}:
            _thin(connection, one.job_id, name)


def _thin(connection: Connection, job_id: JobId, name: str) -> None:
    those = (HISTOGRAMS.c.job_id == job_id, HISTOGRAMS.c.name == name)
    steps = connection.execute(select(_STEP).where(*those).order_by(_STEP)).scalars().all()
    if gone := thin(steps):
        connection.execute(delete(HISTOGRAMS).where(*those, _STEP.in_(gone)))


def series(connection: Connection, job_id: JobId) -> tuple[HistogramSeries, ...]:
    """Return which names a job has histograms of, in their order."""
    number, first, last = func.count(), func.min(_STEP), func.max(_STEP)
    query = select(HISTOGRAMS.c.name, number, first, last).where(HISTOGRAMS.c.job_id == job_id)
    found = connection.execute(query.group_by(HISTOGRAMS.c.name)).all()
    return tuple(
        HistogramSeries(name=name, num_histograms=num, first_step=low, last_step=high)
        for name, num, low, high in sorted(found)
    )


def read(connection: Connection, job_id: JobId, name: str) -> tuple[TensorHistogram, ...]:
    """Return the histograms that a job has of a name, in the order of their steps."""
    query = select(HISTOGRAMS).where(HISTOGRAMS.c.job_id == job_id, HISTOGRAMS.c.name == name).order_by(_STEP)
    return tuple(map(_histogram_of, connection.execute(query).mappings()))


def _row(job_id: JobId, one: TensorHistogram) -> dict[str, object]:
    return {"job_id": job_id} | {name: getattr(one, name) for name in _COLUMNS} | {"counts": list(one.counts)}


def _histogram_of(row: RowMapping) -> TensorHistogram:
    return TensorHistogram(**{name: row[name] for name in _COLUMNS} | {"counts": tuple(row["counts"])})
