"""Machines that see nothing of the server's files: what tasks need is brought to them, what they write goes back.

Each host but the server's has an empty file system where the state folder is.
"""

import hashlib
import json
import random
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.catalog.environments.wheels import offline, tiny_wheel
from tests.e2e.conftest import running
from tests.e2e.hosts_pool import AGENTS, GONE_S, SERVER, HostsPool
from tests.e2e.serving import write_model
from tests.e2e.trial import Trial
from tests.hosts import Network, require_hosts

from pliant.client import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


class ApartPool(HostsPool):
    """A pool whose machines share no files with its server."""

    def own_folders(self, name: str) -> Mapping[str, str]:
        self.home.mkdir(mode=0o700, exist_ok=True)
        return {} if name == SERVER else {str(self.home): "512m"}

    def has(self, name: str, path: str) -> bool:
        """Tell whether a machine has something in its copy of the state folder."""
        return self.hosts[name].run(["test", "-e", str(self.home / path)], check=False).returncode == 0


@pytest.fixture(scope="module")
def _apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApartPool]:
    require_hosts()
    folder = tmp_path_factory.mktemp("apart")
    folder.chmod(0o777)
    with Network() as network:
        tiny_wheel(folder / "wheels")
        pool = ApartPool(folder / "home", network)
        pool.env |= offline(folder / "wheels")
        with pool.hosts[SERVER].inside():
            yield pool
            pool.close()


@pytest.fixture
def apart(_apart: ApartPool) -> ApartPool:
    _apart.network.heal()
    running(_apart)
    _apart.join_all()
    with _apart.client() as client:
        for job in client.jobs().jobs:
            if not job.ended and job.spec.endpoint is None:  # one that was removed is still at its end
                client.stop(job.id)
        _apart.until(lambda: not any(slot.taken for slot in client.cluster().slots), "all slots are free")
    return _apart


@pytest.fixture
def client(apart: ApartPool) -> Iterator[Client]:
    with apart.client() as client:
        yield client


def test_a_training_over_machines_without_the_state_folder_outlives_an_agent_and_the_server(
    apart: ApartPool, client: Client, tmp_path: Path
) -> None:
    with apart.without(SERVER):
        job = Trial.begin(apart, client, tmp_path / "trial", epochs=30, max_tasks=5)
        assert apart.node_of(job.until_calm(5)) == set(AGENTS)
        apart.agents["b"].kill(signal.SIGKILL)
        apart.until_state("b", "away")
        apart.join("b")
        apart.until_here("b")
        apart.signal(signal.SIGKILL)
        apart.up()
        apart.until_here(*AGENTS)
        job.until_calm(5)
        job.end()
    assert not job.events("task.lost")
    logs = job.result / "log"
    assert {path.name.rpartition(".")[2] for path in logs.iterdir()} == set(AGENTS)
    for name in AGENTS:
        apart.until(lambda name=name: not apart.has(name, f"jobs/{job.job_id}"), f"{name} keeps nothing of it")  # type: ignore[misc]


COUNTS = """
import os, sys, time
from pathlib import Path
state, result = Path(os.environ["JOB_STATE_DIR"]), Path(os.environ["RESULT_DIR"])
runs = state / "runs"
number = int(runs.read_text()) + 1 if runs.exists() else 1
runs.write_text(str(number))
(result / f"run-{number}").write_text(os.uname().nodename)
Path(f"beside-{number}").write_text("beside the script")
(result / "stolen").unlink(missing_ok=True)
(result / "stolen").symlink_to("/etc/hostname")
print("run", number, "begins", flush=True)
gate = Path(sys.argv[1])
while not gate.exists():
    time.sleep(0.05)
print("run", number, "ends", flush=True)
"""


