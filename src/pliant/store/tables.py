"""The tables and their indexes. Knows no queries and no dialect.

Every change here needs a migration; a test compares the two. `ordinal` is the order in which rows were first written: a
clock can stand still or go back, it cannot. JSON columns never hold a bare NaN, which not every database takes.
"""

from typing import Final

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    text,
)

from pliant.core.registry import MAX_NAME
from pliant.core.tag import MAX_TAG_NAME, MAX_TAG_VALUE

METADATA: Final = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

JOBS: Final = Table(
    "jobs",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("ordinal", Integer, nullable=False, unique=True),
    Column("name", String(500), nullable=False),
    Column("queue", String(100), nullable=False),
    Column("owner", String(200), nullable=False),
    Column("state", String(20), nullable=False),
    Column("priority", Integer, nullable=False),
    Column("min_tasks", Integer, nullable=False),
    Column("max_tasks", Integer, nullable=False),
    Column("submitted_at", Float, nullable=False),
    Column("started_at", Float),
    Column("ended_at", Float),
    Column("num_slots", Integer, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("num_redone_steps", Integer, nullable=False),
    Column("claim", String(20)),
    Column("claim_step", Integer, nullable=False, server_default="0"),
    Column("claim_reason", Text, nullable=False, server_default=text("''")),
    Column("fingerprint", Text, nullable=False, server_default=text("''")),
    Column("digest", String(64), nullable=False, server_default=text("''")),
    Column("num_restarts", Integer, nullable=False, server_default="0"),
    Column("revision", Integer, nullable=False),
    Column("spec", JSON, nullable=False),
    Column("params", JSON(none_as_null=True)),
    Column("rerun_of", String(64)),
    Column("tags", JSON(none_as_null=True)),
    Column("progress", JSON(none_as_null=True)),
    Column("after", JSON(none_as_null=True)),
    Column("after_any", JSON(none_as_null=True)),
    Column("array_id", String(64)),
    Column("hold", Text, nullable=False, server_default=text("''")),
    Column("search", String(MAX_NAME)),
    Column("endpoint", String(MAX_NAME)),
    Column("colour", Integer, nullable=False, server_default="0"),
    Column("kind", String(20), nullable=False, server_default="training"),
    Index(None, "state", "ordinal"),
    Index(None, "owner", "ordinal"),
    Index(None, "queue", "ordinal"),
    Index(None, "array_id", "ordinal"),
    Index(None, "search", "ordinal"),
    Index(None, "endpoint", "ordinal"),
    Index(None, "kind", "ordinal"),
    Index(None, "name", "ordinal"),
    Index(None, "priority", "ordinal"),
    Index(None, "num_slots", "ordinal"),
    Index(None, "ended_at", "ordinal"),
)

JOB_TEXTS: Final = Table(
    "job_texts",
    METADATA,
    Column("job_id", String(64), ForeignKey("jobs.id"), primary_key=True),
    Column("text", Text, nullable=False),
)
"""To find jobs by a part of what they are called: a narrow table, since all of it is read."""

TAGS: Final = Table(
    "job_tags",
    METADATA,
    Column("name", String(MAX_TAG_NAME), primary_key=True),
    Column("value", String(MAX_TAG_VALUE), primary_key=True),
    Column("job_id", String(64), ForeignKey("jobs.id"), primary_key=True),
    Index(None, "job_id"),
)
"""To find jobs by their tags, which stand in `jobs` as well."""

DELETED: Final = Table(
    "deleted_jobs",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("ordinal", Integer, nullable=False, unique=True),
    Column("owner", String(200), nullable=False),
    Column("deleted_at", Float, nullable=False),
    Column("deleted_by", String(200), nullable=False),
    Column("has_files", Boolean, nullable=False),
    Index(None, "has_files", "ordinal"),
)

TASKS: Final = Table(
    "tasks",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("ordinal", Integer, nullable=False, unique=True),
    Column("job_id", String(64), ForeignKey("jobs.id"), nullable=False),
    Column("node_id", String(200), nullable=False),
    Column("slots", JSON, nullable=False),
    Column("state", String(20), nullable=False),
    Column("started_at", Float, nullable=False),
    Column("pid", Integer),
    Column("ended_at", Float),
    Column("exit_code", Integer),
    Column("reason", Text, nullable=False),
    Column("told", Integer, nullable=False, server_default="0"),
    Index(None, "job_id", "ordinal"),
    Index(None, "state", "ordinal"),
)

GENERATIONS: Final = Table(
    "generations",
    METADATA,
    Column("job_id", String(64), ForeignKey("jobs.id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("members", JSON, nullable=False),
    Column("state", String(20), nullable=False),
    Column("announced_at", Float, nullable=False),
    Column("switched_at", Float),
    Column("step", Integer),
    Column("pause_s", Float),
    Column("redone_steps", Integer, nullable=False),
    Column("cause", Text, nullable=False),
)

EVENTS: Final = Table(
    "events",
    METADATA,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("at", Float, nullable=False),
    Column("kind", String(40), nullable=False),
    Column("message", Text, nullable=False),
    Column("job_id", String(64)),
    Column("task_id", String(64)),
    Column("data", JSON, nullable=False),
    Column("noun", String(40), doc="The kind of the noun whose viewers read it."),
    Column("noun_name", String(MAX_NAME)),
    Column("viewer", String(MAX_NAME), doc="The only user who reads it; `*`: all who do not see everything."),
    Index(None, "job_id", "seq"),
    Index(None, "job_id", "kind", "seq"),
    Index(None, "kind", "seq"),
    Index(None, "at", "seq"),
    Index(None, "noun", "noun_name"),
    Index(None, "viewer", "kind"),
)

NOUN_VIEWERS: Final = Table(
    "noun_viewers",
    METADATA,
    Column("kind", String(40), primary_key=True),
    Column("name", String(MAX_NAME), primary_key=True),
    Column("viewer", String(MAX_NAME), primary_key=True),
)
"""Who sees a noun, as it says itself: its owner, and with whom it is shared; of nouns whose changes are events."""

METRICS: Final = Table(
    "metrics",
    METADATA,
    Column("job_id", String(64), ForeignKey("jobs.id"), primary_key=True),
    Column("step", Integer, primary_key=True, autoincrement=False),
    Column("name", String(500), primary_key=True),
    Column("epoch", Integer, nullable=False),
    Column("at", Float, nullable=False),
    Column("value", Float, doc="NULL stands for NaN, which SQLite cannot hold."),
    Index(None, "job_id", "name", "step"),
)

ROLLUPS: Final = Table(
    "metric_rollups",
    METADATA,
    Column("job_id", String(64), ForeignKey("jobs.id"), primary_key=True),
    Column("name", String(500), primary_key=True),
    Column("level", Integer, primary_key=True, autoincrement=False),
    Column("bucket", Integer, primary_key=True, autoincrement=False),
    Column("num_points", Integer, nullable=False),
    Column("num_values", Integer, nullable=False),
    Column("lowest", Float),
    Column("highest", Float),
    Column("total", Float, nullable=False),
    Column("first_step", Integer, nullable=False),
    Column("last_step", Integer, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("at", Float, nullable=False),
)

HISTOGRAMS: Final = Table(
    "histograms",
    METADATA,
    Column("job_id", String(64), ForeignKey("jobs.id"), primary_key=True),
    Column("name", String(500), primary_key=True),
    Column("step", Integer, primary_key=True, autoincrement=False),
    Column("epoch", Integer, nullable=False),
    Column("at", Float, nullable=False),
    Column("lowest", Float, nullable=False),
    Column("highest", Float, nullable=False),
    Column("counts", JSON, nullable=False),
    Column("num_nan", BigInteger, nullable=False),
    Column("num_infinite", BigInteger, nullable=False),
)

USAGE: Final = Table(
    "usage",
    METADATA,
    Column("ordinal", Integer, primary_key=True, autoincrement=False),
    Column("job_id", String(64), ForeignKey("jobs.id"), nullable=False),
    Column("at", Float, nullable=False),
    Column("num_slots", Integer, nullable=False),
    Index(None, "at", "ordinal"),
    Index(None, "job_id", "at", "ordinal"),
)

SLOT_HOURS: Final = Table(
    "slot_hours",
    METADATA,
    Column("hour", Integer, primary_key=True, autoincrement=False, doc="Since the epoch."),
    Column("job_id", String(64), ForeignKey("jobs.id"), primary_key=True),
    Column("delta", Integer, nullable=False),
    Column("area", Float, nullable=False),
    Index(None, "job_id"),
)

CAPACITY: Final = Table(
    "capacity_spans",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("from_at", Float, nullable=False),
    Column("until_at", Float, nullable=False),
    Column("num_slots", Integer, nullable=False),
    Index(None, "from_at"),
)

COUNTERS: Final = Table(
    "counters",
    METADATA,
    Column("name", String(200), primary_key=True),
    Column("value", Integer, nullable=False),
)

NOUNS: Final = Table(
    "nouns",
    METADATA,
    Column("kind", String(40), primary_key=True),
    Column("name", String(MAX_NAME), primary_key=True),
    Column("owner", String(MAX_NAME), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("changed_at", Float, nullable=False),
    Column("body", Text, nullable=False, doc="The noun as JSON."),
    Index(None, "kind", "owner", "name"),
)

AUDIT: Final = Table(
    "audit",
    METADATA,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("at", Float, nullable=False),
    Column("who", String(MAX_NAME), nullable=False),
    Column("action", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("address", Text, nullable=False),
    Index(None, "who", "seq"),
)

SEARCHES: Final = Table(
    "searches",
    METADATA,
    Column("name", String(MAX_NAME), primary_key=True),
    Column("owner", String(MAX_NAME), nullable=False),
    Column("state", String(20), nullable=False),
    Column("created_at", Float, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("body", Text, nullable=False, doc="The search as JSON."),
    Column("sampler_state", Text, nullable=False, server_default=text("''")),
    Index(None, "owner", "name"),
)

TRIALS: Final = Table(
    "trials",
    METADATA,
    Column("search", String(MAX_NAME), ForeignKey("searches.name"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("state", String(20), nullable=False),
    Column("job_id", String(64), nullable=False),
    Column("result", Float, doc="The first of its results; NULL: none, NaN, or it violates a constraint."),
    Column("body", Text, nullable=False, doc="The trial as JSON; it may hold NaN."),
    Index(None, "job_id"),
    Index(None, "search", "state", "number"),
    Index(None, "search", "state", "result"),
)

SEARCH_DECISIONS: Final = Table(
    "search_decisions",
    METADATA,
    Column("search", String(MAX_NAME), ForeignKey("searches.name"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("at", Float, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("trial", Integer),
    Column("reason", Text, nullable=False),
)
