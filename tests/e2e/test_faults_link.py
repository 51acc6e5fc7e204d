"""The control link cut, and the server away, while workers die: nothing but the change of members waits for it."""

import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.contracts.faults import Act, Fault, Place
from tests.e2e.pool import Pool
from tests.e2e.trial import BACK_AFTER_KILL_S, LEASE_S, PACE_S, Trial
from tests.process_state import has_ended

from pliant.client import Client
from pliant.core.job import Task

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


CUT_S = 0.7
"""Well within a lease, with what passes before and after it without a word."""


def cut(name: str, *, times: int = 1, rank: int | None = None) -> Fault:
    return Fault(id=name, place=Place.STEP, act=Act.CUT, value=CUT_S, rank=rank, times=times)


def test_a_cut_link_is_made_again_and_training_goes_on(pool: Pool, client: Client, tmp_path: Path) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial")
    for rank in (0, 1):
        job.until_calm(3)
        job.hurt(cut(f"rank {rank}", rank=rank))
        (claim,) = job.until_claimed(f"rank {rank}")
        job.until_trains_after(claim.at + CUT_S)
        job.assert_back_within(0, claim.at)
    job.resize(2)
    job.until_size(2)
    job.hurt(Fault(id="forming", place=Place.FORMING, act=Act.CUT, value=CUT_S))
    job.resize(3)
    job.until_claimed("forming")
    job.until_size(3)
    assert job.end().num_redone_steps == 0
    assert not job.events("task.lost")


def test_a_worker_killed_while_links_are_cut_is_replaced_as_soon_as_they_are_back(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial", epochs=40)
    tasks = job.until_calm(3)
    job.hurt(cut("all", times=3))
    job.until(lambda: len(job.claims()) == 3, "all links are cut")
    back_at = job.claims()[-1].at + CUT_S
    job.kill(tasks[1])
    job.assert_trains_within(BACK_AFTER_KILL_S, back_at)  # a link is tried again once a second at least

    for rank in (0, 2):  # their own link alone is cut: they learn of the loss when it is back
        tasks = job.until_calm(3)
        job.hurt(cut(f"rank {rank}", rank=rank))
        (claim,) = job.until_claimed(f"rank {rank}")
        job.kill(next(task for task in tasks if int(task.id.rpartition(".")[2]) != claim.task))
        job.assert_trains_within(BACK_AFTER_KILL_S, claim.at + CUT_S)
    job.until_size(3)
    assert job.end().num_redone_steps <= 3
    assert not job.events("checkpoint.saved")


def test_workers_that_die_or_hang_while_the_server_is_away_are_replaced_by_the_next_one(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    slow = 2 * PACE_S  # it is not over before the next server can start tasks
    job = Trial.begin(pool, client, tmp_path / "trial", checkpoint_freq=1, pace=slow, epochs=40)
    tasks, leader = job.until_calm(3), job.leader()
    pool.signal(signal.SIGKILL)
    killed_at = job.kill(*(two := [leader, next(task for task in tasks if task.id != leader.id)]))
    Pool.until(lambda: all_ended(two), "they are gone")
    pool.up()
    up_at = time.time()
    job.until_trains_after(up_at)
    job.assert_trains_within(BACK_AFTER_KILL_S, up_at)
    tasks = job.until_calm(3)
    assert job.num_redone_since(killed_at) <= 1

    pool.signal(signal.SIGKILL)
    stopped_at = job.stop(tasks[1])
    pool.up()
    job.until_trains_after(time.time())
    tasks = job.until_calm(3)
    assert job.num_redone_since(stopped_at) <= 1
    assert len(job.starts()) == 1

    job.until(lambda: job.events("checkpoint.saved"), "a checkpoint")
    pool.signal(signal.SIGKILL)
    job.kill(*tasks)
    Pool.until(lambda: all_ended(tasks), "they are gone")
    pool.up()
    job.until_size(3)
    job.end()
    assert len(job.starts()) == 2


def all_ended(tasks: Sequence[Task]) -> bool:
    return all(task.pid is None or has_ended(task.pid) for task in tasks)


def test_a_server_killed_while_members_change_is_taken_over_from_and_one_that_hangs_holds_up_nobody(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial", max_tasks=2, pace=4 * PACE_S, epochs=40)
    for place in (Place.FORMING, Place.GIVING):
        job.until_size(2)
        job.hurt(Fault(id=place, place=place, act=Act.PAUSE, value=1.0))
        job.resize(3)
        job.until_claimed(place)
        pool.signal(signal.SIGKILL)
        pool.up()
        job.until_size(3)
        job.resize(2)
    job.pace(PACE_S)
    job.resize(3)
    tasks = job.until_calm(3)
    assert job.job().num_redone_steps == 0

    assert pool.process is not None
    stopped_at = time.time()
    pool.process.send_signal(signal.SIGSTOP)
    try:
        job.until_trains_after(stopped_at + 2 * LEASE_S)
    finally:
        pool.process.send_signal(signal.SIGCONT)
    job.kill(tasks[1])
    job.assert_back_within(BACK_AFTER_KILL_S, time.time())
    job.until_size(3)
    lost = [one for one in job.events("task.lost") if "was not started" not in one.message]  # as its server was killed
    assert [one.task_id for one in lost] == [tasks[1].id], job.story()
    assert job.end().num_redone_steps <= 1
