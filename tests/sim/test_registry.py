"""The registry without a disk keeps the contract of registries."""

import pytest
from tests.contracts.registry import RegistryContract

from pliant.sim.registry import MemoryRegistry


class TestMemoryRegistry(RegistryContract):
    @pytest.fixture
    def registry(self) -> MemoryRegistry:
        return MemoryRegistry()
