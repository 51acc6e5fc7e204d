"""Which job a job runs again."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0010"
down_revision: Final[str | None] = "0009"


def upgrade() -> None:
    """Apply. Of jobs that are there already it stands in their events."""
    op.add_column("jobs", sa.Column("rerun_of", sa.String(64)))
