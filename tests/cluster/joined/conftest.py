"""Pools over real links."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.joined.pool import Pool
from tests.cluster.joined.proxy import Proxy


@pytest.fixture
def open_pool(tmp_path: Path) -> Iterator[Callable[..., Pool]]:
    """Give a function that opens a pool; see `Pool`."""
    pools: list[Pool] = []

    def make(**settings: Any) -> Pool:
        pools.append(Pool(tmp_path, **settings))
        return pools[-1]

    yield make
    for pool in pools:
        pool.end()


@pytest.fixture
def pool(open_pool: Callable[..., Pool]) -> Pool:
    return open_pool()


@pytest.fixture
def proxy(pool: Pool) -> Iterator[Proxy]:
    """Give a cable to the pool's hub."""
    made = Proxy(pool.port)
    yield made
    made.close()
