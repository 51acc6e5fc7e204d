"""Checkpoints that are torn, interrupted or find no room, and a server whose disk is full: training goes on."""

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.contracts.faults import Act, Fault, Place
from tests.e2e.pool import Pool
from tests.e2e.trial import BACK_AFTER_KILL_S, STEPS_PER_EPOCH, Trial, step_of

from pliant.client import Client
from pliant.core.event import Event

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

WIDE = 3000
"""A model of 180 kB, checkpoints of 360 kB: larger than what else a task writes."""


def drafts(job: Trial) -> list[Path]:
    return [path for path in (job.result / "checkpoint").iterdir() if path.name.startswith(".")]


def saved(job: Trial) -> list[Event]:
    return job.events("checkpoint.saved")


def until_saved(job: Trial, after: float, num: int = 1) -> None:
    """Wait until so many checkpoints were saved after an instant."""
    job.until(lambda: sum(one.at > after for one in saved(job)) >= num, f"{num} checkpoints")


def test_a_checkpoint_that_is_torn_or_was_not_written_whole_is_skipped_for_the_one_before_it(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial", checkpoint_freq=1, epochs=40)
    for place in (Place.SAVING, Place.NAMING):
        job.until_calm(3)
        job.until(lambda: saved(job), "a checkpoint")
        job.hurt(Fault(id=place, place=place, act=Act.KILL))
        (killed,) = job.until_claimed(place)
        job.assert_back_within(BACK_AFTER_KILL_S, killed.at)
        until_saved(job, killed.at)  # by another leader
        assert job.num_redone_since(killed.at) <= 1, place
    assert len(job.starts()) == 1
    assert not drafts(job)

    job.until_size(3)
    job.hurt(Fault(id="writing", place=Place.NAMING, act=Act.HANG))
    (writing,) = job.until_claimed("writing")
    job.until_trains_after(writing.at)
    with job.all_hurt():
        whole = job.newest_checkpoint()
    job.until(lambda: len(job.starts()) == 2, "it starts again")
    assert job.starts()[-1].data["step"] == whole

    for num_starts, left in ((3, 0.5), (4, 0.0)):
        began_at = job.starts()[-1].at
        job.until_size(3)
        until_saved(job, began_at, 2)
        with job.all_hurt():
            *_, before, newest = job.checkpoints()  # a third one, if the leader had not tidied up
            for torn in (newest, *job.memory_checkpoints()):
                with torn.open("r+b") as file:
                    file.truncate(int(torn.stat().st_size * left))
        job.until(lambda num=num_starts: len(job.starts()) == num, "it starts again")  # type: ignore[misc]
        assert job.starts()[-1].data["step"] == step_of(before), f"{left} of it was left"
    job.end()
    assert not drafts(job)


def test_a_full_disk_costs_checkpoints_and_no_steps(pool: Pool, client: Client, tmp_path: Path) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial", checkpoint_freq=1, width=WIDE)
    job.until_size(3)
    job.until(lambda: saved(job), "a checkpoint")
    job.hurt(Fault(id="full", place=Place.STEP, act=Act.FULL, value=250_000, times=3))
    job.until(lambda: len(job.claims()) == 3, "it is full for all")
    (failed, *_) = job.until(lambda: job.events("checkpoint.failed"), "a checkpoint cannot be written")
    assert "File too large" in failed.message
    job.assert_back_within(0, failed.at)
    with job.all_hurt():
        newest = job.newest_checkpoint()
    job.until(lambda: len(job.starts()) == 2, "it starts again")
    assert job.starts()[1].data["step"] == newest
    job.until(lambda: saved(job)[-1].at > failed.at, "there is room again for those that came after")
    job.end()


def test_a_disk_without_any_room_costs_logs_and_no_steps(pool: Pool, client: Client, tmp_path: Path) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial", checkpoint_freq=1)
    job.until_size(3)
    job.hurt(Fault(id="full", place=Place.STEP, act=Act.FULL, value=0, times=3))
    full = job.until_claimed("full")[0]
    job.until(lambda: job.events("checkpoint.failed"), "a checkpoint cannot be written")
    step = job.until_step((full.step or 0) + 3 * STEPS_PER_EPOCH)
    job.hurt(Fault(id="room", place=Place.STEP, act=Act.FULL, value=-1, times=3, step=step))
    job.until(lambda: any(step_of(path) > step for path in job.checkpoints()), "there is room again")
    done = job.end(samples=False)
    assert done.num_redone_steps == 0
    assert "the audit may have holes" in " ".join(event.message for event in job.events("warning"))


def test_a_server_whose_disk_is_full_holds_up_no_training_and_decides_again_when_there_is_room(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial")
    tasks = job.until_calm(3)
    with full_disk(pool):
        full_at = time.time()
        job.until_trains_after(full_at + 3.0)
        job.assert_back_within(0, full_at)
        job.kill(tasks[1])
        time.sleep(1.5)  # longer than the loop waits until it tries again
    roomy_at = time.time()
    job.assert_trains_within(BACK_AFTER_KILL_S + 1.0, roomy_at)  # it tries again once a second
    job.until_size(3)
    assert len(job.events("task.lost")) == 1
    assert job.end().num_redone_steps <= 1
    assert not saved(job)


@contextmanager
def full_disk(pool: Pool) -> Iterator[None]:
    """Let the server make no file longer, as on a full disk."""
    assert pool.process is not None
    soft, hard = resource.prlimit(pool.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pool.process.pid, resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.prlimit(pool.process.pid, resource.RLIMIT_FSIZE, (soft, hard))
