"""For tests of the client: a server whose jobs are played."""

from collections.abc import Iterator

import pytest
from tests.server.played import Played, set_scene

from pliant.client import Client


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """The scene, for all tests of a file that only look at it."""
    pool = Played(tmp_path_factory.mktemp("shown"))
    yield set_scene(pool)
    pool.close()


@pytest.fixture
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """A server without jobs."""
    pool = Played(tmp_path_factory.mktemp("pool"))
    yield pool
    pool.close()


@pytest.fixture
def client(shown: Played) -> Iterator[Client]:
    """A client of the scene."""
    with Client(shown.url, shown.token, timeout_s=30.0) as client:
        yield client


@pytest.fixture
def own(pool: Played) -> Iterator[Client]:
    """A client of a server of the test's own."""
    with Client(pool.url, pool.token, timeout_s=30.0) as client:
        yield client
