"""The hyperparameters of jobs."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0007"
down_revision: Final[str | None] = "0006"


def upgrade() -> None:
    """Apply."""
    op.add_column("jobs", sa.Column("params", sa.JSON(none_as_null=True)))
