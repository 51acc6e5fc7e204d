"""Colours of jobs, which endpoint a job serves, sums of slots by hour, how many slots there were, events by time."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0013"
down_revision: Final[str | None] = "0012"

_HOUR_S: Final = 3600
_LAST: Final = 2.0**33
"""No clock has been there: what is written beside a later instant is no time."""
_BATCH: Final = 500


def upgrade() -> None:
    """Apply. A job that is there gets a plain colour by its number, those of a search or an endpoint the same one."""
    op.add_column("jobs", sa.Column("endpoint", sa.String(200)))
    op.add_column("jobs", sa.Column("colour", sa.Integer(), nullable=False, server_default="0"))
    jobs = sa.table(
        "jobs",
        sa.column("spec", sa.JSON),
        *map(sa.column, ("ordinal", "search", "endpoint", "colour")),
    )
    endpoint = jobs.c.spec["endpoint"]["name"].as_string()
    op.execute(jobs.update().where(endpoint.is_not(None)).values(endpoint=endpoint))
    op.create_index("ix_jobs_endpoint_ordinal", "jobs", ["endpoint", "ordinal"])
    other = jobs.alias("other")
    for same in ("search", "endpoint"):
        first = sa.select(sa.func.min(other.c.ordinal)).where(other.c[same] == jobs.c[same]).scalar_subquery()
        op.execute(jobs.update().where(jobs.c[same].is_not(None)).values(colour=first % 8))
    alone = jobs.c.search.is_(None) & jobs.c.endpoint.is_(None)
    op.execute(jobs.update().where(alone).values(colour=jobs.c.ordinal % 8))
    op.create_table(
        "capacity_spans",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("from_at", sa.Float(), nullable=False),
        sa.Column("until_at", sa.Float(), nullable=False),
        sa.Column("num_slots", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_capacity_spans"),
    )
    op.create_index("ix_capacity_spans_from_at", "capacity_spans", ["from_at"])
    op.create_table(
        "slot_hours",
        sa.Column("hour", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("job_id", sa.String(64), nullable=False),
        sa.Column("delta", sa.Integer(), nullable=False),
        sa.Column("area", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_slot_hours_job_id_jobs"),
        sa.PrimaryKeyConstraint("hour", "job_id", name="pk_slot_hours"),
    )
    op.create_index("ix_slot_hours_job_id", "slot_hours", ["job_id"])
    op.create_index("ix_events_at_seq", "events", ["at", "seq"])
    _fill_hours()


def _fill_hours() -> None:
    connection = op.get_bind()
    hours = sa.table("slot_hours", *map(sa.column, ("hour", "job_id", "delta", "area")))
    rows = list(_hours(connection))
    for start in range(0, len(rows), _BATCH):
        connection.execute(hours.insert(), rows[start : start + _BATCH])


def _hours(connection: sa.Connection) -> Iterator[dict[str, Any]]:
    """Yield the sums of all steps that there are."""
    usage = sa.table("usage", *map(sa.column, ("job_id", "at", "ordinal", "num_slots")))
    held: dict[str, int] = {}
    sums: defaultdict[tuple[int, str], list[float]] = defaultdict(lambda: [0, 0.0])
    query = sa.select(usage.c.job_id, usage.c.at, usage.c.num_slots).where(usage.c.at.between(0.0, _LAST))
    for job_id, at, num_slots in connection.execute(query.order_by(usage.c.at, usage.c.ordinal)):
        delta, held[job_id] = num_slots - held.get(job_id, 0), num_slots
        hour = int(at // _HOUR_S)
        sums[hour, job_id][0] += delta
        sums[hour, job_id][1] += delta * ((hour + 1) * _HOUR_S - at)
    for (hour, job_id), (delta_sum, area) in sums.items():
        yield {"hour": hour, "job_id": job_id, "delta": int(delta_sum), "area": area}
