"""Agents on the nodes of a Ray cluster: they come with its nodes, and outlive whatever of Ray ends."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.hosts_pool import SERVER
from tests.e2e.ray_pool import RayPool
from tests.e2e.serving import Asked, crowd, write_model
from tests.e2e.trial import Trial
from tests.hosts import Network, require_hosts

from pliant.api.trust import Trust
from pliant.client import Client

DRAIN = """
import time
from ray._raylet import GcsClient
gcs = GcsClient(ray.get_runtime_context().gcs_address)
own = ray.get_runtime_context().get_node_id()
(node,) = (one["NodeID"] for one in ray.nodes() if one["Alive"] and one["NodeID"] != own)
print(gcs.drain_node(node, 2, "the price has risen", int(1000 * (time.time() + 3600))))
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayPool]:
    require_hosts()
    pytest.importorskip("ray")
    os.makedirs("/tmp/ray", exist_ok=True)
    folder = tmp_path_factory.mktemp("ray")
    folder.chmod(0o777)
    with Network() as network:
        pool = RayPool(folder / "home", network)
        with pool.hosts[SERVER].inside():
            pool.start_head()
            pool.up()
            yield pool
            pool.close()


@pytest.fixture
def client(pool: RayPool) -> Iterator[Client]:
    with pool.client() as client:
        yield client


@pytest.fixture
def asked(pool: RayPool, client: Client, tmp_path: Path) -> Iterator[Asked]:
    """Requests, all the time, to an endpoint whose one kernel is on the server's host."""
    trust = Trust(certificate=pool.certificate).context()
    client.endpoints.deploy("steady", write_model(tmp_path / "steady", seconds=0.05), kernel_min=1, kernel_max=1)
    view = client.endpoints.wait("steady", timeout_s=60)
    assert view.http_url is not None
    with crowd(view.http_url, pool.token, "steady", num_clients=2, trust=trust) as asked:
        yield asked
    client.endpoints.remove("steady")


def test_a_training_on_a_node_of_ray_and_an_endpoint_outlive_all_that_is_rays(
    pool: RayPool, client: Client, asked: Asked, tmp_path: Path
) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial", max_tasks=4, epochs=60, pace=0.2)
    job.until_calm(1)
    pool.start_node("b")
    pool.until_state("b", "in use", 90.0)
    tasks = {task.id for task in job.until_calm(3)}
    agent = pool.agent_pid("b")

    for name in ("b", SERVER):
        pool.kill_ray(name)
    pool.until(lambda: "RayLauncher" not in processes(pool, "b"), "the launcher has ended with its raylet")
    num = asked.num_answered
    assert {task.id for task in job.until_calm(3)} == tasks
    assert pool.agent_pid("b") == agent
    pool.until(lambda: asked.num_answered > num, "the endpoint answers without Ray")

    pool.start_head()
    pool.start_node("b")
    pool.until(lambda: "RayLauncher" in processes(pool, "b"), "there is another launcher", 90.0)
    pool.until(lambda: pool.log().count("an agent runs on b") >= 2, "it has found the agent")
    assert pool.agent_pid("b") == agent
    pool.hosts["b"].run(["kill", "-9", str(agent)])
    pool.until(lambda: pool.agent_pid("b") not in (0, agent), "it has started another one")
    pool.until_state("b", "in use", 90.0)
    assert {task.id for task in job.until_calm(3)} == tasks

    assert pool.ask_ray(DRAIN).startswith("(True")
    pool.until_state("b", "drained", 60.0)
    job.until_calm(1)
    assert any("Ray drains it, and ends it at" in event.message for event in client.events(limit=10_000).events)
    assert not job.events("task.lost")
    job.end()
    assert (asked.wrong, set(asked.statuses), asked.num_broken) == ([], {200}, 0)


def processes(pool: RayPool, name: str) -> str:
    return pool.hosts[name].run(["ps", "-eo", "args"]).stdout
