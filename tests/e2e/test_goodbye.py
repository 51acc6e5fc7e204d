"""A training that ends while its server is dead, its process with it: the next server has all that it said last."""

import signal
from pathlib import Path

import pytest
from tests.e2e.pace import Pace
from tests.e2e.pool import HERE, Pool

from pliant.client import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def test_what_a_training_said_last_outlives_its_process_and_its_server(pool: Pool, client: Client, pace: Pace) -> None:
    script = ("--max", "1", "--virtual-workers", "4", "--metrics-every", "1")
    job_id = pool.submit(HERE / "tuned.py", *script, args=("--epochs", "3", "--pace", str(pace)))
    pool.until(lambda: (job := client.job(job_id).job).progress is not None and job.progress.step > 0, "it trains")
    (task,) = client.job(job_id).tasks
    pool.signal(signal.SIGKILL)
    known = Path(f"/proc/{task.pid}")
    assert known.exists(), "it has to end without a server"

    pace.set(0.0)
    pool.until(lambda: not known.exists(), "its process is gone")
    assert pool.process_ended()
    pool.up()
    job = client.wait(job_id, timeout_s=30, poll_s=0.1)

    assert (job.state, job.reason) == ("completed", "all epochs are trained and the model is saved")
    assert job.digest
    assert job.progress is not None
    assert (job.progress.epoch, job.progress.step) == (3, 12)
    points = client.metrics(job_id, names=["val_loss"]).points
    assert [(point.epoch, point.step) for point in points] == [(1, 4), (2, 8), (3, 12)]
    ends = [event for event in client.events(job_id=job_id).events if event.kind == "epoch.finished"]
    assert [event.data["epoch"] for event in ends] == [0, 1, 2]
    assert not any(slot.taken for slot in client.cluster().slots)
