"""A script with `tensorflow.keras`, resized while it runs, comes to the bits of one task by itself."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from tests.e2e.pace import Pace
from tests.e2e.pool import HERE, Pool, clean_env

from pliant.api.jobs import JobPatch
from pliant.client import Client
from pliant.core.job import JobId

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
SCRIPT = HERE / "kerasing.py"


def is_trained_by(pool: Pool, client: Client, job_id: JobId, size: int) -> bool:
    return len(pool.training(client, job_id)) == size


def test_a_keras_training_that_is_resized_comes_to_the_same_bits(
    pool: Pool, client: Client, pace: Pace, tmp_path: Path
) -> None:
    pace.set(4.0)  # an epoch: the job is not over before other processes have imported Keras
    job_id = JobId(pool.submit(SCRIPT, "--max", "1", args=("--pace", str(pace), "--epochs", "20")))
    for size in (1, 2):
        client.change(job_id, JobPatch(max_tasks=size))
        pool.until(partial(is_trained_by, pool, client, job_id, size), f"{size} tasks train", 120)
    pace.set(0.0)
    ended = client.wait(job_id, timeout_s=120)

    alone = subprocess.run(
        [sys.executable, "-m", "pliant.cli.app", "run", str(SCRIPT), "--epochs", "20"],
        env=clean_env() | {"RESULT_DIR": str(tmp_path / "alone"), "OMP_NUM_THREADS": "1"},
        cwd=tmp_path,
        timeout=120,
        check=False,
    )
    result = client.result(job_id, tmp_path / "result")
    assert (alone.returncode, ended.state.value) == (0, "completed"), ended.reason
    digests = [(folder / "model" / "digest").read_text() for folder in (tmp_path / "alone", result)]
    assert digests[0] == digests[1]
    assert (result / "model" / "model.keras").is_file()
