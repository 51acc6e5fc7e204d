"""The registry without a disk keeps the contract of registries."""

import pytest

from pliant.sim.registry import MemoryRegistry
from pliant.testing.registry import RegistryContract


class TestMemoryRegistry(RegistryContract):
    @pytest.fixture
    def registry(self) -> MemoryRegistry:
        return MemoryRegistry()