def test_what_was_on_a_machine_that_is_lost_goes_on_elsewhere_from_what_it_had_sent(
    apart: ApartPool, client: Client, tmp_path: Path
) -> None:
    script, gate = tmp_path / "counts.py", tmp_path / "gate"
    script.write_text(COUNTS)
    with apart.without(SERVER, "c", "d"):
        training = Trial.begin(apart, client, tmp_path / "trial", epochs=40, max_tasks=1, checkpoint_freq=1)
        counts = apart.submit(script, "--fixed", "1", args=(str(gate),))
        apart.until(lambda: apart.node_of(list(client.job(counts).tasks)) == {"b"}, "it runs on b")
        results = apart.home / "jobs" / counts / "result"
        apart.until(lambda: "run 1 begins" in apart.cli("logs", counts), "its log is here while it runs")
        apart.until(lambda: (results / "run-1").exists() and (results.parent / "state" / "runs").exists(), "and files")
        step = int(apart.until(lambda: training.checkpoints(), "a checkpoint is here")[-1].name[5:17])
        training.pace(0.5)
        newest = int(training.checkpoints()[-1].name[5:17])
    apart.kill_host("b")
    apart.until_state("b", "away")
    client.machines.drain("b")
    apart.restart_host("b")
    apart.join("b")
    again = apart.until(lambda: [one for one in client.job(counts).tasks if one.node_id != "b"], "it begins elsewhere")
    training.until_size(1)
    assert apart.node_of(training.training()) <= {SERVER, "c", "d"}
    gate.touch()
    job = client.wait(counts, timeout_s=60)
    assert job.state == "completed", job.reason
    assert len(again) == 1
    assert (results / "run-1").read_text() == "b"
    assert (results / "run-2").read_text() == again[0].node_id
    assert (results.parent / "code" / "beside-2").exists()
    assert not (results / "stolen").exists() or again[0].node_id == SERVER, "links are not sent"
    assert "run 2 ends" in apart.cli("logs", counts)
    training.end(samples=False)
    client.machines.put_back("b")
    assert newest >= step > 0
    assert f"step {newest}" in training.story() or any("checkpoint" in event.message for event in training.events())


def test_what_a_machine_wrote_that_was_cut_off_for_too_long_changes_nothing(
    apart: ApartPool, client: Client, tmp_path: Path
) -> None:
    with apart.without(SERVER, "c", "d"):
        job = Trial.begin(apart, client, tmp_path / "trial", epochs=400, max_tasks=1, checkpoint_freq=1)
        job.until_size(1)
        apart.until(job.checkpoints, "a checkpoint is here")
    with apart.network.cut(apart.hosts["b"]):
        newest = apart.until(lambda: job.checkpoints()[-1], "the newest that was sent")
        apart.until(lambda: apart.node_of(job.training()) - {"b"}, "it goes on elsewhere", GONE_S + 30.0)
        assert newest in job.checkpoints() or job.checkpoints()[-1] > newest
        assert "the end of its log too" in job.story(), "what is lost with the machine is said"
    apart.until_here("b")
    job.pace(0.02)
    with apart.without(SERVER, "c", "d"):
        apart.until(lambda: apart.node_of(job.training()) == {"b"}, "it is back where it was cut off")
    job.end(samples=False)


READS = """
import hashlib, os, sys
from pathlib import Path
import tinything
print("tinything", tinything.ANSWER, sys.prefix)
for path in sorted(Path(os.environ["DATA_DIR"]).rglob("*")):
    if path.is_file():
        print(path.name, hashlib.sha256(path.read_bytes()).hexdigest(), oct(path.stat().st_mode & 0o777))
"""


def test_environments_data_and_models_are_brought_to_where_they_are_used(
    apart: ApartPool, client: Client, tmp_path: Path
) -> None:
    code, letters = tmp_path / "code", tmp_path / "letters"
    for folder in (code, letters / "train"):
        folder.mkdir(parents=True)
    (letters / "train" / "large").write_bytes(random.Random(0).randbytes(3 << 20))
    (letters / "train" / "small").write_bytes(b"small")
    (code / "reads.py").write_text(READS)
    (code / "requirements.txt").write_text("tinything >= 1.0\n")
    apart.cli("data", "add", str(letters))
    options = ("--fixed", "1", "--requirements", "requirements.txt", "--script", "reads.py", "--dataset", "letters")
    for name in ("c", "d"):
        with apart.without(SERVER, *({"b", "c", "d"} - {name})):
            job = client.wait(apart.submit(code, *options), timeout_s=120)
        assert job.state == "completed", job.reason
        said = apart.cli("logs", job.id)
        (environment,) = client.environments.list()
        assert f"tinything 1.0 {apart.home / 'environments' / environment.key / 'venv'}" in said
        for file in ("large", "small"):
            assert f"{file} {hashlib.sha256((letters / 'train' / file).read_bytes()).hexdigest()} 0o440" in said
    assert f"another machine has got {(3 << 20) + len(b'small')} bytes from here" in apart.agent_log("c")
    with apart.without(SERVER, "b", "d"):
        client.endpoints.deploy("double", write_model(tmp_path / "double"), kernel_min=1, kernel_max=1)
        client.endpoints.wait("double", timeout_s=60)
        (version,) = client.endpoints.get("double").versions
        assert {kernel.node_id for kernel in version.kernels} == {"c"}
        answer = json.loads(apart.cli("predict", "double", "--raw", "--data", '{"value": 5}'))
        client.endpoints.remove("double")
    assert answer == {"value": 10, "factor": 2}
