"""For tests of Lightning: what it says of a small machine is no error, and its rank is 0 again after each."""

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def rank_zero() -> Iterator[None]:
    _forget_rank()
    yield
    _forget_rank()


def _forget_rank() -> None:
    module = sys.modules.get("lightning.pytorch.utilities.rank_zero")
    if module is not None:  # else nobody has set it: importing Lightning takes seconds
        module.rank_zero_only.rank = 0
