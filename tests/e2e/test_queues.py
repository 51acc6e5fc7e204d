"""Queues over resource groups on a real server: disjoint slots, no preemption, a kill in between, another user."""

import json
import os
import pwd
import signal
from pathlib import Path

import pytest
from tests.e2e.pace import Pace
from tests.e2e.pool import HERE, Pool

from pliant.client import Client
from pliant.core.lifecycle import JobState

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

PACED = HERE / "paced.py"


def held(client: Client, *jobs: str) -> list[int]:
    return [client.job(job_id).job.num_slots for job_id in jobs]


def submit(pool: Pool, pace: Pace, queue: str, most: int) -> str:
    return pool.submit(PACED, "--queue", queue, "--max", str(most), args=("--epochs", "200", "--pace", str(pace)))


def test_two_queues_over_disjoint_groups_outlive_the_server(tmp_path: Path, pace: Pace) -> None:
    pool = Pool(tmp_path / "home", slots=5, options=("--label", "kind=test"))
    pool.up()
    try:
        pool.cli("groups", "add", "three", "--label", "kind=test", "--slots", "3")
        pool.cli("groups", "add", "two", "--host", "local", "--slots", "ngpus + 2")
        pool.cli("groups", "add", "elsewhere", "--label", "kind=other")
        pool.cli("queues", "add", "elastic", "--group", "three")
        pool.cli("queues", "add", "kept", "--group", "two", "--no-preemption", "--policy", "priority")
        pool.cli("queues", "add", "nowhere", "--group", "elsewhere")
        with pool.client() as client:
            elastic, kept = submit(pool, pace, "elastic", 8), submit(pool, pace, "kept", 8)
            nowhere = submit(pool, pace, "nowhere", 1)
            Pool.until(lambda: held(client, elastic, kept) == [3, 2], "each queue has the slots of its group")
            assert "queue kept has no preemption" in pool.cli("why", kept)
            assert held(client, nowhere) == [0]

            urgent = pool.submit(
                PACED, "--queue", "kept", "--priority", "10000", args=("--epochs", "200", "--pace", str(pace))
            )
            other = submit(pool, pace, "elastic", 8)
            Pool.until(lambda: held(client, other) == [1], "a job of the elastic queue shares its slots")
            assert held(client, kept, urgent) == [2, 0], "nobody shrinks a job of the other queue"

            assert pool.signal(signal.SIGKILL) == -9
            pool.up()
            views = {view["queue"]["name"]: view for view in pool.json("queues")["queues"]}
            assert set(views) == {"default", "elastic", "kept", "nowhere"}
            assert views["kept"]["queue"]["preemption"] is False
            pool.cli("groups", "set", "two", "--slots", "1")
            pool.cli("groups", "set", "three", "--slots", "4")
            Pool.until(lambda: sum(held(client, elastic, other)) == 3, "the elastic queue holds what is free")
            assert held(client, kept) == [2], "its group has shrunk, and it still keeps what it has"

            pool.cli("stop", kept, "--wait")
            Pool.until(lambda: held(client, urgent) == [1], "the next job of the queue has what the group has now")
            Pool.until(lambda: sum(held(client, elastic, other)) == 4, "the rest goes to the other group")
            for job_id in (elastic, other, urgent, nowhere):
                pool.cli("stop", job_id)
            Pool.until(lambda: all(client.job(one).job.ended for one in (elastic, other, urgent)), "all have ended")
    finally:
        pool.close()


def test_jobs_of_a_queue_run_as_its_user(pool: Pool, client: Client, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        refused = pool.cli("queues", "add", "theirs", "--run-as", "nobody", code=2)
        assert "only root can start processes as somebody else" in refused
        return
    pool.cli("queues", "add", "theirs", "--run-as", "nobody")
    job_id = pool.submit(PACED, "--queue", "theirs", "--max", "2", args=("--epochs", "2"))
    ended = client.wait(job_id, timeout_s=120)
    assert ended.state is JobState.COMPLETED, ended.reason
    Pool.until(lambda: all(task.ended for task in client.job(job_id).tasks), "nobody writes any more")
    nobody = pwd.getpwnam("nobody").pw_uid
    folder = pool.home / "jobs" / job_id
    for path in (folder / "code", folder / "state", *(folder / "result").rglob("*")):
        assert path.stat().st_uid == nobody, path
    assert folder.stat().st_uid == 0
    assert json.loads(pool.cli("show", job_id, "--json"))["job"]["queue"] == "theirs"
    pool.cli("result", job_id, "--to", str(tmp_path / "fetched"))
    assert any((tmp_path / "fetched").rglob("model.pt"))
