"""SIGSTOP of a worker in every situation that is not an ordinary step: its lease ends and the others go on."""

import signal
import time
from pathlib import Path

import pytest
from tests.contracts.faults import Act, Fault, Place
from tests.e2e.pool import Pool
from tests.e2e.trial import BACK_AFTER_HANG_S, PACE_S, STEPS_PER_EPOCH, Trial

from pliant.client import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def stop(place: Place, *, rank: int | None = None, task: int | None = None) -> Fault:
    return Fault(id="stop", place=place, act=Act.STOP, rank=rank, task=task)


@pytest.mark.parametrize("place", [Place.REDUCED, Place.STEPPED, Place.EVALUATING], ids=str)
def test_a_leader_that_hangs(pool: Pool, client: Client, tmp_path: Path, place: Place) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial")
    job.until_size(3)
    job.hurt(stop(place, rank=0))
    (stopped,) = job.until_claimed("stop")
    job.assert_back_within(BACK_AFTER_HANG_S, stopped.at)
    job.until_size(3)
    assert job.end().num_redone_steps <= 1
    assert not job.events("checkpoint.saved")


def test_two_workers_that_hang_at_once(pool: Pool, client: Client, tmp_path: Path) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial", max_tasks=4)
    job.until_size(4)
    step = job.beats()[-1].step + 3 * STEPS_PER_EPOCH  # both see the plan before it
    ids = ("first", "second")
    job.hurt(*(Fault(id=ids[r], place=Place.STEP, act=Act.STOP, rank=r, step=step) for r in (0, 1)))
    _, second = job.until_claimed(*ids)
    job.assert_back_within(BACK_AFTER_HANG_S, second.at)
    assert job.end().num_redone_steps <= 1


@pytest.mark.parametrize("place", [Place.FORMING, Place.TAKING], ids=["while it connects", "while it takes the state"])
def test_a_newcomer_that_hangs(pool: Pool, client: Client, tmp_path: Path, place: Place) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial", max_tasks=2)
    job.until_size(2)
    job.hurt(stop(place, task=3))
    job.resize(3)
    (stopped,) = job.until_claimed("stop")
    job.assert_back_within(BACK_AFTER_HANG_S, stopped.at)
    job.until_size(3)
    assert job.end().num_redone_steps <= 1
    assert not job.events("checkpoint.saved")


def test_a_giver_of_the_state_that_hangs(pool: Pool, client: Client, tmp_path: Path) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial", max_tasks=2)
    job.until_size(2)
    job.hurt(stop(Place.GIVING))
    job.resize(3)
    (stopped,) = job.until_claimed("stop")
    job.assert_back_within(BACK_AFTER_HANG_S, stopped.at)
    job.until_size(3)
    assert job.end().num_redone_steps <= 1


def test_a_leader_that_hangs_while_it_writes_a_checkpoint(pool: Pool, client: Client, tmp_path: Path) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial", checkpoint_freq=1)
    job.until_size(3)
    job.hurt(stop(Place.NAMING))
    (stopped,) = job.until_claimed("stop")
    job.assert_back_within(BACK_AFTER_HANG_S, stopped.at)
    assert job.end().num_redone_steps <= 1
    assert len(job.starts()) == 1


def test_all_workers_that_hang_at_once_go_on_from_the_newest_checkpoint(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial", checkpoint_freq=1)
    job.until_size(3)
    job.until(lambda: job.events("checkpoint.saved"), "a checkpoint")
    with job.all_hurt(signal.SIGSTOP):
        newest = job.newest_checkpoint()
    job.until(lambda: len(job.starts()) == 2, "it starts again")
    assert job.starts()[1].data["step"] == newest
    job.end()


def test_a_leaver_that_hangs_holds_up_nobody(pool: Pool, client: Client, tmp_path: Path) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial")
    tasks = job.until_size(3)
    stopped_at = job.stop(tasks[2])
    job.resize(2)
    job.assert_back_within(BACK_AFTER_HANG_S, stopped_at)
    job.until_size(2)
    job.until(lambda: len([task for task in job.client.job(job.job_id).tasks if not task.ended]) == 2, "it is gone")
    assert job.end().num_redone_steps <= 1


def test_a_worker_that_hangs_while_the_server_is_away(pool: Pool, client: Client, tmp_path: Path) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial", pace=2 * PACE_S)  # not over before the next server starts tasks
    tasks = job.until_size(3)
    pool.signal(signal.SIGKILL)
    job.stop(tasks[1])
    pool.up()
    job.until_trains_after(time.time())
    job.until_size(3)
    assert job.end().num_redone_steps <= 1
    assert not job.events("checkpoint.saved")
