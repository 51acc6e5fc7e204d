"""Ray's own autoscaler, over its provider for tests: a job that waits brings a node, which goes when it is idle."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.hosts_pool import SERVER
from tests.e2e.ray_pool import AutoscaledRayPool
from tests.e2e.trial import Trial
from tests.hosts import Network, require_hosts

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[AutoscaledRayPool]:
    require_hosts()
    pytest.importorskip("ray")
    os.makedirs("/tmp/ray", exist_ok=True)
    tmp_path.chmod(0o777)
    options = ("--ray-machines", "0..1", "--ray-slots", "2", "--ray-idle", "3s")
    with Network() as network:
        pool = AutoscaledRayPool(tmp_path / "home", network, options=options)
        with pool.hosts[SERVER].inside():
            pool.start_head()
            pool.up()
            yield pool
            pool.close()


def test_a_job_that_could_grow_brings_a_node_which_goes_when_it_is_idle(
    pool: AutoscaledRayPool, tmp_path: Path
) -> None:
    with pool.client() as client:
        job = Trial.begin(pool, client, tmp_path / "trial", max_tasks=4, epochs=60, pace=0.2)
        pool.until(lambda: len(client.machines.list()) == 2, "another machine has joined", 90.0)
        job.until_calm(4)
        assert pool.num_nodes() == 2
        assert pool.ask_ray("print(int(ray.available_resources().get('pliant', 0)))") == "0", "it is held"
        job.end()
        pool.until(lambda: pool.num_nodes() == 1, "its node has gone", 90.0)
        (there,) = [one for one in client.machines.list() if one.name != SERVER]
        assert (there.state, there.drained_by) == ("away", "Ray's autoscaler")
    assert pool.agents_on(SERVER) == [SERVER], "nothing of ours is left of the node that was there"
