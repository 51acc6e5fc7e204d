"""Brings a database up to date with the migrations that travel inside the package. Leaves logging alone.

All missing migrations run in one transaction, so an interrupted upgrade leaves the database as it was.
"""

from functools import cache
from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine

from pliant.core.errors import Conflict
from pliant.store.engine import display_url, lock_tables, read_transaction, write_transaction

MIGRATIONS: Final = Path(__file__).with_name("migrations")


def migrate(engine: Engine, up_to: str = "head") -> None:
    """Apply the migrations that the database lacks, up to a revision; the newest if none is named.

    Raises:
        Conflict: a newer Pliant wrote the database.
        Unavailable: the database does not answer.
    """
    head = _revisions()[0]
    with read_transaction(engine) as connection:
        if revision_of(connection) == head:
            return
    with write_transaction(engine) as connection:
        lock_tables(connection)
        revision = revision_of(connection)
        if revision is not None and not is_known(revision):
            raise Conflict(
                f"the database {display_url(engine)} is at revision {revision!r}, which "
                f"this Pliant (it knows up to {head!r}) does not know: a newer one wrote it; upgrade Pliant or use "
                f"another home folder"
            )
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, up_to)


def is_known(revision: str) -> bool:
    """Tell whether this Pliant knows a revision."""
    return revision in _revisions()


def revision_of(connection: Connection) -> str | None:
    """Return the revision that a database is at; None if it holds no tables of ours."""
    return MigrationContext.configure(connection).get_current_revision()


@cache
def _revisions() -> tuple[str, ...]:
    """Return all revisions that travel in the package, the newest first."""
    return tuple(script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions())


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
