"""The first tables."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0001"
down_revision: Final[str | None] = None


def upgrade() -> None:
    """Apply."""
    _counters()
    _events()
    _jobs()
    _generations()
    _metrics()
    _tasks()
    _usage()


def _counters() -> None:
    op.create_table(
        "counters",
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("value", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_counters"),
    )


def _events() -> None:
    op.create_table(
        "events",
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("job_id", sa.String(length=64), nullable=True),
        sa.Column("task_id", sa.String(length=64), nullable=True),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_events"),
    )
    op.create_index("ix_events_job_id_kind_seq", "events", ["job_id", "kind", "seq"])
    op.create_index("ix_events_job_id_seq", "events", ["job_id", "seq"])
    op.create_index("ix_events_kind_seq", "events", ["kind", "seq"])


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=500), nullable=False),
        sa.Column("queue", sa.String(length=100), nullable=False),
        sa.Column("owner", sa.String(length=200), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("min_tasks", sa.Integer(), nullable=False),
        sa.Column("max_tasks", sa.Integer(), nullable=False),
        sa.Column("submitted_at", sa.Float(), nullable=False),
        sa.Column("started_at", sa.Float(), nullable=True),
        sa.Column("ended_at", sa.Float(), nullable=True),
        sa.Column("num_slots", sa.Integer(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("num_redone_steps", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("progress", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
        sa.UniqueConstraint("ordinal", name="uq_jobs_ordinal"),
    )
    op.create_index("ix_jobs_state_ordinal", "jobs", ["state", "ordinal"])


def _generations() -> None:
    op.create_table(
        "generations",
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("members", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("announced_at", sa.Float(), nullable=False),
        sa.Column("switched_at", sa.Float(), nullable=True),
        sa.Column("step", sa.Integer(), nullable=True),
        sa.Column("pause_s", sa.Float(), nullable=True),
        sa.Column("redone_steps", sa.Integer(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_generations_job_id_jobs"),
        sa.PrimaryKeyConstraint("job_id", "number", name="pk_generations"),
    )


def _metrics() -> None:
    op.create_table(
        "metrics",
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("step", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.String(length=500), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("value", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_metrics_job_id_jobs"),
        sa.PrimaryKeyConstraint("job_id", "step", "name", name="pk_metrics"),
    )
    op.create_index("ix_metrics_job_id_name_step", "metrics", ["job_id", "name", "step"])


def _tasks() -> None:
    op.create_table(
        "tasks",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("node_id", sa.String(length=200), nullable=False),
        sa.Column("slots", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("started_at", sa.Float(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=True),
        sa.Column("ended_at", sa.Float(), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_tasks_job_id_jobs"),
        sa.PrimaryKeyConstraint("id", name="pk_tasks"),
        sa.UniqueConstraint("ordinal", name="uq_tasks_ordinal"),
    )
    op.create_index("ix_tasks_job_id_ordinal", "tasks", ["job_id", "ordinal"])
    op.create_index("ix_tasks_state_ordinal", "tasks", ["state", "ordinal"])


def _usage() -> None:
    op.create_table(
        "usage",
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("num_slots", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_usage_job_id_jobs"),
        sa.PrimaryKeyConstraint("ordinal", name="pk_usage"),
    )
    op.create_index("ix_usage_at_ordinal", "usage", ["at", "ordinal"])
    op.create_index("ix_usage_job_id_at_ordinal", "usage", ["job_id", "at", "ordinal"])
