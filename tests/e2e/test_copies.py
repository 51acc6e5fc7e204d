"""What jobs write survives the disk of the server: it is in a real S3 server, and another server goes on from it."""

import hashlib
import json
import os
import shutil
import signal
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.databases import new_database
from tests.e2e.pace import Pace
from tests.e2e.pool import HERE, Pool
from tests.e2e.processes.look import below, command_of
from tests.objects.s3 import BUCKET, S3, SECRET, s3_server

from pliant.client import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

EPOCHS, STEPS_PER_EPOCH = 12, 10


@pytest.fixture(scope="module")
def _s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with s3_server(tmp_path_factory.mktemp("s3")) as s3:
        yield s3


@pytest.fixture
def s3(_s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    """The server as servers of this test find it, who copy below a prefix of its own."""
    for name, value in _s3.environment.items():
        monkeypatch.setenv(name, value)
    _s3.prefix = f"lab/{tmp_path.name}"
    yield _s3
    _s3.proxy.release()


@pytest.fixture
def pools(tmp_path: Path, s3: S3) -> Iterator[list[Pool]]:
    """Servers of one database with a state folder each; the first runs."""
    with new_database() as url:
        made = [
            Pool(
                tmp_path / name / "home",
                slots=2,
                options=("--port", "0", "--results-to", f"s3://{BUCKET}/{s3.prefix}"),
                database=url,
            )
            for name in ("first", "second")
        ]
        for pool in made:
            pool.home.parent.mkdir()
        made[0].up()
        yield made
        for pool in made:
            pool.close()


def manifest(s3: S3, job_id: str) -> dict[str, Any]:
    """Return the list of a job's copies, empty if there is none, after a check that all of it is there."""
    if f"{s3.prefix}/jobs/{job_id}/manifest.json" not in s3.keys(f"{s3.prefix}/jobs/{job_id}/"):
        return {"step": None, "is_final": False}
    found: dict[str, Any] = json.loads(s3.read(f"{s3.prefix}/jobs/{job_id}/manifest.json"))
    return found


def check(s3: S3, job_id: str) -> None:
    """Check that the store has what the list of a job that has ended says, and nothing else."""
    files = manifest(s3, job_id)["files"]
    for file in files.values():
        content = s3.read(f"{s3.prefix}/jobs/{job_id}/{file['key']}")
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file["num_bytes"], file["sha256"])
    keys = {key.removeprefix(f"{s3.prefix}/jobs/{job_id}/") for key in s3.keys(f"{s3.prefix}/jobs/{job_id}/")}
    assert keys == {"manifest.json", *(file["key"] for file in files.values())}


def lose(pool: Pool, job_id: str) -> None:
    """End a server and all its tasks as a machine ends, and its disk with it."""
    with pool.client() as client:
        pids = [task.pid for task in pool.training(client, job_id) if task.pid is not None]
    pool.signal(signal.SIGKILL)
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    pool.until(lambda: not any(map(lives, pids)), "its tasks are gone")
    pool.home.rename(pool.home.parent / "lost")


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def step_of(client: Client, job_id: str) -> int:
    progress = client.job(job_id).job.progress
    return 0 if progress is None else progress.step


def settings(pool: Pool) -> Any:
    """Return what operators are shown of a server."""
    url = json.loads((pool.home / "server.json").read_text())["url"]
    headers = {"Authorization": f"Bearer {(pool.home / 'token').read_text()}"}
    with urllib.request.urlopen(urllib.request.Request(f"{url}/v1/settings", headers=headers)) as answer:
        return json.load(answer)


def knows_key(pid: int) -> bool:
    """Tell whether the store's key is in the variables of a process."""
    with suppress(OSError):
        return SECRET.encode() in Path(f"/proc/{pid}/environ").read_bytes()
    return False


def train(pool: Pool, pace: Pace) -> str:
    args = ("--epochs", str(EPOCHS), "--pace", str(pace))
    return pool.submit(HERE / "paced.py", "--max", "2", "--audit", args=args)


