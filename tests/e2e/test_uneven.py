"""Tasks of different speed share the virtual workers of a job, over a server and processes."""

from pathlib import Path
from typing import Any

import pytest
from tests.e2e.pace import Pace
from tests.e2e.pool import Pool
from tests.e2e.uneven import NUM_SAMPLES
from tests.train.test_elastic import samples_by_epoch

from pliant.api.jobs import JobRequest
from pliant.client import Client
from pliant.core.job import Job, JobId
from pliant.core.lifecycle import JobState

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
SCRIPT = Path(__file__).parent / "uneven.py"
NUM_STEPS, NUM_EPOCHS = 440, 40


def submit(client: Client, pace: Pace, **settings: Any) -> JobId:
    request = JobRequest(script=SCRIPT.name, args=("--pace", str(pace)), virtual_workers=8, audit=True, **settings)
    return client.submit(SCRIPT, request).id


def completed(client: Client, job_id: JobId) -> Job:
    job = client.wait(job_id, timeout_s=60.0)
    assert job.state is JobState.COMPLETED, job.reason
    return job


def test_the_slow_task_gets_less_and_the_result_is_that_of_one_task(pool: Pool, client: Client, pace: Pace) -> None:
    pace.set(0.02)
    job_id = submit(client, pace, min_tasks=2, max_tasks=2, balance="speed")

    def shares() -> tuple[int, ...]:
        progress = client.job(job_id).job.progress
        return () if progress is None else progress.shares

    first, second = pool.until(shares, "they share by their speed", 60.0)
    assert first + second == 8
    is_slow_first = client.job(job_id).generations[-1].members[0].endswith(".2")
    assert (first < second) == is_slow_first, (first, second)
    assert f"8; by speed {first}, {second}" in pool.cli("show", job_id)
    pace.set(0.0)
    job = completed(client, job_id)
    alone = completed(client, submit(client, pace))

    assert job.digest == alone.digest != ""
    assert job.num_redone_steps == 0
    epochs, steps = samples_by_epoch(pool.home / "jobs" / job_id / "result")
    assert steps == set(range(NUM_STEPS))
    assert {epoch: sorted(used) for epoch, used in epochs.items()} == {
        epoch: list(range(NUM_SAMPLES)) for epoch in range(NUM_EPOCHS)
    }
