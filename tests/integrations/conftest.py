"""For tests of Lightning: what it says of a small machine is no error, and its rank is 0 again after each."""

from collections.abc import Iterator

import pytest
from lightning.pytorch.utilities.rank_zero import rank_zero_only


@pytest.fixture(autouse=True)
def rank_zero() -> Iterator[None]:
    rank_zero_only.rank = 0
    yield
    rank_zero_only.rank = 0
