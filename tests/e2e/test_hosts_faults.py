"""What goes wrong on several hosts but cuts and kills: what stops, packets that are lost, a full disk, a wrong clock.

Every training must use each sample once an epoch, and come to the same bits as one process that nobody disturbed.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.faults import Act, Fault, Place
from tests.e2e.conftest import running
from tests.e2e.hosts_pool import LEASE_S, SERVER, HostsPool, runs_on
from tests.e2e.pool import PYTHON, clean_env
from tests.e2e.serving import write_tensor_model
from tests.e2e.trial import Trial
from tests.hosts import HostProcess, Network, require_hosts

from pliant.client import Client
from pliant.cluster.joined.hearing import END_S

ORPHAN_S = 12.0
"""Far less than people have, and longer than a busy machine keeps an agent from its processor."""
LEASE_AND_MORE_S = LEASE_S + 1.0
EPOCHS, PACE_S = 20, 0.12
ASK = """
import sys
from pathlib import Path
from tests.e2e.serving import call_model
address, token, certificate = sys.argv[1:]
print(call_model(address, token, "double", [1.5, 2.0], certificate=Path(certificate).read_bytes()))
"""
HOUR_S = 3600.0
WRONG_CLOCK = """
import time
now, now_ns = time.time, time.time_ns
time.time, time.time_ns = lambda: now() + {0}, lambda: now_ns() + int({0} * 1e9)
"""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


class FaultyHosts(HostsPool):
    """All tasks are on machines with an agent: the server's own host has no slots."""

    names = ("b", "c", "d", "e")
    joined = ("b", "c")

    def __init__(self, home: Path, network: Network) -> None:
        self.small = home.parent / "agent-c"
        """A disk of c's own, on which its agent lives."""
        self.small.mkdir()
        self.tmpfs = {str(self.small): "4m"}
        super().__init__(home, network, options=("--slots", "0", "--orphan-s", str(ORPHAN_S)))


@pytest.fixture(scope="module")
def _hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyHosts]:
    require_hosts()
    folder = tmp_path_factory.mktemp("hosts")
    folder.chmod(0o777)
    with Network() as network:
        pool = FaultyHosts(folder / "home", network)
        with pool.hosts[SERVER].inside():
            yield pool
            pool.close()


@pytest.fixture
def hosts(_hosts: FaultyHosts) -> FaultyHosts:
    """A pool with all its machines there, and no job on them."""
    _hosts.network.heal()
    running(_hosts)
    for name in _hosts.joined:
        if name not in _hosts.agents:
            _hosts.join(name)
    _hosts.until_here(*_hosts.joined)
    with _hosts.client() as client:
        for job in client.jobs().jobs:
            if not job.ended and job.spec.endpoint is None:  # one that was removed is still at its end
                client.stop(job.id)
        _hosts.until(lambda: not any(slot.taken for slot in client.cluster().slots), "all slots are free")
    return _hosts


def trial(hosts: FaultyHosts, client: Client, folder: Path, **options: Any) -> Trial:
    return Trial.begin(hosts, client, folder / "trial", **{"epochs": EPOCHS, "pace": PACE_S, "max_tasks": 4, **options})


@pytest.fixture
def client(hosts: FaultyHosts) -> Iterator[Client]:
    with hosts.client() as client:
        yield client


@contextmanager
def stopped(process: HostProcess | None) -> Iterator[float]:
    """Let a process stand still in the block; yields since when."""
    assert process is not None
    process.kill(signal.SIGSTOP)
    try:
        yield time.time()
    finally:
        process.kill(signal.SIGCONT)


