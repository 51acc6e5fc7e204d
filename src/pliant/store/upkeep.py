"""What the store does beside its daily work: forget points and entries of the audit log, write all to text and back.

The text has one JSON object a line, one file a table, in an order in which rows refer only to rows before them. It
holds no dialect: what SQLite wrote, PostgreSQL reads.
"""

import json
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from typing import Any, Final

from sqlalchemy import Connection, Engine, Table, delete, func, insert, select

from pliant.core.errors import Conflict, InvalidInput
from pliant.core.job import JobId
from pliant.core.registry import AuditEntry
from pliant.store.engine import read_transaction, snapshot_transaction
from pliant.store.migrate import revision_of
from pliant.store.registry import WriteTransaction, append_entry
from pliant.store.rollups import NUM_LEVELS
from pliant.store.tables import AUDIT, HISTOGRAMS, METADATA, METRICS, ROLLUPS

_BATCH: Final = 500


class SqlRecords:
    """The `Records` of a SQL database, and its copy as text."""

    def __init__(self, engine: Engine, write_transaction: WriteTransaction) -> None:
        self._engine = engine
        self._write_transaction = write_transaction

    def num_points(self) -> Mapping[JobId, int]:
        """Return how many points each job has, of those that have any."""
        top = ROLLUPS.c.level == NUM_LEVELS
        query = select(ROLLUPS.c.job_id, func.sum(ROLLUPS.c.num_points)).where(top).group_by(ROLLUPS.c.job_id)
        with read_transaction(self._engine) as connection:
            return {JobId(job_id): int(number) for job_id, number in connection.execute(query)}

    def forget_points(self, job_ids: Collection[JobId]) -> None:
        """Remove all points and histograms of these jobs, one job a transaction."""
        for job_id in job_ids:
            with self._write_transaction() as connection:
                for table in (METRICS, ROLLUPS, HISTOGRAMS):
                    connection.execute(delete(table).where(table.c.job_id == job_id))

    def num_entries(self, *, before: float) -> int:
        """Return how many entries of the audit log are older than this instant."""
        with read_transaction(self._engine) as connection:
            return connection.execute(select(func.count()).select_from(AUDIT).where(AUDIT.c.at < before)).scalar_one()

    def forget_entries(self, *, before: float, entry: AuditEntry) -> None:
        """Remove these entries and write the one that tells so, both or neither."""
        with self._write_transaction() as connection:
            connection.execute(delete(AUDIT).where(AUDIT.c.at < before))
            append_entry(connection, entry)

    @property
    def revision(self) -> str:
        """The revision of the tables."""
        with read_transaction(self._engine) as connection:
            return revision_of(connection) or ""

    def dump(self) -> Generator[tuple[str, Iterator[bytes]], None, None]:
        """Yield every table's name with its lines, all as they are at one instant; read each before the next.

        Who stops in the middle closes it, and the database's cursor with it.
        """
        with snapshot_transaction(self._engine) as connection:
            for table in METADATA.sorted_tables:
                with connection.execution_options(yield_per=_BATCH).execute(select(table)) as result:
                    rows = result.mappings()
                    yield table.name, (json.dumps(dict(row)).encode() + b"\n" for row in rows)


def load(connection: Connection, table: Table, lines: Iterable[bytes]) -> int:
    """Fill an empty table from its lines; return how many rows that were.

    Raises:
        Conflict: the table is not empty.
        InvalidInput: a line is no row of it.
    """
    if connection.execute(select(func.count()).select_from(table)).scalar_one():
        raise Conflict(f"the table {table.name} is not empty; restore into a new database")
    number = 0
    for batch in _batches(lines, table):
        connection.execute(insert(table), batch)
        number += len(batch)
    return number


def _batches(lines: Iterable[bytes], table: Table) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise InvalidInput.at(f"{table.name}, line {number}", f"no JSON ({error})") from error
        if not isinstance(row, dict) or not row.keys() <= set(table.c.keys()):
            raise InvalidInput.at(f"{table.name}, line {number}", "no row of this table")
        batch.append(row)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
