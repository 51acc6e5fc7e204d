"""Jobs that run after others and arrays, with real processes and a server that is killed meanwhile."""

import json
import signal
from itertools import pairwise
from pathlib import Path

import pytest
from tests.e2e.pool import Pool

from pliant.client import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

GATED = """
import os, sys, time
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
"""
TOLD = """
import json, os, sys
told = {name: os.environ[name] for name in os.environ if name.startswith(("PLIANT_ARRAY", "PLIANT_JOB_INDEX"))}
with open(os.path.join(os.environ["RESULT_DIR"], "told.json"), "w") as out:
    json.dump([sys.argv[1:], told], out)
with open("beside.txt", "a") as out:  # in its own copy of the code
    out.write(os.environ["PLIANT_JOB_INDEX"])
sys.exit("--fail=1" in sys.argv)
"""


def test_an_array_after_a_job_survives_a_killed_server_and_ends_what_needs_all_of_it(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    gated, told, gate = tmp_path / "gated.py", tmp_path / "told.py", tmp_path / "gate"
    gated.write_text(GATED)
    told.write_text(TOLD)
    first = pool.submit(gated, "--fixed", "1", args=(str(gate),))
    options = ("--fixed", "1", "--max-restarts", "0", "--array-max", "1", "--after", first)
    values = ("--array", "lr=0.1,-1", "--array", "fail=0,1")
    array = pool.json("submit", str(told), *options, *values, "--", "--epochs", "3")
    needs_all = pool.submit(told, "--fixed", "1", "--after", array["id"])
    takes_any = pool.submit(gated, "--fixed", "1", "--after-any", array["id"], args=(str(gate),))
    pool.until(lambda: client.job(first).job.state == "running", "the first runs")

    pool.signal(signal.SIGKILL)
    pool.up()
    with pool.client() as again:
        assert again.job(array["jobs"][0]["id"]).job.why == f"waits for {first} to complete"
        gate.touch()
        found = again.arrays.wait(array["id"], timeout_s=90)
        last = again.wait(takes_any, timeout_s=60)
        ended = again.wait(needs_all, timeout_s=30)
        before = again.job(first).job
        folder = again.result(found.jobs[2].id, tmp_path / "result")

    assert found.states == {"completed": 2, "failed": 2}
    assert (last.state, ended.state, ended.started_at) == ("completed", "stopped", None)
    words = f"{found.jobs[1].id} of {found.id} failed, and {needs_all} was to run after {found.id} had completed"
    assert ended.reason == words
    assert (before.state, before.num_restarts) == ("completed", 0), "a killed server is missed by nobody"
    in_order = [before, *found.jobs, last]
    spans = [(job.started_at or 0.0, job.ended_at or 0.0) for job in in_order]
    assert all(one[1] <= two[0] for one, two in pairwise(spans)), "two ran at once"
    arguments, variables = json.loads((folder / "told.json").read_text())
    assert arguments == ["--epochs", "3", "--lr=-1", "--fail=0"]
    assert variables == {
        "PLIANT_ARRAY": found.id,
        "PLIANT_JOB_INDEX": "2",
        "PLIANT_ARRAY_LR": "-1",
        "PLIANT_ARRAY_FAIL": "0",
    }
    assert (folder / "work/beside.txt").read_text() == "2"


def test_waiting_for_an_array_tells_by_its_code_whether_all_completed(pool: Pool, tmp_path: Path) -> None:
    script = tmp_path / "told.py"
    script.write_text(TOLD)
    options = ("--fixed", "1", "--max-restarts", "0", "--wait")

    pool.cli("submit", str(script), *options, "--array", "a=1,2")
    said = pool.cli("submit", str(script), *options, "--array", "fail=0,1", code=1)

    assert "1 completed, 1 failed" in said.splitlines()[-1]
