"""The main job, played through the command line with short trainings."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.pace import Pace
from tests.e2e.pool import HERE, Pool

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def sizes(pool: Pool, *jobs: str) -> tuple[int, ...]:
    """Return how many tasks of each job train."""
    with pool.client() as client:
        return tuple(len(pool.training(client, job)) for job in jobs)


def events(pool: Pool, job: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in pool.cli("events", job, "--json").splitlines()]


def kinds(told: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(event["kind"], event["task_id"]) for event in told}


def test_two_trainings_share_eight_slots(pool: Pool, pace: Pace, tmp_path: Path) -> None:
    script = HERE / "paced.py"
    # Batches sleep as the files say, until the stage that needs a training to end.
    pace.set(0.2)
    first = pool.submit(script, "--max", "8", "--name", "first", args=("--pace", str(pace), "--epochs", "30"))
    pool.until(lambda: sizes(pool, first) == (8,), "the first grows to eight")

    seconds = Pace(tmp_path / "pace-of-second", 0.2)
    second = pool.submit(script, "--max", "8", "--name", "second", args=("--pace", str(seconds), "--epochs", "30"))
    pool.until(lambda: sizes(pool, first, second) == (4, 4), "they share four and four")

    pool.cli("set", second, "--priority", "10000")
    pool.until(lambda: sizes(pool, first, second) == (3, 5), "they share three and five")
    assert "10000" in pool.cli("why", second)

    before = pool.json("show", second)["job"]
    victim = next(task for task in pool.json("show", second)["tasks"] if task["state"] == "training")
    os.kill(victim["pid"], signal.SIGKILL)
    pool.until(lambda: ("task.lost", victim["id"]) in kinds(events(pool, second)), "the worker is lost")
    pool.until(lambda: sizes(pool, first, second) == (3, 5), "it gets its slot back")
    after = pool.json("show", second)["job"]
    assert after["progress"]["step"] >= before["progress"]["step"]
    assert after["num_redone_steps"] <= 1

    pace.set(0)
    pool.until(lambda: pool.json("show", first)["job"]["state"] == "completed", "the first ends", 90)
    pool.until(lambda: sizes(pool, second) == (8,), "the second grows to eight")
    seconds.set(0)
    pool.until(lambda: pool.json("show", second)["job"]["state"] == "completed", "the second ends", 90)
    grown = [e["data"]["size"] for e in events(pool, second) if e["kind"] == "generation.switched"]
    assert grown[-1] == 8

    result = tmp_path / "fetched"
    pool.cli("result", second, "--to", str(result))
    assert (result / "model" / "model.pt").stat().st_size > 0
    done = pool.json("show", second)["job"]["progress"]
    assert (done["step"], done["epoch"], done["samples"]) == (300, 30, 30 * 500)
