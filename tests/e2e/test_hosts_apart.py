"""Machines that see nothing of the server's files: what tasks need is brought to them, what they write goes back.

Each host but the server's has an empty file system where the state folder is.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.e2e.conftest import running
from tests.e2e.hosts_pool import AGENTS, SERVER, HostsPool
from tests.e2e.trial import Trial
from tests.hosts import Network, require_hosts

from pliant.client import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


class ApartPool(HostsPool):
    """A pool whose machines share no files with its server."""

    def own_folders(self, name: str) -> Mapping[str, str]:
        self.home.mkdir(mode=0o700, exist_ok=True)
        return {} if name == SERVER else {str(self.home): "512m"}


@pytest.fixture(scope="module")
def _apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApartPool]:
    require_hosts()
    folder = tmp_path_factory.mktemp("apart")
    folder.chmod(0o777)
    with Network() as network:
        pool = ApartPool(folder / "home", network)
        with pool.hosts[SERVER].inside():
            yield pool
            pool.close()


@pytest.fixture
def apart(_apart: ApartPool) -> ApartPool:
    _apart.network.heal()
    running(_apart)
    _apart.join_all()
    _apart.until_here(SERVER)
    with _apart.client() as client:
        for job in client.jobs().jobs:
            if not job.ended:
                client.stop(job.id)
        _apart.until(lambda: not any(slot.taken for slot in client.cluster().slots), "all slots are free")
    return _apart


@pytest.fixture
def client(apart: ApartPool) -> Iterator[Client]:
    with apart.client() as client:
        yield client


def test_a_training_over_machines_without_the_state_folder_comes_to_the_same_bits(
    apart: ApartPool, client: Client, tmp_path: Path
) -> None:
    with apart.without(SERVER):
        job = Trial.begin(apart, client, tmp_path / "trial", epochs=20, max_tasks=5)
        assert apart.node_of(job.until_calm(5)) == set(AGENTS)
        job.end()
