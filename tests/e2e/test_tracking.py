"""A training that grows, loses its leader and shrinks is one run of its tracker, with every step once."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import event_files
from tests.e2e.pace import Pace
from tests.e2e.pool import Pool
from tests.tracking.mlflow_server import MlflowServer, mlflow_server

from pliant.api.jobs import JobPatch, JobRequest
from pliant.client import Client
from pliant.core.lifecycle import JobState

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
SCRIPT = Path(__file__).parent / "logged.py"
EPOCHS, STEPS = 12, 120


@pytest.fixture
def mlflow() -> Iterator[MlflowServer]:
    with mlflow_server() as server:
        yield server


def submit(client: Client, mlflow: MlflowServer, pace: Pace, *args: str) -> str:
    request = JobRequest(
        script=SCRIPT.name,
        args=("--pace", str(pace), *args),
        virtual_workers=8,
        metrics_every=1,
        tags={"width": 12, "baseline": ""},
        env={"MLFLOW_TRACKING_URI": mlflow.url, "MLFLOW_TRACKING_TOKEN": "abc"},
    )
    return client.submit(SCRIPT, request).id


def test_one_run_has_every_step_once_whatever_happens_to_the_training(
    pool: Pool, client: Client, mlflow: MlflowServer, pace: Pace, tmp_path: Path
) -> None:
    job_id = submit(client, mlflow, pace, "--epochs", str(EPOCHS))
    pool.until(lambda: mlflow.runs and len(mlflow.run.steps("loss")) > 2, "the first steps are logged")
    client.change(job_id, JobPatch(max_tasks=4))
    pool.until(lambda: len(pool.training(client, job_id)) == 4, "four train")
    (leader, *_) = client.job(job_id).generations[-1].members
    (task,) = (task for task in client.job(job_id).tasks if task.id == leader)
    assert task.pid is not None
    os.kill(task.pid, signal.SIGKILL)
    pool.until(lambda: client.job(job_id).generations[-1].members[0] != leader, "another one leads")
    client.change(job_id, JobPatch(max_tasks=2))
    pool.until(lambda: len(pool.training(client, job_id)) == 2, "two train")
    pace.set(0.0)
    assert client.wait(job_id, timeout_s=90.0).state is JobState.COMPLETED
    pool.until(lambda: mlflow.run.statuses[-1] == "FINISHED", "the run has ended")
    assert mlflow.run.steps("loss") == list(range(1, STEPS + 1))
    assert mlflow.run.steps("done") == list(range(10, STEPS + 1, 10))
    wanted = {"pace": str(pace), "epochs": str(EPOCHS), "model": "linear", "width": "12"}
    assert mlflow.run.params == wanted
    assert {name: mlflow.run.tags[name] for name in ("width", "baseline")} == {"width": "12", "baseline": ""}
    assert client.job(job_id).job.params == {**wanted, "epochs": EPOCHS, "width": 12}
    assert {sent for _, sent in mlflow.asked} == {"Bearer abc"}
    (file,) = client.result(job_id, tmp_path / "fetched").glob("tensorboard/events.out.tfevents.*")
    stored = {point.step: point for point in client.series(job_id, "loss")}
    found = event_files.series(file.read_bytes())["loss"]
    assert [(step, at) for step, at, _ in found] == [(step, stored[step].at) for step in range(1, STEPS + 1)]
    assert [value for _, _, value in found] == pytest.approx([stored[step].value for step in range(1, STEPS + 1)])


def test_a_script_that_fails_in_all_its_tasks_is_a_run_that_failed(
    pool: Pool, client: Client, mlflow: MlflowServer, pace: Pace
) -> None:
    pace.set(0.0)
    job_id = submit(client, mlflow, pace, "--epochs", "2", "--fail")
    assert client.wait(job_id, timeout_s=90.0).state is JobState.FAILED
    assert mlflow.run.statuses[-1] == "FAILED"
    assert mlflow.run.steps("loss") == list(range(1, 11))


def test_without_tracking_nothing_is_logged(pool: Pool, client: Client, mlflow: MlflowServer, pace: Pace) -> None:
    pace.set(0.0)
    request = JobRequest(
        script=SCRIPT.name,
        args=("--pace", str(pace), "--epochs", "1"),
        env={"MLFLOW_TRACKING_URI": mlflow.url},
        tracking=False,
    )
    job_id = client.submit(SCRIPT, request).id
    assert client.wait(job_id, timeout_s=90.0).state is JobState.COMPLETED
    assert not mlflow.asked
