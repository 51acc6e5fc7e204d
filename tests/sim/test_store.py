"""The store in memory passes the contract of all stores."""

import pytest
from tests.contracts.store import StoreContract
from tests.contracts.store_deletion import DeletionContract
from tests.contracts.store_filters import FilterContract
from tests.contracts.store_histograms import HistogramContract
from tests.contracts.store_noun_events import NounEventsContract
from tests.contracts.store_series import SeriesContract
from tests.contracts.store_slots import SlotsContract
from tests.contracts.store_writes import WritesContract

from pliant.sim.store import MemoryStore


class TestMemoryStore(
    StoreContract,
    SeriesContract,
    SlotsContract,
    FilterContract,
    DeletionContract,
    WritesContract,
    NounEventsContract,
    HistogramContract,
):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()
