"""The databases that every store test can ask for, and the parts of the `store` that a test file opens."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.databases import empty, new_database

from pliant.core.registry import AuditLog, Registry
from pliant.core.upkeep import Records
from pliant.store.sql import SqlStore


@pytest.fixture(scope="session")
def _postgres() -> Iterator[str]:
    with new_database() as url:
        yield url


@pytest.fixture
def postgres_url(_postgres: str) -> str:
    """A PostgreSQL database whose tables are empty."""
    empty(_postgres)
    return _postgres


@pytest.fixture
def new_postgresql_url() -> Iterator[str]:
    """A PostgreSQL database without tables."""
    with new_database() as url:
        yield url


@pytest.fixture
def new_sqlite_url(sqlite_url: str) -> str:
    return sqlite_url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A SQLite database that does not exist yet."""
    return f"sqlite:///{tmp_path}/pliant.db"


@pytest.fixture
def registry(store: SqlStore) -> Registry:
    return store.registry


@pytest.fixture
def audit(store: SqlStore) -> AuditLog:
    return store.audit


@pytest.fixture
def records(store: SqlStore) -> Records:
    return store.records
