"""A Trainer of Hugging Face on a real server: 1 task, 2, one killed, all gone and one back; the bits of one alone."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.pace import Pace
from tests.e2e.pool import HERE, Pool, clean_env

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

SCRIPT = HERE / "tokens.py"
PATIENCE_S = 120.0
"""Each task imports transformers first, which takes long where two do at once."""


def digest_alone(folder: Path) -> str:
    env = {**clean_env(), "RESULT_DIR": str(folder), "OMP_NUM_THREADS": "1", "PLIANT_VIRTUAL_WORKERS": "8"}
    subprocess.run([sys.executable, str(SCRIPT)], cwd=folder, env=env, check=True, capture_output=True, timeout=200)
    return (folder / "model" / "digest").read_text()


def test_a_trainer_is_resized_killed_and_resumed_and_comes_to_the_bits_of_a_run_alone(
    pool: Pool, pace: Pace, tmp_path: Path
) -> None:
    pace.set(0.4)  # the job is not over before other processes have imported transformers
    job = pool.submit(SCRIPT, "--virtual-workers", "8", args=(str(pace),))
    assert "cannot train elastically" not in pool.cli("events", job)

    def num_training() -> int:
        with pool.client() as client:
            return len(pool.training(client, job))

    def is_at(step: int) -> bool:
        progress = pool.json("show", job)["job"]["progress"]
        return progress is not None and int(progress["step"]) >= step

    pool.until(lambda: num_training() == 1, "it trains", PATIENCE_S)
    pool.until(lambda: is_at(1), "a first step", PATIENCE_S)
    pool.cli("set", job, "--max", "2")
    pool.until(lambda: num_training() == 2, "two train", PATIENCE_S)
    victim = next(task for task in pool.json("show", job)["tasks"] if task["state"] == "training")
    os.kill(victim["pid"], signal.SIGKILL)
    pool.until(lambda: f'"{victim["id"]}"' in pool.cli("events", job, "--json"), "it is missed", PATIENCE_S)
    pool.cli("set", job, "--max", "1")
    pool.until(lambda: num_training() == 1, "one trains", PATIENCE_S)
    assert not is_at(50)
    pool.cli("down")
    pool.until(pool.process_ended, "all have left", PATIENCE_S)
    pace.set(0)
    pool.up()
    pool.until(lambda: pool.json("show", job)["job"]["state"] == "completed", "it ends", PATIENCE_S)

    shown = pool.json("show", job)["job"]
    assert (shown["progress"]["step"], shown["num_redone_steps"] <= 1) == (50, True)
    assert shown["claim"]["level"] == "exact" if isinstance(shown["claim"], dict) else shown["claim"] == "exact"
    result = tmp_path / "result"
    pool.cli("result", job, "--to", str(result))
    alone = tmp_path / "alone"
    alone.mkdir()
    assert (result / "model" / "digest").read_text() == digest_alone(alone)
    assert sorted(path.name for path in (result / "out").glob("checkpoint-*")) == ["checkpoint-45", "checkpoint-50"]
    assert {"config.json", "model.safetensors"} <= {path.name for path in (result / "model").iterdir()}
    assert "eval_loss" in pool.cli("metrics", job, "--json")
