"""Ray's own autoscaler, over its provider for tests: a job that waits brings a node of a kind, which goes when idle."""

import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.e2e.hosts_pool import SERVER
from tests.e2e.ray_pool import AutoscaledRayPool
from tests.e2e.trial import Trial
from tests.hosts import Network, require_hosts

from pliant.api.queues import GroupRequest, HostsRequest, QueueRequest
from pliant.client import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
KINDS = ("--ray-machines", "small=0..2", "--ray-machines", "gpu=0..1,label=gpu=a100")


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def pool(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AutoscaledRayPool]:
    require_hosts()
    pytest.importorskip("ray")
    os.makedirs("/tmp/ray", exist_ok=True)
    tmp_path.chmod(0o777)
    options = (*KINDS, "--ray-slots", "2", "--ray-idle", "3s")
    with Network() as network:
        pool = AutoscaledRayPool(tmp_path / "home", network, version=request.param, options=options)
        with pool.hosts[SERVER].inside():
            pool.start_head()
            pool.up()
            yield pool
            pool.close()


def test_a_job_brings_a_node_of_the_kind_that_its_queue_has_which_goes_when_it_is_idle(
    pool: AutoscaledRayPool, tmp_path: Path
) -> None:
    with pool.client() as client:
        client.groups.add(GroupRequest(name="a100", hosts=HostsRequest(labels={"gpu": "a100"})))
        client.queues.add(QueueRequest(name="gpus", resource_group="a100"))
        job = Trial.begin(pool, client, tmp_path / "trial", queue="gpus", max_tasks=4, epochs=60, pace=0.2)
        pool.until(lambda: len(client.machines.list()) == 2, "another machine has joined", 90.0)
        job.until_calm(2)
        assert [pool.num_nodes(f"pliant_{kind}") for kind in ("small", "gpu")] == [0, 1]
        assert pool.ask_ray("print(int(ray.available_resources().get('pliant_gpu', 0)))") == "0", "it is held"
        assert labels(client) == {"kind": "gpu", "gpu": "a100"}
        if pool.version == 2:  # once is enough
            check_new_labels(pool, client, job)
        job.end()
        pool.until(lambda: pool.num_nodes("pliant_gpu") == 0, "its node has gone", 90.0)
        (there,) = [one for one in client.machines.list() if one.name != SERVER]
        assert (there.state, there.drained_by) == ("away", "Ray's autoscaler")
    assert pool.agents_on(SERVER) == [SERVER], "nothing of ours is left of the node that was there"


def labels(client: Client) -> Mapping[str, str]:
    """Return those of the machine that Ray has brought."""
    (brought,) = [one for one in client.machines.list() if one.name != SERVER]
    return brought.labels


def check_new_labels(pool: AutoscaledRayPool, client: Client, job: Trial) -> None:
    """Replace the server by one that says another label of the kind: the agent begins anew, its tasks go on."""
    tasks = {task.id for task in job.training()}
    pool.signal(signal.SIGKILL)
    pool.options = tuple(word.replace("gpu=a100", "gpu=a100,label=zone=b") for word in pool.options)
    pool.up()
    after = {"kind": "gpu", "gpu": "a100", "zone": "b"}
    pool.until(lambda: labels(client) == after, "its agent has begun anew", 60.0)
    assert {task.id for task in job.until_calm(2)} == tasks
