"""Which search a job is a trial of."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0012"
down_revision: Final[str | None] = "0011"


def upgrade() -> None:
    """Apply. What was asked for of a job that is there says which search it is of."""
    op.add_column("jobs", sa.Column("search", sa.String(200)))
    jobs = sa.table("jobs", sa.column("spec", sa.JSON), sa.column("search", sa.String))
    search = jobs.c.spec["trial"]["search"].as_string()
    op.execute(jobs.update().where(search.is_not(None)).values(search=search))
    op.create_index("ix_jobs_search_ordinal", "jobs", ["search", "ordinal"])
