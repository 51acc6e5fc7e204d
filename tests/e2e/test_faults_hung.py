"""SIGSTOP of a worker in every situation that is not an ordinary step: its lease ends and the others go on."""

import signal
from pathlib import Path

import pytest
from tests.contracts.faults import Act, Fault, Place
from tests.e2e.pool import Pool
from tests.e2e.trial import BACK_AFTER_HANG_S, LEASE_S, STEPS_PER_EPOCH, Trial
from tests.process_state import has_ended

from pliant.client import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def stop(name: str, place: Place, *, rank: int | None = None, task: int | None = None) -> Fault:
    return Fault(id=name, place=place, act=Act.STOP, rank=rank, task=task)


def test_leaders_that_hang_and_two_workers_at_once(pool: Pool, client: Client, tmp_path: Path) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial", max_tasks=4, epochs=40)
    for place in (Place.REDUCED, Place.STEPPED, Place.EVALUATING):
        job.until_calm(4)
        job.hurt(stop(place, place, rank=0))
        (stopped,) = job.until_claimed(place)
        job.assert_back_within(BACK_AFTER_HANG_S, stopped.at)
        assert job.num_redone_since(stopped.at) <= 1, place
        lost = job.lost_since(stopped.at)[0]
        assert "gave no sign of life for 2.0 s and was killed by Pliant" in lost.message
        assert lost.at - stopped.at > LEASE_S / 2, "its last sign of life is a quarter of it older, or a bit more"
        assert has_ended(stopped.pid)

    job.until_calm(4)
    step = job.beats()[-1].step + 2 * STEPS_PER_EPOCH  # both see the plan before it
    ids = ("first", "second")
    job.hurt(*(Fault(id=ids[r], place=Place.STEP, act=Act.STOP, rank=r, step=step) for r in (0, 1)))
    first, second = job.until_claimed(*ids)
    job.assert_back_within(BACK_AFTER_HANG_S, second.at)
    job.until_size(4)
    assert job.num_redone_since(first.at) <= 1
    job.end()
    assert not job.events("checkpoint.saved")


def test_newcomers_givers_and_leavers_that_hang_hold_up_nobody(pool: Pool, client: Client, tmp_path: Path) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial", max_tasks=2, epochs=40)
    for place in (Place.FORMING, Place.TAKING, Place.GIVING):
        job.until_calm(2)
        job.hurt(stop(place, place, task=None if place is Place.GIVING else job.next_task()))
        job.resize(3)
        (stopped,) = job.until_claimed(place)
        job.assert_back_within(BACK_AFTER_HANG_S, stopped.at)
        job.until_size(3)
        assert job.num_redone_since(stopped.at) <= 1, place
        job.resize(2)

    job.resize(3)
    leaver = max(job.until_calm(3), key=lambda task: int(task.id.rpartition(".")[2]))
    stopped_at = job.stop(leaver)
    job.resize(2)
    job.assert_back_within(BACK_AFTER_HANG_S, stopped_at)
    job.until_size(2)
    job.until(lambda: len([task for task in job.client.job(job.job_id).tasks if not task.ended]) == 2, "it is gone")
    assert job.num_redone_since(stopped_at) <= 1
    job.end()
    assert not job.events("checkpoint.saved")


def test_who_hangs_while_a_checkpoint_is_written_is_replaced_and_all_at_once_go_on_from_the_newest(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial", checkpoint_freq=1)
    job.until_size(3)
    job.hurt(stop("stop", Place.NAMING))
    (stopped,) = job.until_claimed("stop")
    job.assert_back_within(BACK_AFTER_HANG_S, stopped.at)
    job.until_size(3)
    assert job.num_redone_since(stopped.at) <= 1
    assert len(job.starts()) == 1

    job.until(lambda: job.events("checkpoint.saved"), "a checkpoint")
    with job.all_hurt(signal.SIGSTOP):
        newest = job.newest_checkpoint()
    job.until(lambda: len(job.starts()) == 2, "it starts again")
    assert job.starts()[1].data["step"] == newest
    job.end()
