"""Fills a new database from the text of another one, which may have been of another dialect or an older Pliant."""

from collections.abc import Iterable, Mapping

from pliant.core.errors import InvalidInput
from pliant.store.engine import open_engine, write_transaction
from pliant.store.migrate import is_known, migrate
from pliant.store.tables import METADATA
from pliant.store.upkeep import load


def restore(url: str, revision: str, tables: Mapping[str, Iterable[bytes]]) -> int:
    """Make the tables of a revision in the empty database at `url`, fill them, and bring them up to date.

    Returns:
        How many rows there are.

    Raises:
        Conflict: the database holds something already.
        InvalidInput: a newer Pliant made the text, or it is damaged; the database holds empty tables at most.
        Unavailable: the database does not answer.
    """
    if not is_known(revision):
        message = f"the backup is at revision {revision!r}, which this Pliant does not know: a newer one made it"
        raise InvalidInput.at("revision", f"{message}; upgrade Pliant")
    if strange := sorted(tables.keys() - METADATA.tables.keys()):
        raise InvalidInput.at("tables", f"unknown: {', '.join(strange)}; the backup is damaged")
    engine = open_engine(url)
    try:
        migrate(engine, revision)
        with write_transaction(engine) as connection:
            named = [table for table in METADATA.sorted_tables if table.name in tables]
            number = sum(load(connection, table, tables[table.name]) for table in named)
        migrate(engine)
        return number
    finally:
        engine.dispose()
