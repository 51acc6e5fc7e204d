"""An elastic training over TLS from end to end: control links, client, and a server that is killed meanwhile."""

import json
import os
import signal
from pathlib import Path

import httpx
import pytest
from tests.e2e.pace import Pace
from tests.e2e.pool import HERE, Pool
from tests.e2e.test_shell import command, on_terminal, piped
from tests.train.test_elastic import samples_by_epoch

from pliant.api.jobs import JobPatch
from pliant.api.trust import Trust
from pliant.client import Client
from pliant.client.http.home import read_record
from pliant.core.errors import Unavailable

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

EPOCHS, STEPS_PER_EPOCH, NUM_SAMPLES = 20, 10, 500


def assert_shells_open(pool: Pool, task_id: str) -> None:
    """See that a terminal and pipes reach a task whose walls, and whose server, are those of TLS."""
    job_id, _, number = task_id.rpartition(".")
    with on_terminal(command(pool, job_id, "--task", number)) as terminal:
        terminal.until(f"{task_id}:")
        terminal.run("echo he''re $PLIANT_TASK_ID", f"here {task_id}")
        terminal.type("exit 7\r")
        assert terminal.process.wait(30) == 7
    data = os.urandom(1 << 20)
    back = piped(pool, job_id, "--task", number, "--", "cat", given=data)
    assert (back.returncode, back.stdout) == (0, data), back.stderr


def test_an_elastic_training_runs_over_tls_and_outlives_the_server(tmp_path: Path, pace: Pace) -> None:
    pool = Pool(tmp_path / "home", slots=3, options=("--tls",))
    pool.up()
    record = json.loads((pool.home / "server.json").read_text())
    assert record["url"].startswith("https://127.0.0.1:")
    pool.until(lambda: f"SHA-256 {record['fingerprint']}" in pool.log(), "its log names the certificate")
    assert (pool.home / "tls" / "key.pem").stat().st_mode & 0o777 == 0o600
    with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
        httpx.get(f"{record['url']}/v1/healthz", timeout=30)
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.get(f"{record['url'].replace('https', 'http')}/v1/healthz", timeout=30)

    args = ("--epochs", str(EPOCHS), "--pace", str(pace))
    job_id = pool.submit(HERE / "paced.py", "--max", "3", "--audit", args=args)
    with pool.client() as client:
        pool.until(lambda: len(pool.training(client, job_id)) == 3, "three tasks train")
        before = {task.id: task.pid for task in pool.training(client, job_id)}
    pace.set(0.5)  # so that it lasts until the next server is there
    pool.signal(signal.SIGKILL)

    pool.up()
    again = read_record(pool.home)
    assert again.fingerprint == record["fingerprint"], "the certificate is made once"
    with pool.client() as client:
        pool.until(lambda: len(pool.training(client, job_id)) == 3, "the next server knows them")
        assert {task.id: task.pid for task in pool.training(client, job_id)} == before
        client.change(job_id, JobPatch(max_tasks=2))
        pool.until(lambda: len(pool.training(client, job_id)) == 2, "and resizes them over their links")
        assert_shells_open(pool, pool.training(client, job_id)[0].id)
        pace.set(0)
        job = client.wait(job_id, timeout_s=90)
    assert (job.state, job.reason) == ("completed", job.reason)
    assert "(admin) at https://127.0.0.1:" in pool.cli("whoami")
    with Client(again.url, None, trust=Trust()) as stranger, pytest.raises(Unavailable, match="cannot be trusted"):
        stranger.people.me()
    pool.close()
    epochs, steps = samples_by_epoch(pool.home / "jobs" / job_id / "result")
    assert steps == set(range(EPOCHS * STEPS_PER_EPOCH))
    assert all(sorted(epochs[epoch]) == list(range(NUM_SAMPLES)) for epoch in range(EPOCHS))
