"""Which jobs a job waits for, and which array it is of."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0008"
down_revision: Final[str | None] = "0007"


def upgrade() -> None:
    """Apply. Jobs that are there already wait for none and are of no array."""
    for name in ("after", "after_any"):
        op.add_column("jobs", sa.Column(name, sa.JSON()))
    op.add_column("jobs", sa.Column("array_id", sa.String(64)))
    op.create_index("ix_jobs_array_id_ordinal", "jobs", ["array_id", "ordinal"])
