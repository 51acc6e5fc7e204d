"""Events of nouns that belong to somebody, and who sees those nouns."""

import json
from collections.abc import Iterator
from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0015"
down_revision: Final[str | None] = "0014"

_KINDS: Final = ("algorithm", "dataset", "endpoint", "environment", "job share", "model", "template")
_AT_ONCE: Final = 500


def upgrade() -> None:
    """Apply. Who sees the nouns that are there is what they say themselves."""
    for name, length in (("noun", 40), ("noun_name", 200), ("viewer", 200)):
        op.add_column("events", sa.Column(name, sa.String(length)))
    op.create_index("ix_events_noun_noun_name", "events", ["noun", "noun_name"])
    op.create_index("ix_events_viewer_kind", "events", ["viewer", "kind"])
    op.create_table(
        "noun_viewers",
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("viewer", sa.String(200), nullable=False),
        sa.PrimaryKeyConstraint("kind", "name", "viewer", name="pk_noun_viewers"),
    )
    connection = op.get_bind()
    viewers = sa.table("noun_viewers", *map(sa.column, ("kind", "name", "viewer")))
    rows = list(_viewers(connection))
    for start in range(0, len(rows), _AT_ONCE):
        connection.execute(viewers.insert(), rows[start : start + _AT_ONCE])


def _viewers(connection: sa.Connection) -> Iterator[dict[str, str]]:
    nouns = sa.table("nouns", *map(sa.column, ("kind", "name", "owner", "body")))
    query = sa.select(nouns.c.kind, nouns.c.name, nouns.c.owner, nouns.c.body)
    for kind, name, owner, body in connection.execute(query.where(nouns.c.kind.in_(_KINDS))).all():
        yield from _rows(kind, name, owner, json.loads(body).get("shared_with"))
    searches = sa.table("searches", *map(sa.column, ("name", "owner", "body")))
    for name, owner, body in connection.execute(sa.select(searches.c.name, searches.c.owner, searches.c.body)).all():
        yield from _rows("search", name, owner, _shared_with(body))


def _shared_with(body: str) -> list[str]:
    settings = json.loads(body).get("settings", {})
    return list(settings.get("shared_with", ()))


def _rows(kind: str, name: str, owner: str, shared_with: list[str] | None) -> Iterator[dict[str, str]]:
    for viewer in sorted({owner, *(shared_with or ())} - {""}):
        yield {"kind": kind, "name": name, "viewer": viewer}
