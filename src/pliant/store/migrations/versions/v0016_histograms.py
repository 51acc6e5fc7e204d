"""Histograms of weights and gradients."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0016"
down_revision: Final[str | None] = "0015"


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "histograms",
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=500), nullable=False),
        sa.Column("step", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("lowest", sa.Float(), nullable=False),
        sa.Column("highest", sa.Float(), nullable=False),
        sa.Column("counts", sa.JSON(), nullable=False),
        sa.Column("num_nan", sa.BigInteger(), nullable=False),
        sa.Column("num_infinite", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_histograms_job_id_jobs"),
        sa.PrimaryKeyConstraint("job_id", "name", "step", name="pk_histograms"),
    )
