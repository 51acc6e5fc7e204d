"""Trainings over several hosts: they grow and shrink over them, and go on when a host, a cable or an agent is lost.

Every training must use each sample once an epoch, and come to the same bits as one process that nobody disturbed.
"""

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.faults import Act, Fault, Place
from tests.e2e.conftest import running
from tests.e2e.hosts_pool import GONE_S, LEASE_S, ORPHAN_S, SERVER, HostsPool, open_hosts, runs_on
from tests.e2e.trial import Trial

from pliant.client import Client

LEASE_AND_MORE_S = LEASE_S + 1.0
UNPLUGGED_S = 0.7
"""A host asks for Ethernet addresses anew once its link is up, once a second from the first packet that it could not
send: so one whose cable is out for longer than a second says nothing for two, which is the lease."""
PARTED_S = 12.0
"""So long two machines that do not reach each other may keep a training at most."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def _hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostsPool]:
    with open_hosts(tmp_path_factory.mktemp("hosts")) as pool:
        yield pool


@pytest.fixture
def hosts(_hosts: HostsPool) -> HostsPool:
    """A pool with all its machines there, and no job on them."""
    _hosts.network.heal()
    running(_hosts)
    _hosts.join_all()
    with _hosts.client() as client:
        for job in client.jobs().jobs:
            if not job.ended:
                client.stop(job.id)
        _hosts.until(lambda: not any(slot.taken for slot in client.cluster().slots), "all slots are free")
    return _hosts


@pytest.fixture
def client(hosts: HostsPool) -> Iterator[Client]:
    with hosts.client() as client:
        yield client


def trial(hosts: HostsPool, client: Client, folder: Path, *faults: Fault, **options: Any) -> Trial:
    return Trial.begin(hosts, client, folder / "trial", *faults, **{"epochs": 40, "max_tasks": 5, **options})


def test_a_training_grows_over_all_machines_and_leaves_one_that_is_drained(
    hosts: HostsPool, client: Client, tmp_path: Path
) -> None:
    with hosts.without("c", "d"):
        job = trial(hosts, client, tmp_path)
        assert hosts.node_of(job.until_calm(4)) == {SERVER, "b"}
    assert hosts.node_of(job.until_calm(5)) > {"b"}
    with hosts.without("b"):
        hosts.until_state("b", "drained")
        assert "b" not in hosts.node_of(job.until_calm(5))
    assert not job.events("task.lost")
    job.end()


def test_a_worker_or_an_agent_that_is_killed_costs_one_step_at_most(
    hosts: HostsPool, client: Client, tmp_path: Path
) -> None:
    job = trial(hosts, client, tmp_path)
    victim = next(task for task in job.until_calm(5) if task.node_id == "b")
    job.hurt(Fault(id="worker", place=Place.STEP, act=Act.KILL, task=int(victim.id.rpartition(".")[2])))
    (killed,) = job.until_claimed("worker")
    job.assert_back_within(2.0, killed.at)
    job.until_calm(5)
    assert job.num_redone_since(killed.at) <= 1

    at, before = time.time(), {task.id for task in job.training()}
    hosts.agents["c"].kill(signal.SIGKILL)
    hosts.until_state("c", "away")
    hosts.join("c")
    hosts.until_here("c")
    job.until_calm(5)
    assert {task.id for task in job.training()} == before, "the next agent has adopted what the first one left"
    assert job.num_redone_since(at) == 0
    job.end()


def test_a_host_that_loses_its_power_costs_one_step_at_most_and_is_used_again_when_it_is_back(
    hosts: HostsPool, client: Client, tmp_path: Path
) -> None:
    job = trial(hosts, client, tmp_path, epochs=80)
    job.until_calm(5)
    at = time.time()
    hosts.kill_host("b")
    job.assert_back_within(LEASE_AND_MORE_S, at)
    job.until_calm(5)
    assert job.num_redone_since(at) <= 1
    assert hosts.state("b") == "away"
    assert "b" not in hosts.node_of(job.training())

    hosts.restart_host("b")
    hosts.join("b")
    hosts.until_here("b")
    with hosts.without("c"):
        hosts.until(lambda: "b" in hosts.node_of(job.training()), "the host is used again")
    job.end()


@pytest.mark.parametrize(("fault", "fault_s"), [("cut", 1.0), ("unplug", UNPLUGGED_S)], ids=["cut", "unplug"])
def test_a_cable_cut_for_a_second_or_out_for_less_costs_nobody(
    hosts: HostsPool, client: Client, tmp_path: Path, fault: str, fault_s: float
) -> None:
    job = trial(hosts, client, tmp_path, epochs=80)
    job.until_calm(5)
    at = time.time()
    for _ in range(3):
        with getattr(hosts.network, fault)(hosts.hosts["c"]):
            time.sleep(fault_s)  # the fault itself
        job.until_calm(5)
    assert [event for event in job.events("generation.forming", "task.lost") if event.at > at] == []
    assert hosts.state("c") == "in use"
    job.end()


def test_a_training_that_is_partly_cut_off_goes_on_without_that_part(
    hosts: HostsPool, client: Client, tmp_path: Path
) -> None:
    job = trial(hosts, client, tmp_path, epochs=80)
    job.until_calm(5)
    at = time.time()
    with hosts.network.cut(hosts.hosts["c"]):
        job.assert_back_within(LEASE_AND_MORE_S, at)
        hosts.until_state("c", "away")
        job.until_calm(5)
        assert job.num_redone_since(at) <= 1
        assert "c" not in hosts.node_of(job.training())
    hosts.until_here("c")
    with hosts.without("b"):
        hosts.until(lambda: "c" in hosts.node_of(job.training()), "its slots are used again")
    job.end()


def test_a_training_that_is_wholly_cut_off_trains_on_and_is_started_nowhere_else(
    hosts: HostsPool, client: Client, tmp_path: Path
) -> None:
    with hosts.without(SERVER, "b", "d"):
        job = trial(hosts, client, tmp_path, max_tasks=2, epochs=80)
        before = {task.id for task in job.until_calm(2)}
    at, step = time.time(), job.beats()[-1].step
    with hosts.network.cut(hosts.hosts["c"]):
        hosts.until_state("c", "away")
        hosts.until(lambda: job.beats()[-1].step > step + 100, "it trains on where nobody hears it", ORPHAN_S / 2)
    hosts.until_here("c")
    job.until_calm(2)
    assert {task.id for task in job.training()} == before
    assert [event for event in job.events("task.started", "task.lost", "generation.forming") if event.at > at] == []
    job.end()


def test_what_is_cut_off_for_too_long_ends_itself_before_it_is_begun_again_elsewhere(
    hosts: HostsPool, client: Client, tmp_path: Path
) -> None:
    with hosts.without(SERVER, "b", "d"):
        job = trial(hosts, client, tmp_path, max_tasks=2, epochs=120, checkpoint_every_s=1.0)
        tasks = job.until_calm(2)
    before, pids, c = {task.id for task in tasks}, [task.pid or 0 for task in tasks], hosts.hosts["c"]
    assert all(runs_on(c, pid) for pid in pids)
    at = time.time()
    with hosts.network.cut(c):
        hosts.until(lambda: not any(runs_on(c, pid) for pid in pids), "its tasks have ended themselves", ORPHAN_S + 10)
        ended_at = time.time()
        last = job.beats()[-1].at
        assert ORPHAN_S - 1.0 < ended_at - at < ORPHAN_S + 3.0
        assert {task.id for task in job.client.job(job.job_id).tasks} == before, "nothing is begun elsewhere yet"
        again = job.until_trains_after(last + 0.5)
        assert again.at > ended_at
        assert GONE_S - 1.0 < again.at - at < GONE_S + 8.0
        assert "c" not in hosts.node_of(job.until_calm(2))
    hosts.until_here("c")
    assert len(job.starts()) == 2, "it began once, and once again"
    assert len({event.task_id for event in job.events("task.lost")}) == 2
    job.end()


def test_a_server_that_is_killed_while_a_host_is_cut_off_starts_nothing_twice(
    hosts: HostsPool, client: Client, tmp_path: Path
) -> None:
    with hosts.without(SERVER, "b", "d"):
        job = trial(hosts, client, tmp_path, max_tasks=2, epochs=120)
        before = {task.id for task in job.until_calm(2)}
    other = Trial.begin(hosts, client, tmp_path / "other", epochs=120, max_tasks=3)
    others = {task.id for task in other.until_calm(3)}
    with hosts.network.cut(hosts.hosts["c"]):
        hosts.until_state("c", "away")
        hosts.signal(signal.SIGKILL)
        hosts.up()
        hosts.until(lambda: hosts.state("b") == hosts.state("d") == "in use", "the others have come back")
    hosts.until_here("c")
    with hosts.client() as anew:
        job.client = other.client = anew
        assert {task.id for task in job.until_calm(2)} == before
        assert {task.id for task in other.until_calm(3)} == others
        job.end()
        other.end()


def parted(job: Trial) -> list[tuple[float, str, set[str]]]:
    """Return when a job was told of machines that do not reach each other, in which words, and which they are."""
    return [
        (event.at, event.message, {str(event.data["node_id"]), str(event.data["other_node_id"])})
        for event in job.events("warning")
        if "do not reach each other" in event.message
    ]


def test_of_two_machines_that_no_longer_reach_each_other_one_is_left_out_and_both_are_named(
    hosts: HostsPool, client: Client, tmp_path: Path
) -> None:
    with hosts.without(SERVER):
        job = trial(hosts, client, tmp_path, epochs=80)
        assert hosts.node_of(job.until_calm(5)) == {"b", "c", "d"}
        at = time.time()
        with hosts.network.cut_between(hosts.hosts["c"], hosts.hosts["d"]):
            job.assert_back_within(PARTED_S, at)
            assert not {"c", "d"} <= hosts.node_of(job.until_size(4))
            (_, words, names), *_ = parted(job)
            assert names == {"c", "d"}
            assert "c and d do not reach each other (both reach the server)" in words
            assert "see that no firewall is between them; the training goes on without" in words
            assert hosts.state("c") == hosts.state("d") == "in use"
            assert job.num_redone_since(at) <= 1
            job.end()


def test_a_firewall_that_is_there_from_the_start_keeps_a_training_off_one_side_of_it_until_it_is_gone(
    hosts: HostsPool, client: Client, tmp_path: Path
) -> None:
    with hosts.without(SERVER):
        with hosts.network.cut_between(hosts.hosts["c"], hosts.hosts["d"]):
            job = trial(hosts, client, tmp_path, epochs=120)
            job.until(lambda: parted(job), "the firewall is noticed")
            assert not {"c", "d"} <= hosts.node_of(job.until_calm(4))
            assert "c and d do not reach each other" in job.job().why
        assert hosts.node_of(job.until_calm(5)) == {"b", "c", "d"}
        assert "do not reach each other" not in job.job().why
        assert [names for _, _, names in parted(job)] in ([{"c", "d"}], [{"c", "d"}] * 2)
        job.end()
