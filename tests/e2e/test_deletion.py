"""Killing the server in the middle of `pliant delete`: the job is gone at once, the next server removes the rest."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.pool import Pool, run_command

NUM_FILES = 20_000
"""To remove them takes a server long enough to be killed in the middle."""


def files_below(folder: Path) -> Iterator[str]:
    for _, _, names in os.walk(folder):
        yield from names


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_deletion_goes_on_when_a_server_that_was_killed_in_it_is_started_again(pool: Pool, tmp_path: Path) -> None:
    script = tmp_path / "leave.py"
    script.write_text(
        "import os, sys\n"
        "for number in range(int(sys.argv[1])):\n"
        "    os.close(os.open(f'{os.environ[\"RESULT_DIR\"]}/{number}', os.O_CREAT | os.O_WRONLY))\n"
    )
    kept = pool.submit(script, "--fixed", "1", args=("3",))
    job_id = pool.submit(script, "--fixed", "1", "--after", kept, args=(str(NUM_FILES),))
    with pool.client() as client:
        assert client.wait(job_id, timeout_s=120).state == "completed"
    jobs = pool.home / "jobs"
    assert len(list(files_below(jobs / job_id))) > NUM_FILES

    asked = threading.Thread(target=run_command, args=(pool.home, "delete", job_id))
    asked.start()
    while not list(jobs.glob(".trash-*/*")):
        assert asked.is_alive(), "the command ended before it was seen to remove anything"
    pool.signal(signal.SIGKILL)
    asked.join(60)
    left = [path for folder in (*jobs.glob(".trash-*"), jobs / job_id) for path in files_below(folder)]
    assert len(left) > NUM_FILES // 10, "the server was killed in the middle"

    pool.up()
    pool.until(lambda: not [*jobs.glob(".trash-*"), *jobs.glob(job_id)], "the rest is removed")
    assert f"{job_id} was deleted by admin" in pool.cli("show", job_id, code=3)
    assert {kept, job_id} & {job["id"] for job in pool.json("ps", "--all")["jobs"]} == {kept}
    assert {"0", "1", "2"} <= {*files_below(jobs / kept / "result")}, "another job keeps its files"
