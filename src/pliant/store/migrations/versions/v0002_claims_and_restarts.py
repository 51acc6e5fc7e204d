"""What a job's results are worth, the digest of its final state, and the restarts of fixed jobs."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0002"
down_revision: Final[str | None] = "0001"


def upgrade() -> None:
    """Apply. Jobs that are there already get no claim, no digest and no restarts."""
    op.add_column("jobs", sa.Column("claim", sa.String(length=20), nullable=True))
    op.add_column("jobs", sa.Column("claim_step", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("jobs", sa.Column("claim_reason", sa.Text(), nullable=False, server_default=sa.text("''")))
    op.add_column("jobs", sa.Column("fingerprint", sa.Text(), nullable=False, server_default=sa.text("''")))
    op.add_column("jobs", sa.Column("digest", sa.String(length=64), nullable=False, server_default=sa.text("''")))
    op.add_column("jobs", sa.Column("num_restarts", sa.Integer(), nullable=False, server_default="0"))
