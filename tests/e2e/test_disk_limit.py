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


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    """A server on which a job may have 50 MiB of the disk, for both tests of this file, which end their jobs."""
    server = Pool(tmp_path_factory.mktemp("small") / "home", slots=3, options=("--max-disk", "50MiB"))
    server.up()
    yield server
    server.close()


def script(tmp_path: Path, name: str, text: str) -> Path:
    (tmp_path / name).mkdir()
    (tmp_path / name / "script.py").write_text(text)
    return tmp_path / name / "script.py"


@pytest.mark.parametrize("kind", [("--fixed", "2"), ("--max", "2")], ids=["fixed", "elastic"])
def test_a_job_that_fills_the_disk_fails_with_the_reason_and_no_other_does(
    small: Pool, tmp_path: Path, kind: tuple[str, ...]
) -> None:
    neighbour = small.submit(script(tmp_path, "waits", WAITS), "--fixed", "1")
    fills = small.submit(script(tmp_path, "fills", FILLS), *kind)

    with small.client() as client:
        job = client.wait(fills, timeout_s=90, poll_s=0.1)
        tasks = client.job(fills).tasks

    assert job.state == "failed"
    assert "was ended because its job's files hold " in job.reason
    assert "MiB, more than the 50.0 MiB that a job may have on this machine's disk (pliant up --max-disk)" in job.reason
    assert job.num_restarts == 0
    assert len(tasks) == (2 if "--fixed" in kind else 1)
    assert "more than the 50.0 MiB" in " ".join(small.cli("show", fills).split())
    assert len(list((small.home / "jobs" / fills / "result").glob("part-*"))) > 50, "its files stay"
    assert small.json("show", neighbour)["job"]["state"] == "running"
    small.cli("stop", neighbour, "--wait")
