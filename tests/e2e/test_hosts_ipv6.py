"""A pool whose machines have addresses of IPv6 alone, and whose trainings encrypt the state that goes between them."""

import json
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.e2e.conftest import running
from tests.e2e.faulty import MARKER
from tests.e2e.hosts_pool import LEASE_S, SERVER, HostsPool
from tests.e2e.serving import write_model
from tests.e2e.test_hosts_serving import PAIR
from tests.e2e.trial import Trial
from tests.hosts import Network, require_hosts
from tests.hosts.capture import captured

from pliant.client import Client

ENCRYPTS = ("--encrypt-state",)
APART = ("c", "d")
"""Hosts that do not see the state folder."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


class SixPool(HostsPool):
    """A pool over IPv6, half of whose machines share no files with its server."""

    def __init__(self, home: Path, network: Network) -> None:
        super().__init__(home, network, options=ENCRYPTS)

    def own_folders(self, name: str) -> Mapping[str, str]:
        self.home.mkdir(mode=0o700, exist_ok=True)
        return {str(self.home): "512m"} if name in APART else {}


@pytest.fixture(scope="module")
def _hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostsPool]:
    require_hosts()
    folder = tmp_path_factory.mktemp("hosts")
    folder.chmod(0o777)
    with Network(only_six=True) as network:
        pool = SixPool(folder / "home", network)
        with pool.hosts[SERVER].inside():
            yield pool
            pool.close()


@pytest.fixture
def hosts(_hosts: HostsPool) -> HostsPool:
    running(_hosts)
    _hosts.join_all()
    return _hosts


@pytest.fixture
def client(hosts: HostsPool) -> Iterator[Client]:
    with hosts.client() as client:
        yield client


def test_a_training_grows_onto_another_host_and_nobody_between_the_two_reads_its_state(
    hosts: HostsPool, client: Client, tmp_path: Path
) -> None:
    with hosts.without("c", "d"):
        with hosts.without("b"):
            job = Trial.begin(hosts, client, tmp_path / "trial", epochs=80, max_tasks=4)
            assert hosts.node_of(job.until_calm(2)) == {SERVER}
        with captured(hosts.hosts["b"]) as capture:
            assert hosts.node_of(job.until_calm(4)) == {SERVER, "b"}
        assert len(capture.frames) > 100
        assert not capture.shows(MARKER)

        job.resize(3)
        job.until_calm(3)
        job.resize(4)
        assert hosts.node_of(job.until_calm(4)) == {SERVER, "b"}
        at = time.time()
        hosts.kill_host("b")
        job.assert_back_within(LEASE_S + 1.0, at)
        before = {task.id for task in job.until_calm(2)}
        assert job.num_redone_since(at) <= 1

        hosts.signal(signal.SIGKILL)
        hosts.options = ()
        hosts.up()
        hosts.options = ENCRYPTS
        hosts.restart_host("b")
        with captured(hosts.hosts["b"]) as capture:
            hosts.join("b")
            assert before < {task.id for task in job.until_calm(4)}, "they train on with another server"
        assert capture.shows(MARKER), "without the option it is seen"
        job.end()


def test_a_fixed_job_meets_and_an_endpoint_answers_on_hosts_that_do_not_see_the_servers_files(
    hosts: HostsPool, client: Client, tmp_path: Path
) -> None:
    script, gate = tmp_path / "pair.py", tmp_path / "gate"
    script.write_text(PAIR)
    gate.touch()
    with hosts.without(SERVER, "b"):
        job_id = hosts.submit(script, "--fixed", "3", "--max-restarts", "0", args=(str(gate), "0"))
        job = client.wait(job_id, timeout_s=60)
        assert hosts.node_of(list(client.job(job_id).tasks)) == set(APART)
        client.endpoints.deploy("double", write_model(tmp_path / "model"), kernel_min=1)
        view = client.endpoints.wait("double", timeout_s=60)
        answer = json.loads(hosts.cli("predict", "double", "--raw", "--data", '{"value": 5}'))
        client.endpoints.remove("double")

    assert job.state == "completed", job.reason
    master = hosts.hosts[str(client.job(job_id).tasks[0].node_id)].address6
    assert f"met the others at {master}" in hosts.cli("logs", job_id, "--task", "3")
    results = hosts.home / "jobs" / job_id / "result"
    assert {path.name for path in results.glob("rank-*")} == {"rank-0", "rank-1", "rank-2"}
    assert view.http_url is not None
    server = f"[{hosts.hosts[SERVER].address6}]:"
    assert view.http_url.startswith(f"https://{server}")
    assert view.grpc_address is not None
    assert view.grpc_address.startswith(server)
    assert answer == {"value": 10, "factor": 2}
