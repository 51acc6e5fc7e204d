"""Which of a task's messages became events already, so that none does twice."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0006"
down_revision: Final[str | None] = "0005"


def upgrade() -> None:
    """Apply. Of tasks that are there already nothing is known to have been told."""
    op.add_column("tasks", sa.Column("told", sa.Integer(), nullable=False, server_default="0"))
