"""What serves, and what has a fixed size, over several hosts: it is asked, followed and fetched as on one machine.

A host that loses its power takes kernels and processes along; requests go to others, and so do the jobs.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.conftest import running
from tests.e2e.hosts_pool import SERVER, HostsPool, open_hosts
from tests.e2e.pool import PYTHON, clean_env
from tests.e2e.serving import crowd, write_model
from tests.e2e.test_searches import NUM_TRIALS, OPTIONS, SCRIPT, SPACE

from pliant.api.endpoints import KernelView
from pliant.api.trust import Trust
from pliant.client import Client

BACK_S = 15.0
"""So long after a host was lost an endpoint has its kernels again, also on a busy machine."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

PAIR = """
import os, sys, time
from pathlib import Path
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
print("rank", rank, "met the others at", os.environ["MASTER_ADDR"], flush=True)
is_over = torch.zeros(1)
while not is_over:
    is_over[0] = Path(sys.argv[1]).exists()
    dist.all_reduce(is_over, dist.ReduceOp.MIN)
    time.sleep(0.05)
Path(os.environ["RESULT_DIR"], f"rank-{rank}").write_text("done")
print("rank", rank, "ends", flush=True)
sys.exit(int(sys.argv[2]))
"""


@pytest.fixture(scope="module")
def _hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostsPool]:
    with open_hosts(tmp_path_factory.mktemp("hosts")) as pool:
        yield pool


@pytest.fixture
def hosts(_hosts: HostsPool) -> HostsPool:
    """A pool with all its machines there."""
    running(_hosts)
    _hosts.join_all()
    return _hosts


@pytest.fixture
def client(hosts: HostsPool) -> Iterator[Client]:
    with hosts.client() as client:
        yield client


def ready(client: Client, name: str) -> list[KernelView]:
    (version,) = client.endpoints.get(name).versions
    return [kernel for kernel in version.kernels if kernel.state == "ready"]


def test_an_endpoint_answers_from_several_hosts_and_goes_on_when_one_of_them_is_lost(
    hosts: HostsPool, client: Client, tmp_path: Path
) -> None:
    trust = Trust(certificate=hosts.certificate).context()
    with hosts.without(SERVER):
        client.endpoints.deploy(
            "slow", write_model(tmp_path / "slow", seconds=0.1), kernel_min=2, kernel_max=3, batch_size=1, pipe_size=1
        )
        view = client.endpoints.wait("slow", timeout_s=60)
        assert view.http_url is not None
        with crowd(view.http_url, hosts.token, "slow", num_clients=12, trust=trust) as asked:
            hosts.until(lambda: len(ready(client, "slow")) == 3, "it has grown onto another host")
            assert len({kernel.node_id for kernel in ready(client, "slow")}) == 2
            lost = ready(client, "slow")[0].node_id
            hosts.kill_host(lost)
            hosts.until(
                lambda: len([kernel for kernel in ready(client, "slow") if kernel.node_id != lost]) == 3,
                "as many kernels answer elsewhere",
                BACK_S,
            )
            num = asked.num_answered
            hosts.until(lambda: asked.num_answered > num + 50, "it answers")
        answer = json.loads(hosts.cli("predict", "slow", "--raw", "--data", '{"value": 5}'))
        client.endpoints.remove("slow")

    assert (asked.wrong, set(asked.statuses), asked.num_broken) == ([], {200}, 0)
    assert answer == {"value": 10, "factor": 2}


def test_a_fixed_job_meets_over_two_hosts_and_its_log_result_and_exit_code_are_as_on_one_machine(
    hosts: HostsPool, client: Client, tmp_path: Path
) -> None:
    script, gate = tmp_path / "pair.py", tmp_path / "gate"
    script.write_text(PAIR)
    with hosts.without(SERVER, "d"):
        job_id = hosts.submit(script, "--fixed", "3", "--max-restarts", "0", args=(str(gate), "7"))
        hosts.until(lambda: client.job(job_id).job.state == "running", "all processes are there")
    hosts.until(lambda: "met the others" in hosts.cli("logs", job_id, "--task", "3"), "they have met")
    follower = hosts.hosts[SERVER].popen(
        [PYTHON, "-P", "-m", "pliant.cli.app", "--home", hosts.home, "logs", "-f", job_id, "--task", "3"],
        env=clean_env(),
        output=tmp_path / "followed",
    )
    hosts.until(lambda: "met the others" in (tmp_path / "followed").read_text(), "its log is followed")
    gate.touch()
    job = client.wait(job_id, timeout_s=60)
    follower.wait(60)
    tasks = client.job(job_id).tasks

    assert hosts.node_of(list(tasks)) == {"b", "c"}
    assert job.state == "failed"
    assert "ended with exit code 7, and no restart is left" in job.reason
    assert "rank 2 ends" in (tmp_path / "followed").read_text()
    result = hosts.home / "jobs" / job_id / "result"
    assert sorted(path.name for path in result.glob("rank-*")) == ["rank-0", "rank-1", "rank-2"]


def test_a_search_over_hosts_goes_on_when_a_host_with_trials_is_lost(
    hosts: HostsPool, client: Client, tmp_path: Path
) -> None:
    pace = tmp_path / "pace"
    pace.write_text("0.05")
    client.tune(SCRIPT, parameters=SPACE, name="lost", args=("--pace", str(pace)), **OPTIONS)  # type: ignore[arg-type]

    def training() -> set[str]:
        jobs = [job for job in client.jobs(limit=1000).jobs if job.spec.name.startswith("lost#") and not job.ended]
        return {task.node_id for job in jobs for task in hosts.training(client, job.id)}

    with hosts.without(SERVER):
        found = hosts.until(training, "a trial trains")
        hosts.kill_host(next(iter(found)))
    pace.write_text("0")
    search = client.searches.wait("lost", timeout_s=150, poll_s=0.2)

    assert search.state == "completed", search.reason
    trials = list(client.searches.trials("lost"))
    assert len(trials) == NUM_TRIALS
    assert {trial.state for trial in trials} == {"completed", "pruned"}, "a lost host fails no trial"
    assert search.best is not None
