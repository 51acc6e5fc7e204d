"""Ending the server drains and saves what trains; the next one goes on from there."""

import os
import signal
from pathlib import Path

import pytest
from tests.e2e.pace import Pace
from tests.e2e.pool import HERE, Pool
from tests.train.test_elastic import samples_by_epoch

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

EPOCHS, STEPS_PER_EPOCH, NUM_SAMPLES = 20, 10, 500


def test_a_signal_saves_at_a_step_boundary_and_the_next_server_goes_on(tmp_path: Path, pace: Pace) -> None:
    pool = Pool(tmp_path / "home", slots=3)
    pool.up()
    args = ("--epochs", str(EPOCHS), "--pace", str(pace))
    job_id = pool.submit(HERE / "paced.py", "--max", "3", "--audit", "--checkpoint-freq", "0", args=args)
    end_by(pool, signal.SIGTERM, job_id)
    pool.up()
    pace.set(0)
    with pool.client() as client:
        job = client.wait(job_id, timeout_s=90)
        events = client.events(job_id=job_id, limit=10_000).events
        client.result(job_id, tmp_path / "fetched")
    memory = Path("/dev/shm") / f"pliant-{os.getuid()}" / (pool.home / "agent" / "memory").read_text()
    assert memory.exists()
    pool.close()
    assert not memory.exists()
    assert (job.state, job.reason) == ("completed", job.reason)
    assert [event.data["to"] for event in events if event.kind == "job.state"].count("paused") == 1
    saved = [event.data["step"] for event in events if event.kind == "checkpoint.saved"]
    resumed = [e.data["step"] for e in events if e.kind == "generation.switched" and e.data["from_size"] == 0]
    assert len(saved) == 1
    assert resumed == [0, *saved]
    epochs, steps = samples_by_epoch(tmp_path / "fetched")
    assert steps == set(range(EPOCHS * STEPS_PER_EPOCH))
    assert all(sorted(epochs[epoch]) == list(range(NUM_SAMPLES)) for epoch in range(EPOCHS))
    assert job.num_redone_steps == 0


def end_by(pool: Pool, number: signal.Signals, job_id: str) -> None:
    """End the server by a signal while three tasks train; see that they are gone with it."""
    with pool.client() as client:
        pool.until(lambda: len(pool.training(client, job_id)) == 3, "three tasks train")
        tasks = [task.pid for task in client.job(job_id).tasks if not task.ended]
    assert pool.signal(number) == 0, pool.log()
    assert not [pid for pid in tasks if pid is not None and Path(f"/proc/{pid}/comm").exists()]
