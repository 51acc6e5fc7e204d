"""A database of Optuna's, whose connections are closed after the block: Optuna leaves that to whoever collects."""

from collections.abc import Iterator
from contextlib import contextmanager

from optuna.storages import RDBStorage


@contextmanager
def database(url: str) -> Iterator[RDBStorage]:
    """Open a database for the block."""
    storage = RDBStorage(url)
    try:
        yield storage
    finally:
        storage.remove_session()
        storage.engine.dispose()
