from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.pace import Pace
from tests.e2e.pool import Pool

from pliant.client import Client


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    """A running server with eight slots."""
    server = Pool(tmp_path / "home")
    server.up()
    yield server
    server.close()


@pytest.fixture
def pace(tmp_path: Path) -> Pace:
    """How long `paced.py` sleeps before every batch; its text is the path of the file."""
    return Pace(tmp_path / "pace", 0.05)


@pytest.fixture(scope="session")
def _fault_pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    server = Pool(tmp_path_factory.mktemp("faults") / "home", slots=6)
    yield server
    server.close()


@pytest.fixture
def fault_pool(_fault_pool: Pool) -> Pool:
    """One server for all trials of faults: a job that is hurt hurts no other, and a server that was killed goes on."""
    if _fault_pool.process is None or _fault_pool.process_ended():
        _fault_pool.up()
    return _fault_pool


@pytest.fixture
def fault_client(fault_pool: Pool) -> Iterator[Client]:
    """Jobs that a failed test leaves are stopped, so that the next one has all slots."""
    with fault_pool.client() as client:
        yield client
        if fault_pool.process_ended():
            fault_pool.up()
        for job in client.jobs().jobs:
            if not job.ended:
                client.stop(job.id)
