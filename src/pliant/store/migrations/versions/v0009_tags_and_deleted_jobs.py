"""Tags of jobs, an index to find them by queue, and what is left of jobs that were deleted."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0009"
down_revision: Final[str | None] = "0008"


def upgrade() -> None:
    """Apply. Jobs that are there already have no tags."""
    op.add_column("jobs", sa.Column("tags", sa.JSON()))
    op.create_index("ix_jobs_queue_ordinal", "jobs", ["queue", "ordinal"])
    op.create_table(
        "job_tags",
        sa.Column("name", sa.String(60), nullable=False),
        sa.Column("value", sa.String(200), nullable=False),
        sa.Column("job_id", sa.String(64), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_job_tags_job_id_jobs"),
        sa.PrimaryKeyConstraint("name", "value", "job_id", name="pk_job_tags"),
    )
    op.create_index("ix_job_tags_job_id", "job_tags", ["job_id"])
    op.create_table(
        "deleted_jobs",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("owner", sa.String(200), nullable=False),
        sa.Column("deleted_at", sa.Float(), nullable=False),
        sa.Column("deleted_by", sa.String(200), nullable=False),
        sa.Column("has_files", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_deleted_jobs"),
        sa.UniqueConstraint("ordinal", name="uq_deleted_jobs_ordinal"),
    )
    op.create_index("ix_deleted_jobs_has_files_ordinal", "deleted_jobs", ["has_files", "ordinal"])
