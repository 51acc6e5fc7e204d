"""The searches without a disk keep the contract of searches."""

import pytest
from tests.contracts.searches import SearchesContract

from pliant.sim.searches import MemorySearches


class TestMemorySearches(SearchesContract):
    @pytest.fixture
    def searches(self) -> MemorySearches:
        return MemorySearches()
