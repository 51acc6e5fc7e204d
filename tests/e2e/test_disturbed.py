"""One training under a long random schedule of resizes and SIGKILLs equals an undisturbed run of the same seed."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.e2e.pool import HERE, Pool, clean_env
from tests.train.test_elastic import samples_by_epoch

from pliant.client import Client
from pliant.wire.api import JobPatch

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

EPOCHS, STEPS_PER_EPOCH, NUM_SAMPLES = 80, 10, 500
NUM_CHANGES = 16
"""Changes of membership before it is left to end."""


def disturb(pool: Pool, client: Client, job_id: str, dice: random.Random) -> None:
    """Resize or kill; then let it train a few steps, or fewer than it takes to recover."""
    training = pool.training(client, job_id)
    if dice.random() < 0.4 and len(training) > 1:
        for victim in dice.sample(training, dice.choice([1, 2]) if len(training) > 2 else 1):
            assert victim.pid is not None
            os.kill(victim.pid, signal.SIGKILL)
    else:
        client.change(job_id, JobPatch(max_tasks=dice.randint(1, 6)))
    enough = reached(client, job_id) + dice.choice([1, 2, 10, 20])
    pool.until(lambda: ended(client, job_id) or reached(client, job_id) >= enough, "it trains on", 60)


def reached(client: Client, job_id: str) -> int:
    progress = client.job(job_id).job.progress
    return 0 if progress is None else progress.step


def changes(client: Client, job_id: str) -> int:
    events = client.events(job_id=job_id, limit=10_000).events
    return sum(event.kind == "generation.switched" for event in events)


def ended(client: Client, job_id: str) -> bool:
    return client.job(job_id).job.ended


def last_loss(log: str) -> float:
    return float(log.strip().splitlines()[-1].rpartition(" ")[2])


def test_resizes_and_kills_change_neither_samples_nor_steps_nor_the_result(
    pool: Pool, pace: Path, tmp_path: Path
) -> None:
    args = ("--epochs", str(EPOCHS), "--pace", str(pace))
    job_id = pool.submit(HERE / "paced.py", "--max", "2", "--audit", args=args)
    dice = random.Random(20)
    with pool.client() as client:
        pool.until(lambda: reached(client, job_id) > 0, "it trains")
        while changes(client, job_id) < NUM_CHANGES and not ended(client, job_id):
            disturb(pool, client, job_id, dice)
        pace.write_text("0")
        job = client.wait(job_id, timeout_s=120)
        assert (job.state, job.reason) == ("completed", job.reason)
        num_changes = changes(client, job_id)
        client.result(job_id, tmp_path / "fetched")
    assert num_changes >= NUM_CHANGES, "it ended before it was disturbed enough to prove anything"
    assert job.progress is not None
    assert job.progress.step == EPOCHS * STEPS_PER_EPOCH

    epochs, steps = samples_by_epoch(tmp_path / "fetched")
    assert steps == set(range(EPOCHS * STEPS_PER_EPOCH))
    assert all(sorted(epochs[epoch]) == list(range(NUM_SAMPLES)) for epoch in range(EPOCHS))

    alone = tmp_path / "alone"
    log = subprocess.run(
        [sys.executable, str(HERE / "paced.py"), "--epochs", str(EPOCHS)],
        env={**clean_env(), "RESULT_DIR": str(alone), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    expected = torch.load(alone / "model" / "model.pt", weights_only=True)
    model = torch.load(tmp_path / "fetched" / "model" / "model.pt", weights_only=True)
    for name, value in expected.items():
        torch.testing.assert_close(model[name], value, rtol=1e-3, atol=1e-4)
    assert job.progress.loss == pytest.approx(last_loss(log), rel=1e-3)
