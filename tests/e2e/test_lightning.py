"""A training with Lightning as a job: one task, two, one is killed, all leave, and another job goes on with one."""

import os
import signal
from pathlib import Path

import pytest
from tests.e2e.pace import Pace
from tests.e2e.pool import HERE, Pool
from tests.warm import run_script

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SCRIPT = HERE / "lightning_paced.py"


def alone(folder: Path, pace: Pace) -> str:
    """Return the digest of the model that the script alone comes to."""
    folder.mkdir()
    environment = {**os.environ, "RESULT_DIR": str(folder), "OMP_NUM_THREADS": "1", "PLIANT_VIRTUAL_WORKERS": "8"}
    done = run_script(SCRIPT, str(pace), folder=folder, env=environment)
    assert done.returncode == 0, done.stderr
    assert "stopped after epoch 10, step 40" in done.stdout
    return (folder / "model/digest").read_text()


def test_lightning_grows_is_killed_and_goes_on_to_the_same_bits(pool: Pool, pace: Pace, tmp_path: Path) -> None:
    pace.set(1.0)  # a step takes 2 to 8 s: the job is not over before another process has imported Lightning
    job = pool.submit(SCRIPT, "--virtual-workers", "8", args=(str(pace),))

    def size() -> int:
        with pool.client() as client:
            return len(pool.training(client, job))

    pool.until(lambda: size() == 1, "one task trains", 60)
    pool.cli("set", job, "--max", "2")
    pool.until(lambda: size() == 2, "two train", 90)
    victim = next(task for task in pool.json("show", job)["tasks"] if task["state"] == "training")
    os.kill(victim["pid"], signal.SIGKILL)
    pool.until(lambda: victim["id"] in pool.cli("events", job), "it is known to be lost")
    pool.cli("stop", job)
    pool.until(lambda: pool.json("show", job)["job"]["state"] == "stopped", "all have left", 60)
    left_at = pool.json("show", job)["job"]["progress"]["step"]
    pace.set(0)
    job = pool.submit(SCRIPT, "--virtual-workers", "8", "--resume-from", job, args=(str(pace),))
    pool.until(lambda: pool.json("show", job)["job"]["state"] == "completed", "it ends", 120)

    shown = pool.json("show", job)["job"]
    assert shown["claim"] == "exact"
    assert 0 < left_at < shown["progress"]["step"] == 40
    pool.cli("result", job, "--to", str(tmp_path / "fetched"))
    assert (tmp_path / "fetched/model/digest").read_text() == alone(tmp_path / "alone", pace)
    [saved] = (tmp_path / "fetched/lightning").iterdir()
    assert saved.name.startswith("epoch="), "one file, the leader's"
    assert "VAL_LOSS" in pool.cli("metrics", job)
