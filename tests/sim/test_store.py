"""The store in memory passes the contract of all stores."""

import pytest
from tests.contracts.store import StoreContract

from pliant.sim.store import MemoryStore


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()
