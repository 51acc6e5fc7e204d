"""What charts need of long series, computed for the points that are there."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0005"
down_revision: Final[str | None] = "0004"

_FAN: Final = 32


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "metric_rollups",
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=500), nullable=False),
        sa.Column("level", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("bucket", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("num_points", sa.Integer(), nullable=False),
        sa.Column("num_values", sa.Integer(), nullable=False),
        sa.Column("lowest", sa.Float(), nullable=True),
        sa.Column("highest", sa.Float(), nullable=True),
        sa.Column("total", sa.Float(), nullable=False),
        sa.Column("first_step", sa.Integer(), nullable=False),
        sa.Column("last_step", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_metric_rollups_job_id_jobs"),
        sa.PrimaryKeyConstraint("job_id", "name", "level", "bucket", name="pk_metric_rollups"),
    )
    _fill(
        "metrics",
        1,
        "step",
        "count(*), count(value), min(value), max(value), coalesce(sum(value), 0.0), min(step), max(step)",
    )
    for level in (2, 3):
        of_those_below = (
            "sum(num_points), sum(num_values), min(lowest), max(highest), coalesce(sum(total), 0.0), "
            "min(first_step), max(last_step)"
        )
        _fill("metric_rollups", level, "bucket", of_those_below, where=f"where level = {level - 1}")


def _fill(source: str, level: int, number: str, columns: str, where: str = "") -> None:
    """Compute one level from the points, or from the level below it. Step numbers are not negative."""
    op.execute(
        f"insert into metric_rollups (job_id, name, level, bucket, num_points, num_values, lowest, highest, total, "
        f"first_step, last_step, epoch, at) "
        f"select job_id, name, {level}, {number} / {_FAN}, {columns}, max(epoch), max(at) "
        f"from {source} {where} group by job_id, name, {number} / {_FAN}"
    )
