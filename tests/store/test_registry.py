"""The registry and the audit log on SQLite."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contracts.registry import AuditContract, RegistryContract
from tests.databases import new_sqlite

from pliant.store.sql import SqlStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    opened = SqlStore(new_sqlite(tmp_path))
    yield opened
    opened.close()


class TestSqliteRegistry(RegistryContract):
    """SQLite keeps the contract."""


class TestSqliteAudit(AuditContract):
    """SQLite keeps the contract."""
