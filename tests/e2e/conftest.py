import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.e2e.pace import Pace
from tests.e2e.pool import Pool

from pliant.client import Client
from pliant.core.errors import Conflict


@pytest.fixture(autouse=True)
def _open_folder(tmp_path: Path) -> Iterator[None]:
    """Let every user write where a test and its scripts meet: the scripts run as users of their own."""
    tmp_path.chmod(0o777)
    tmp_path.parent.chmod(0o755)
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def pace(tmp_path: Path) -> Pace:
    """How long `paced.py` sleeps before every batch; its text is the path of the file."""
    return Pace(tmp_path / "pace", 0.05)


@pytest.fixture(scope="session")
def _pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    server = Pool(tmp_path_factory.mktemp("pool") / "home")
    yield server
    server.close()


@pytest.fixture
def pool(_pool: Pool) -> Iterator[Pool]:
    """A running server with eight slots, for all tests that need nothing else of their server.

    A job that is hurt hurts no other, a server that was killed goes on with the next test, and jobs that a test leaves
    are stopped, so that the next one has all slots.
    """
    running(_pool)
    yield _pool
    running(_pool)
    with _pool.client() as client:
        for job in client.jobs().jobs:
            if not job.ended and job.spec.endpoint is None:  # that of an endpoint ends with it
                with suppress(Conflict):  # it has ended just now
                    client.stop(job.id)
        _pool.until(lambda: not any(slot.taken for slot in client.cluster().slots), "all slots are free")


def running(pool: Pool) -> None:
    """Start the server unless it runs."""
    if pool.process is None or pool.process_ended():
        pool.up()


@pytest.fixture
def client(pool: Pool) -> Iterator[Client]:
    """A client of that server."""
    with pool.client() as client:
        yield client
