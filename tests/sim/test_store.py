"""The store in memory passes the contract of all stores."""

import pytest

from pliant.sim.store import MemoryStore
from pliant.testing.store import StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()
