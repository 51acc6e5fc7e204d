"""Searches with their trials and decisions, and what holds a job that could take slots."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0011"
down_revision: Final[str | None] = "0010"


def upgrade() -> None:
    """Apply. Nothing holds the jobs that are there already."""
    op.add_column("jobs", sa.Column("hold", sa.Text(), nullable=False, server_default=sa.text("''")))
    _searches()
    _trials()
    _decisions()


def _searches() -> None:
    op.create_table(
        "searches",
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("owner", sa.String(200), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("sampler_state", sa.Text(), nullable=False, server_default=sa.text("''")),
        sa.PrimaryKeyConstraint("name", name="pk_searches"),
    )
    op.create_index("ix_searches_owner_name", "searches", ["owner", "name"])


def _trials() -> None:
    op.create_table(
        "trials",
        sa.Column("search", sa.String(200), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("job_id", sa.String(64), nullable=False),
        sa.Column("result", sa.Float()),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["search"], ["searches.name"], name="fk_trials_search_searches"),
        sa.PrimaryKeyConstraint("search", "number", name="pk_trials"),
    )
    op.create_index("ix_trials_job_id", "trials", ["job_id"])
    op.create_index("ix_trials_search_state_number", "trials", ["search", "state", "number"])
    op.create_index("ix_trials_search_state_result", "trials", ["search", "state", "result"])


def _decisions() -> None:
    op.create_table(
        "search_decisions",
        sa.Column("search", sa.String(200), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("trial", sa.Integer()),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["search"], ["searches.name"], name="fk_search_decisions_search_searches"),
        sa.PrimaryKeyConstraint("search", "position", name="pk_search_decisions"),
    )
