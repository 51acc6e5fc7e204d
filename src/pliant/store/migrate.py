"""Brings a database up to date with the migrations that travel inside the package. Leaves logging alone.

All missing migrations run in one transaction, so an interrupted upgrade leaves the database as it was.
"""

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
    config = _config()
    script = ScriptDirectory.from_config(config)
    head = script.get_current_head()
    with read_transaction(engine) as connection:
        if revision_of(connection) == head:
            return
    with write_transaction(engine) as connection:
        lock_tables(connection)
        revision = revision_of(connection)
        if revision is not None and revision not in {known.revision for known in script.walk_revisions()}:
            raise Conflict(
                f"the database {display_url(engine)} is at revision {revision!r}, which "
                f"this Pliant (it knows up to {head!r}) does not know: a newer one wrote it; upgrade Pliant or use "
                f"another home folder"
            )
        config.attributes["connection"] = connection
        command.upgrade(config, up_to)


def is_known(revision: str) -> bool:
    """Tell whether this Pliant knows a revision."""
    return revision in {known.revision for known in ScriptDirectory.from_config(_config()).walk_revisions()}


def revision_of(connection: Connection) -> str | None:
    """Return the revision that a database is at; None if it holds no tables of ours."""
    return MigrationContext.configure(connection).get_current_revision()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
