"""The control link cut, and the server away, while workers die: nothing but the change of members waits for it."""

import signal
import time
from pathlib import Path

import pytest
from tests.contracts.faults import Act, Fault, Place
from tests.e2e.pool import Pool
from tests.e2e.trial import BACK_AFTER_KILL_S, LEASE_S, PACE_S, Trial
from tests.process_state import has_ended

from pliant.client import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


CUT_S = 0.7
"""Well within a lease, with what passes before and after it without a word."""


def cut(seconds: float, *, times: int = 1, rank: int | None = None) -> Fault:
    return Fault(id="cut", place=Place.STEP, act=Act.CUT, value=seconds, rank=rank, times=times)


@pytest.mark.parametrize("rank", [0, 1], ids=["the leader", "another"])
def test_a_cut_link_is_made_again_and_training_goes_on(pool: Pool, client: Client, tmp_path: Path, rank: int) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial")
    job.until_size(3)
    job.hurt(cut(CUT_S, rank=rank))
    (claim,) = job.until_claimed("cut")
    job.until_trains_after(claim.at + CUT_S)
    job.assert_back_within(0, claim.at)
    job.resize(2)
    job.until_size(2)
    assert job.end().num_redone_steps == 0
    assert not job.events("generation.abandoned", "task.lost")


def test_a_worker_killed_while_all_links_are_cut_is_replaced_as_soon_as_they_are_back(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial")
    tasks = job.until_size(3)
    job.hurt(cut(CUT_S, times=3))
    job.until(lambda: len(job.claims()) == 3, "all links are cut")
    back_at = job.claims()[-1].at + CUT_S
    job.kill(tasks[1])
    job.assert_trains_within(BACK_AFTER_KILL_S, back_at)  # a link is tried again once a second at least
    job.until_size(3)
    assert job.end().num_redone_steps <= 1
    assert not job.events("checkpoint.saved")


@pytest.mark.parametrize("rank", [0, 2], ids=["the leader", "another"])
def test_a_worker_whose_own_link_is_cut_learns_of_a_loss_when_it_is_back(
    pool: Pool, client: Client, tmp_path: Path, rank: int
) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial")
    tasks = job.until_size(3)
    job.hurt(cut(CUT_S, rank=rank))
    (claim,) = job.until_claimed("cut")
    job.kill(next(task for task in tasks if int(task.id.rpartition(".")[2]) != claim.task))
    job.assert_trains_within(BACK_AFTER_KILL_S, claim.at + CUT_S)
    assert job.end().num_redone_steps <= 1


def test_a_link_cut_while_a_generation_forms(pool: Pool, client: Client, tmp_path: Path) -> None:
    forming = Fault(id="forming", place=Place.FORMING, act=Act.CUT, value=CUT_S)
    job = Trial.begin(pool, client, tmp_path / "trial", max_tasks=2)
    job.until_size(2)
    job.hurt(forming)
    job.resize(3)
    job.until_claimed("forming")
    job.until_size(3)
    assert job.end().num_redone_steps == 0


@pytest.mark.parametrize("victims", ["the leader", "two", "all"])
def test_workers_killed_while_the_server_is_away_are_replaced_by_the_next_one(
    pool: Pool, client: Client, tmp_path: Path, victims: str
) -> None:
    slow = 2 * PACE_S  # it is not over before the next server can start tasks
    job = Trial.begin(pool, client, tmp_path / "trial", checkpoint_freq=int(victims == "all"), pace=slow)
    tasks, leader = job.until_size(3), job.leader()
    others = [task for task in tasks if task.id != leader.id]
    if victims == "all":
        job.until(lambda: job.events("checkpoint.saved"), "a checkpoint")
    pool.signal(signal.SIGKILL)
    chosen = {"the leader": [leader], "two": [leader, others[0]], "all": tasks}[victims]
    job.kill(*chosen)
    Pool.until(lambda: all(task.pid is None or has_ended(task.pid) for task in chosen), "they are gone")
    pool.up()
    up_at = time.time()
    if victims != "all":
        job.until_trains_after(up_at)
        job.assert_trains_within(BACK_AFTER_KILL_S, up_at)
    job.until_size(3)
    assert job.end().num_redone_steps <= 1
    assert len(job.starts()) == (2 if victims == "all" else 1)


@pytest.mark.parametrize("place", [Place.FORMING, Place.GIVING], ids=["forming", "switching"])
def test_a_server_killed_while_members_change_is_taken_over_from(
    pool: Pool, client: Client, tmp_path: Path, place: Place
) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial", max_tasks=2, pace=4 * PACE_S)
    job.until_size(2)
    job.hurt(Fault(id="pause", place=place, act=Act.PAUSE, value=1.0))
    job.resize(3)
    job.until_claimed("pause")
    pool.signal(signal.SIGKILL)
    pool.up()
    job.until_size(3)
    assert job.end().num_redone_steps == 0


def test_a_server_that_hangs_holds_up_no_training(pool: Pool, client: Client, tmp_path: Path) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial")
    tasks = job.until_size(3)
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
    assert len(job.events("task.lost")) == 1
    assert job.end().num_redone_steps <= 1