def test_an_agent_or_a_server_that_stops_for_longer_than_the_lease_costs_nothing(
    hosts: FaultyHosts, client: Client, tmp_path: Path
) -> None:
    job = trial(hosts, client, tmp_path)
    before = {task.id for task in job.until_calm(4)}
    with stopped(hosts.agents["c"]) as at:
        hosts.until_state("c", "away")
        job.until_trains_after(time.time() + 1.0)
        job.assert_back_within(0.0, at)
    hosts.until_here("c")
    with stopped(hosts.server) as stopped_at:
        job.until_trains_after(stopped_at + LEASE_AND_MORE_S)
        job.assert_back_within(0.0, stopped_at)
    job.until_calm(4)
    assert {hosts.state(name) for name in hosts.joined} == {"in use"}
    assert {task.id for task in job.training()} == before, "all of them were heard, or nobody listened"
    assert [event for event in job.events("task.lost", "generation.forming") if event.at > at] == []
    job.end()


def test_an_agent_that_stops_for_longer_than_the_orphan_time_costs_its_tasks_and_one_step(
    hosts: FaultyHosts, client: Client, tmp_path: Path
) -> None:
    job = trial(hosts, client, tmp_path)
    pids = [task.pid or 0 for task in job.until_calm(4) if task.node_id == "c"]
    with stopped(hosts.agents["c"]) as at:
        hosts.until(lambda: not any(runs_on(hosts.hosts["c"], pid) for pid in pids), "their zygote has ended them")
        ended_at = time.time()
        assert ORPHAN_S < ended_at - at < ORPHAN_S + END_S, "before the server takes them for ended"
        job.assert_back_within(LEASE_AND_MORE_S, ended_at)
        assert hosts.node_of(job.until_calm(2)) == {"b"}
        assert hosts.state("c") == "away"
    hosts.until_here("c")
    assert hosts.node_of(job.until_calm(4)) == {"b", "c"}, "its slots are used again"
    assert len(job.events("task.lost")) == 2
    assert job.num_redone_since(at) <= 1
    job.end()


def test_a_training_over_a_slow_network_that_loses_packets_is_right_and_loses_no_machine(
    hosts: FaultyHosts, client: Client, tmp_path: Path
) -> None:
    with hosts.network.delay(hosts.hosts["c"], 0.05), hosts.network.lose(hosts.hosts["c"], 0.05):
        job = trial(hosts, client, tmp_path, epochs=3, pace=0.3)
        assert hosts.node_of(job.until_size(4)) == {"b", "c"}
        job.end()
    hosts.until_here(*hosts.joined)
    assert [event.message for event in job.events("task.lost")] == []


def test_an_endpoint_answers_over_grpc_by_a_kernel_that_is_on_another_host_than_its_gateway(
    hosts: FaultyHosts, client: Client, tmp_path: Path
) -> None:
    with hosts.without("c"):
        client.endpoints.deploy("double", write_tensor_model(tmp_path / "double"))
        view = client.endpoints.wait("double", timeout_s=60)
    (version,) = view.versions
    assert view.grpc_address is not None
    assert [kernel.node_id for kernel in version.kernels] == ["b"]
    asking: list[str | Path] = [PYTHON, "-P", "-c", ASK, view.grpc_address, hosts.token, hosts.certificate]
    assert hosts.hosts["c"].run(asking, env=clean_env(), timeout_s=60).stdout == "[3.0, 4.0]\n"
    client.endpoints.remove("double")


def test_a_host_whose_disk_is_full_hurts_nobody_elsewhere_and_is_used_again_when_there_is_room(
    hosts: FaultyHosts, client: Client, tmp_path: Path
) -> None:
    job, c = trial(hosts, client, tmp_path), hosts.hosts["c"]
    victim = next(task for task in job.until_calm(4) if task.node_id == "c")
    c.run(["dd", "if=/dev/zero", f"of={hosts.small}/full", "bs=4k"], check=False)
    full_at = time.time()
    job.until_trains_after(full_at + 1.0)
    job.assert_back_within(0.0, full_at)
    job.hurt(Fault(id="worker", place=Place.STEP, act=Act.KILL, task=int(victim.id.rpartition(".")[2])))
    (killed,) = job.until_claimed("worker")
    lost = job.until(lambda: [one for one in job.events("task.lost") if "started" in one.message], "it cannot start")
    assert "could not be started: this machine cannot start a process: [Errno 28] No space left" in lost[0].message
    job.until_trains_after(lost[0].at)
    assert hosts.state("c") == "in use"
    assert job.num_redone_since(killed.at) <= 1
    job.end()

    c.run(["rm", f"{hosts.small}/full"])
    again = trial(hosts, client, tmp_path / "again", epochs=4, pace=0.3)
    assert hosts.node_of(again.until_size(4)) == {"b", "c"}
    again.end()


