"""An index for the jobs of one owner, newest first."""

from typing import Final

from alembic import op

revision: Final = "0004"
down_revision: Final[str | None] = "0003"


def upgrade() -> None:
    """Apply."""
    op.create_index("ix_jobs_owner_ordinal", "jobs", ["owner", "ordinal"])
