"""One training under a long random schedule of resizes and SIGKILLs equals an undisturbed run of the same seed."""

import os
import random
import shutil
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from tests.e2e.pace import Pace
from tests.e2e.pool import HERE, Pool, clean_env
from tests.train.test_elastic import samples_by_epoch
from tests.train.zoo import NUM_SAMPLES
from tests.warm import run_script

from pliant.api.jobs import JobPatch
from pliant.client import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

EPOCHS, STEPS_PER_EPOCH = 40, 5
MODELS = ("cnn", "transformer")
"""Between them they have all that makes results differ; the third of `zoo.py` has nothing that they lack."""
NUM_CHANGES = 8
"""Changes of membership before it is left to end."""


def disturb(pool: Pool, client: Client, job_id: str, dice: random.Random) -> None:
    """Resize or kill; then let it train a few steps, or fewer than it takes to recover."""
    training = pool.training(client, job_id)
    if dice.random() < 0.4 and len(training) > 1:
        for victim in dice.sample(training, dice.choice([1, 2]) if len(training) > 2 else 1):
            assert victim.pid is not None
            with suppress(ProcessLookupError):  # it has just left, as it was told to
                os.kill(victim.pid, signal.SIGKILL)
    else:
        client.change(job_id, JobPatch(max_tasks=dice.randint(1, 6)))
    enough = reached(client, job_id) + dice.choice([1, 2, 5, 10])
    pool.until(lambda: ended(client, job_id) or reached(client, job_id) >= enough, "it trains on", 60)


def reached(client: Client, job_id: str) -> int:
    progress = client.job(job_id).job.progress
    return 0 if progress is None else progress.step


def changes(client: Client, job_id: str) -> int:
    events = client.events(job_id=job_id, limit=10_000).events
    return sum(event.kind == "generation.switched" for event in events)


def ended(client: Client, job_id: str) -> bool:
    return client.job(job_id).job.ended


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("code")
    shutil.copy(HERE / "shuffled.py", folder)
    shutil.copy(HERE.parent / "train" / "zoo.py", folder)
    return folder


def undisturbed(code: Path, model: str) -> str:
    """Return what the same script prints when it is run by hand, with as many virtual workers."""
    env = {**clean_env(), "OMP_NUM_THREADS": "1", "PLIANT_VIRTUAL_WORKERS": "8"}
    done = run_script(code / "shuffled.py", model, "--epochs", str(EPOCHS), folder=code, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_resizes_and_kills_change_neither_samples_nor_steps_nor_one_bit_of_the_result(
    pool: Pool, pace: Pace, code: Path, tmp_path: Path
) -> None:
    dice = random.Random(20)
    with pool.client() as client:
        for model in MODELS:
            pace.set(0.1)
            script = ("--script", "shuffled.py", "--max", "2", "--virtual-workers", "8", "--audit")
            args = (model, "--epochs", str(EPOCHS), "--pace", str(pace))
            job_id = pool.submit(code, *script, args=args)
            pool.until(lambda job_id=job_id: reached(client, job_id) > 0, "it trains")  # type: ignore[misc]
            while changes(client, job_id) < NUM_CHANGES and not ended(client, job_id):
                disturb(pool, client, job_id, dice)
            pace.set(0)
            job = client.wait(job_id, timeout_s=120)
            assert job.state == "completed", job.reason
            assert changes(client, job_id) >= NUM_CHANGES, "it ended before it was disturbed enough to prove anything"
            assert job.progress is not None
            assert job.progress.step == EPOCHS * STEPS_PER_EPOCH

            fetched = tmp_path / model
            client.result(job_id, fetched)
            epochs, steps = samples_by_epoch(fetched)
            assert steps == set(range(EPOCHS * STEPS_PER_EPOCH))
            assert all(sorted(epochs[epoch]) == list(range(NUM_SAMPLES)) for epoch in range(EPOCHS))

            claim, loss, _, digest = undisturbed(code, model).split()
            assert (job.claim, job.digest) == (claim, digest) == ("exact", digest), job.claim_reason
            assert job.progress.loss == float(loss)
