"""What lists of jobs are filtered, searched and sorted by."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0014"
down_revision: Final[str | None] = "0013"

_AT_ONCE: Final = 1000


def upgrade() -> None:
    """Apply. What was asked for of a job that is there says of which kind it is."""
    op.add_column("jobs", sa.Column("kind", sa.String(20), nullable=False, server_default="training"))
    jobs = sa.table("jobs", sa.column("spec", sa.JSON), sa.column("search", sa.String), sa.column("kind", sa.String))
    op.execute(jobs.update().where(jobs.c.spec["fixed"].as_boolean()).values(kind="fixed"))
    op.execute(jobs.update().where(jobs.c.search.is_not(None)).values(kind="trial"))
    serves = jobs.c.spec["endpoint"]["name"].as_string().is_not(None)
    op.execute(jobs.update().where(serves).values(kind="endpoint"))
    for column in ("kind", "name", "priority", "num_slots", "ended_at"):
        op.create_index(f"ix_jobs_{column}_ordinal", "jobs", [column, "ordinal"])
    op.create_table(
        "job_texts",
        sa.Column("job_id", sa.String(64), sa.ForeignKey("jobs.id", name="fk_job_texts_job_id_jobs"), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("job_id", name="pk_job_texts"),
    )
    _fill_texts()


def _fill_texts() -> None:
    """Write the texts of the jobs that are there, as `pliant.core.job_filter.text_of` made them at this revision."""
    connection = op.get_bind()
    jobs = sa.table(
        "jobs", sa.column("id"), sa.column("name"), sa.column("owner"), sa.column("tags", sa.JSON(none_as_null=True))
    )
    texts = sa.table("job_texts", sa.column("job_id"), sa.column("text"))
    last = ""
    while found := connection.execute(
        sa.select(jobs.c.id, jobs.c.name, jobs.c.owner, jobs.c.tags)
        .where(jobs.c.id > last)
        .order_by(jobs.c.id)
        .limit(_AT_ONCE)
    ).all():
        made = [
            {"job_id": job_id, "text": "\n".join((job_id, name, owner, *_words(tags))).casefold()}
            for job_id, name, owner, tags in found
        ]
        connection.execute(texts.insert(), made)
        last = found[-1].id


def _words(tags: dict[str, str] | None) -> list[str]:
    return [f"{name}={value}" if value else name for name, value in (tags or {}).items()]
