"""A job that loses all its tasks goes on from shared memory, and leaves nothing there when it is over."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from tests.e2e.pace import Pace
from tests.e2e.pool import HERE, Pool
from tests.train.test_elastic import samples_by_epoch

from pliant.train.state import checkpoint

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

EPOCHS, STEPS_PER_EPOCH, NUM_SAMPLES = 8, 10, 500


def folder_of(pool: Pool, job_id: str) -> Path:
    return Path("/dev/shm") / f"pliant-{os.getuid()}" / (pool.home / "agent" / "memory").read_text() / job_id


def test_all_tasks_killed_in_the_middle_of_an_epoch_cost_seconds_and_nothing_stays_behind(
    pool: Pool, pace: Pace
) -> None:
    pace.set(0.2)
    args = ("--epochs", str(EPOCHS), "--pace", str(pace))
    job_id = pool.submit(HERE / "paced.py", "--max", "2", "--audit", "--checkpoint-freq", "0", args=args)
    folder = folder_of(pool, job_id)
    with pool.client() as client:
        pool.until(lambda: len(pool.training(client, job_id)) == 2, "two tasks train")
        pool.until(lambda: list((folder / "checkpoints").glob("step-*.ckpt")), "a checkpoint is in shared memory")
        killed = [task.pid for task in pool.training(client, job_id)]
        for pid in killed:
            assert pid is not None
            os.kill(pid, signal.SIGSTOP)  # so that the newest checkpoint stays the newest until all are dead
        newest = checkpoint.newest(folder / "checkpoints")
        for pid in killed:
            with suppress(ProcessLookupError):  # the server kills them, too, when their silence is as long as a lease
                os.kill(pid or 0, signal.SIGKILL)
        pace.set(0)
        job = client.wait(job_id, timeout_s=90)
        events = client.events(job_id=job_id, limit=10_000).events
        client.result(job_id, pool.home.parent / "fetched")
    assert (job.state, job.reason) == ("completed", job.reason)
    assert newest is not None
    resumed = [e.data["step"] for e in events if e.kind == "generation.switched" and e.data["from_size"] == 0]
    assert resumed == [0, newest["step"]]
    assert [event for event in events if event.kind == "checkpoint.saved"] == []
    _, steps = samples_by_epoch(pool.home.parent / "fetched")
    assert steps == set(range(EPOCHS * STEPS_PER_EPOCH))
    pool.until(lambda: not folder.exists(), "the job's shared memory is given back")