def test_a_training_goes_on_from_the_store_when_the_servers_machine_and_disk_are_lost(
    pools: list[Pool], s3: S3, pace: Pace, tmp_path: Path
) -> None:
    first, second = pools
    pace.set(0)
    undisturbed = train(first, pace)
    with first.client() as client:
        expected = client.wait(undisturbed, timeout_s=90)
    first.until(lambda: manifest(s3, undisturbed)["is_final"], "all that it wrote is in the store")
    check(s3, undisturbed)
    pace.set(0.1)
    disturbed = train(first, pace)
    step = first.until(lambda: manifest(s3, disturbed)["step"], "a checkpoint is in the store")
    lose(first, disturbed)
    step = manifest(s3, disturbed)["step"]

    pace.set(0)
    second.up()
    with second.client() as client:
        job = client.wait(disturbed, timeout_s=120)
        events = client.events(job_id=disturbed, limit=10_000).events
    switched = [event.data for event in events if event.kind == "generation.switched"]
    resumed = [data["step"] for data in switched if not data["from_size"]]
    assert (job.state, job.claim, job.digest) == ("completed", "exact", expected.digest)
    assert resumed == [0, step]
    assert 0 < step < EPOCHS * STEPS_PER_EPOCH

    second.until((second.home / "jobs" / undisturbed).is_dir, "the job that was over is back")
    second.cli("result", undisturbed, "--to", str(tmp_path / "fetched"))
    assert (
        hashlib.sha256((tmp_path / "fetched" / "model" / "model.pt").read_bytes()).hexdigest()
        == (manifest(s3, undisturbed)["files"]["result/model/model.pt"]["sha256"])
    )
    assert "epoch 11" in second.cli("logs", undisturbed)

    second.cli("delete", undisturbed, "--yes")
    assert s3.keys(f"{s3.prefix}/jobs/{undisturbed}/") == []
    second.until(lambda: manifest(s3, disturbed)["is_final"], "all that the other wrote is in the store")
    check(s3, disturbed)
    assert s3.unfinished() == []
    shutil.rmtree(first.home.parent / "lost")


def test_a_store_that_goes_away_and_comes_back_harms_no_job_and_no_task_sees_its_key(
    pools: list[Pool], s3: S3, pace: Pace, tmp_path: Path
) -> None:
    pool, _ = pools
    pace.set(0.1)
    job_id = train(pool, pace)
    before = pool.until(lambda: manifest(s3, job_id)["step"], "a checkpoint is in the store")
    s3.proxy.refuse()
    with pool.client() as client:
        warned = pool.until(
            lambda: [event for event in client.events(limit=10_000).events if "is not copied to" in event.message],
            "people hear that the store is away",
        )
        assert warned[0].kind == "warning"
        assert "they go on, and it is tried again" in warned[0].message
        assert "nothing is copied to s3://" in settings(pool)["copies"]
        pool.until(lambda: step_of(client, job_id) > before + STEPS_PER_EPOCH, "it trains on")
        assert manifest(s3, job_id)["step"] <= before + STEPS_PER_EPOCH
        seen = pool.submit(HERE / "looking.py", "--fixed", "1", args=(SECRET,))
        assert client.wait(seen, timeout_s=60).state == "completed"
        pace.set(0)
        job = client.wait(job_id, timeout_s=90)
        assert (job.state, job.num_restarts) == ("completed", 0)
        s3.proxy.release()
        pool.until(lambda: manifest(s3, job_id)["is_final"], "all that it wrote has followed", 90)
        check(s3, job_id)
        assert any("answers again" in event.message for event in client.events(limit=10_000).events)
    (holder,) = filter(knows_key, below(int(json.loads((pool.home / "server.json").read_text())["pid"])))
    assert "pliant.entry.copier" in command_of(holder)
    pool.cli("result", seen, "--to", str(tmp_path / "seen"))
    assert (tmp_path / "seen" / "seen.txt").read_text() == ""


def test_a_server_does_not_start_with_a_store_that_it_cannot_use_but_with_one_that_is_away_for_now(
    s3: S3, tmp_path: Path
) -> None:
    def pool(name: str, url: str) -> Pool:
        (tmp_path / name).mkdir(exist_ok=True)
        return Pool(tmp_path / name / "home", slots=1, options=("--port", "0", "--results-to", url))

    missing = pool("missing", "s3://nobody-has-this/x")
    with pytest.raises(AssertionError, match="--results-to: s3://nobody-has-this/x cannot write"):
        missing.up()

    good = pool("good", f"s3://{BUCKET}/{s3.prefix}")
    good.up()
    good.signal(signal.SIGTERM)
    other = pool("other", f"s3://{BUCKET}/{s3.prefix}")
    with pytest.raises(AssertionError, match="holds the results of another pool; give another bucket"):
        other.up()

    s3.proxy.refuse()
    good.up()
    assert "is not copied to" in good.log()
    good.close()