def test_a_host_whose_shared_memory_is_full_trains_without_checkpoints_there_and_says_so(
    hosts: FaultyHosts, client: Client, tmp_path: Path
) -> None:
    b = hosts.hosts["b"]
    b.run(["mount", "-o", "remount,size=1m", "/dev/shm"])
    b.run(["dd", "if=/dev/zero", "of=/dev/shm/full", "bs=4k"], check=False)
    with hosts.without("c"):
        job = trial(hosts, client, tmp_path, max_tasks=2)
        job.until_calm(2)
        job.until(lambda: [one for one in job.events() if "in shared memory are off" in one.message], "it is said")
        assert not job.events("task.lost")
        job.end()
    b.run(["rm", "/dev/shm/full"])
    b.run(["mount", "-o", "remount,size=50%", "/dev/shm"])


@pytest.mark.parametrize(("name", "wrong_s"), [("d", HOUR_S), ("e", -HOUR_S)], ids=["ahead", "behind"])
def test_a_machine_whose_clock_is_an_hour_wrong_joins_trains_and_is_told_of_by_the_servers_clock(
    hosts: FaultyHosts, client: Client, tmp_path: Path, name: str, wrong_s: float
) -> None:
    began_at, wrong = time.time(), tmp_path / "wrong"
    wrong.mkdir()
    (wrong / "sitecustomize.py").write_text(WRONG_CLOCK.format(wrong_s))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(hosts.env, "PYTHONPATH", f"{wrong}{os.pathsep}{hosts.env['PYTHONPATH']}")
        hosts.join(name)
    hosts.until_here(name)
    with hosts.without("b"):
        with hosts.without("c"):
            job = trial(hosts, client, tmp_path, epochs=4, pace=0.4)
            job.until_size(2)
        leader = job.leader()
        victim = next(task for task in job.until_size(4) if task.node_id == name and task.id != leader.id)
        with stopped(hosts.agents[name]):
            hosts.until_state(name, "away")
        hosts.until_here(name)
        job.hurt(Fault(id="worker", place=Place.STEP, act=Act.KILL, task=int(victim.id.rpartition(".")[2])))
        (killed,) = job.until_claimed("worker")
        (lost,) = job.lost_since(began_at)
        done = job.end()
    ended_at = time.time()
    assert began_at + wrong_s < killed.at < ended_at + wrong_s, "so late it is on that machine"
    assert done.num_redone_steps <= 1
    assert (lost.task_id, lost.data["exit_code"]) == (victim.id, -signal.SIGKILL)
    assert "epoch 3: loss" in hosts.cli("logs", job.job_id, "--task", leader.id.rpartition(".")[2])
    job.until(lambda: all(task.ended_at for task in client.job(job.job_id).tasks), "its last process is gone")
    tasks, trained = client.job(job.job_id).tasks, {f"{job.job_id}.{beat.task}" for beat in job.beats()}
    codes = {task.id: task.exit_code for task in tasks if task.id in trained}  # one may come just when all is over
    assert codes == {task_id: -9 * (task_id == victim.id) for task_id in trained}
    facts, points = client.machines.get(name).facts, client.metrics(job.job_id).points
    assert facts is not None
    assert points
    shown = [facts.measured_at, done.submitted_at, done.started_at, done.ended_at]
    shown += [event.at for event in job.events()] + [point.at for point in points]
    shown += [use.at for use in client.usage(job_id=job.job_id).points]
    shown += [at for task in tasks for at in (task.started_at, task.ended_at)]
    assert [at for at in shown if at is None or not began_at - 1.0 < at < ended_at + 1.0] == []
    client.machines.drain(name)
