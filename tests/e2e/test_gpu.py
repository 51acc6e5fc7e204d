"""A server whose slots are this machine's GPUs: trainings use them within walls, and kernels share one."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.e2e.pool import Pool

from pliant.client import Client
from pliant.core.errors import PliantError

pytestmark = [pytest.mark.gpu, pytest.mark.slow, pytest.mark.timeout(300)]

HERE = Path(__file__).parent
TRAINING, MODEL = HERE / "gpu_training.py", HERE / "gpu_model.py"


@pytest.fixture(scope="module")
def _gpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    server = Pool(tmp_path_factory.mktemp("gpus") / "home", slots=None)
    server.up()
    yield server
    server.close()


@pytest.fixture
def pool(_gpus: Pool) -> Pool:
    return _gpus


def digest(pool: Pool, client: Client, job_id: str, weights: Path) -> str:
    """Wait until a job has ended; return the digest of what it computed."""
    pool.until(lambda: client.job(job_id).job.ended, f"{job_id} ends", 120)
    job = client.job(job_id).job
    assert job.state == "completed", f"{job.reason}\n{pool.cli('logs', job_id)}"
    return weights.read_text()


def test_a_training_killed_on_a_gpu_goes_on_and_ends_with_the_same_bits(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    assert len(client.cluster().slots) == torch.cuda.device_count()
    once, again = tmp_path / "once", tmp_path / "again"
    undisturbed = digest(pool, client, pool.submit(TRAINING, args=(str(once),)), once)

    job_id = pool.submit(TRAINING, args=(str(again), "--pace", "0.1"))
    pool.until(lambda: (now := client.job(job_id).job.progress) and now.step >= 12, "it is in its 2nd epoch")
    (task,) = pool.training(client, job_id)
    assert task.pid is not None
    os.kill(task.pid, signal.SIGKILL)

    assert digest(pool, client, job_id, again) == undisturbed
    assert f"on {torch.cuda.get_device_name()}" in pool.cli("logs", job_id)
    assert len(client.job(job_id).tasks) == 2


def test_kernels_of_two_endpoints_share_a_gpu_and_each_keeps_to_its_part(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    for name in ("left", "right"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "serve.py").write_text(MODEL.read_text())
        client.endpoints.deploy(name, tmp_path / name, slots_per_task=0.25, kernel_min=1, kernel_max=1)
    for name in ("left", "right"):
        assert client.endpoints.wait(name, timeout_s=120).state == "serving"

    def ask(name: str, **asked: Any) -> Any:
        return client.endpoints.predict(name, asked, raw=True)

    def kernel(name: str) -> Any:
        (version,) = client.endpoints.get(name).versions
        (one,) = version.kernels
        return one

    try:
        answers = [ask(name, value=21.0) for name in ("left", "right")]
        assert [one["value"] for one in answers] == [42.0, 42.0]
        assert {one["device"] for one in answers} == {torch.cuda.get_device_name()}
        assert answers[0]["pid"] != answers[1]["pid"]
        assert kernel("left").slots == kernel("right").slots

        assert "memory" in ask("left", take=0.3)["refused"]
        assert "pid" in ask("left", take=0.1)

        first = kernel("right").task_id
        with suppress(PliantError):  # its kernel may be ended before the answer is there
            ask("right", take=0.5, without_limit=True)  # it undoes the limit, and its driver lets it
        pool.until(lambda: _is_ended_for_memory(client, "right", first), "the kernel that took too much is ended")
        assert ask("right", value=4.0)["value"] == 8.0, "another one took its place"
        assert ask("left", value=5.0)["value"] == 10.0, "its neighbour noticed nothing"
        assert ask("left", value=5.0)["pid"] == answers[0]["pid"]
    finally:
        for name in ("left", "right"):
            client.endpoints.remove(name)


def _is_ended_for_memory(client: Client, name: str, task_id: str) -> bool:
    (version,) = client.endpoints.get(name).versions
    assert version.job_id is not None
    events = client.events(job_id=version.job_id).events
    return any(task_id in event.message and "of its GPU's memory" in event.message for event in events)
