"""A script that fills the disk is ended, its job fails with the reason, and everybody else's goes on."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.pool import Pool

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

FILLS = """
import os, pathlib, threading
result = pathlib.Path(os.environ["RESULT_DIR"])
for number in range(80):
    (result / f"part-{number}").write_bytes(os.urandom(1_000_000))
threading.Event().wait()
"""
WAITS = "import threading\nthreading.Event().wait()\n"


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Pool]:
    """A server on which a job may have 50 MiB of the disk."""
    server = Pool(tmp_path / "home", slots=5, options=("--max-disk", "50MiB"))
    server.up()
    yield server
    server.close()


def script(tmp_path: Path, name: str, text: str) -> Path:
    (tmp_path / name).mkdir()
    (tmp_path / name / "script.py").write_text(text)
    return tmp_path / name / "script.py"


def test_jobs_that_fill_the_disk_fail_with_the_reason_and_no_other_does(small: Pool, tmp_path: Path) -> None:
    neighbour = small.submit(script(tmp_path, "waits", WAITS), "--fixed", "1")
    fills = script(tmp_path, "fills", FILLS)
    full = {small.submit(fills, kind, "2"): num_tasks for kind, num_tasks in (("--fixed", 2), ("--max", 1))}

    for job_id, num_tasks in full.items():
        with small.client() as client:
            job = client.wait(job_id, timeout_s=90, poll_s=0.1)
            tasks = client.job(job_id).tasks

        assert job.state == "failed"
        assert "was ended because its job's files hold " in job.reason
        assert (
            "MiB, more than the 50.0 MiB that a job may have on this machine's disk (pliant up --max-disk)"
            in job.reason
        )
        assert job.num_restarts == 0
        assert len(tasks) == num_tasks
        assert "more than the 50.0 MiB" in " ".join(small.cli("show", job_id).split())
        assert len(list((small.home / "jobs" / job_id / "result").glob("part-*"))) > 50, "its files stay"
    assert small.json("show", neighbour)["job"]["state"] == "running"
