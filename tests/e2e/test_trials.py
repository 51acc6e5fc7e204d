"""A trial's job is held while another one uses its slots, and ends as if nothing had been."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.keeping import KEEPING, WHY
from tests.e2e.pace import Pace
from tests.e2e.pool import HERE, Pool

from pliant.client import Client
from pliant.core.job import Job

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    (tmp_path / "keeping").mkdir()
    monkeypatch.setenv(KEEPING, str(tmp_path / "keeping"))
    server = Pool(tmp_path / "server" / "home", slots=2, module="tests.e2e.keeping")
    server.home.parent.mkdir()
    server.up()
    yield server
    server.close()


def ask(folder: Path, pool: Pool, what: str) -> None:
    file = folder / "keeping" / what
    file.touch()
    pool.until(lambda: not file.exists(), what)


def submit(pool: Pool, pace: Pace) -> str:
    return pool.submit(HERE / "paced.py", "--max", "2", "--min", "1", args=("--pace", str(pace), "--epochs", "3"))


def until(pool: Pool, client: Client, job_id: str, state: str) -> Job:
    pool.until(lambda: client.job(job_id).job.state == state, f"{job_id} is {state}")
    return client.job(job_id).job


def test_a_held_job_gives_its_slots_to_another_and_ends_as_if_nothing_had_been(
    kept: Pool, pace: Pace, tmp_path: Path
) -> None:
    with kept.client() as client:
        pace.set(0.1)
        held = submit(kept, pace)
        kept.until(lambda: (at := client.job(held).job.progress) is not None and at.step > 1, "it trains")
        ask(tmp_path, kept, f"{held}.hold")
        seen = until(kept, client, held, "paused")
        assert (seen.hold, seen.why, seen.num_slots) == (WHY, f"is held: {WHY}", 0)
        assert f"is held: {WHY}" in kept.cli("why", held)
        assert list((kept.home / "jobs" / held / "result" / "checkpoint").iterdir())

        pace.set(0.0)
        other = submit(kept, pace)
        until(kept, client, other, "running")
        undisturbed = until(kept, client, other, "completed")
        assert client.job(held).job.state == "paused"

        ask(tmp_path, kept, f"{held}.release")
        ended = until(kept, client, held, "completed")

    assert ended.progress is not None
    assert ended.progress.step == ended.progress.num_steps
    assert ended.digest == undisturbed.digest != ""
