"""A pool whose machines have addresses of IPv6 alone, and whose trainings encrypt the state that goes between them."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.conftest import running
from tests.e2e.faulty import MARKER
from tests.e2e.hosts_pool import LEASE_S, SERVER, HostsPool, open_hosts
from tests.e2e.trial import Trial
from tests.hosts.capture import captured

from pliant.client import Client

ENCRYPTS = ("--encrypt-state",)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def _hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostsPool]:
    with open_hosts(tmp_path_factory.mktemp("hosts"), only_six=True, options=ENCRYPTS) as pool:
        yield pool


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
