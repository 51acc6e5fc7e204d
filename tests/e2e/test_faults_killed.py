"""SIGKILL of any worker, wherever it stands: a survivor goes on at once, without a checkpoint."""

from pathlib import Path
from typing import Any

import pytest
from tests.contracts.faults import Act, Fault, Place
from tests.e2e.pool import Pool
from tests.e2e.trial import BACK_AFTER_KILL_S, STEPS_PER_EPOCH, Trial

from pliant.client import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def trial(pool: Pool, client: Client, folder: Path, *faults: Fault, **options: Any) -> Trial:
    return Trial.begin(pool, client, folder / "trial", *faults, **options)


def kill(rank: int | None = None, *, place: Place = Place.STEP, name: str = "kill", times: int = 1) -> Fault:
    return Fault(id=name, place=place, act=Act.KILL, rank=rank, times=times)


@pytest.mark.parametrize("place", [Place.STEP, Place.REDUCED, Place.STEPPED], ids=str)
@pytest.mark.parametrize("rank", [0, 2], ids=["the leader", "another"])
def test_a_worker_killed_inside_a_step_costs_that_step_at_most(
    pool: Pool, client: Client, tmp_path: Path, rank: int, place: Place
) -> None:
    job = trial(pool, client, tmp_path)
    job.until_size(3)
    job.hurt(kill(rank, place=place))
    (killed,) = job.until_claimed("kill")
    job.assert_back_within(BACK_AFTER_KILL_S, killed.at)
    job.until_size(3)
    assert job.end().num_redone_steps <= 1
    assert not job.events("checkpoint.saved")


def test_two_killed_at_once_cost_one_step_at_most(pool: Pool, client: Client, tmp_path: Path) -> None:
    job = trial(pool, client, tmp_path, max_tasks=4)
    job.until_size(4)
    step = job.beats()[-1].step + 3 * STEPS_PER_EPOCH  # both see the plan before it
    ranks = {"first": 0, "second": 1}
    job.hurt(*(Fault(id=name, place=Place.STEP, act=Act.KILL, rank=r, step=step) for name, r in ranks.items()))
    _, second = job.until_claimed(*ranks)
    job.assert_back_within(BACK_AFTER_KILL_S, second.at)
    assert job.end().num_redone_steps <= 1
    assert not job.events("checkpoint.saved")


def test_all_but_one_killed_at_once_leave_one_that_goes_on(pool: Pool, client: Client, tmp_path: Path) -> None:
    job = trial(pool, client, tmp_path)
    killed_at = job.kill(*job.until_size(3)[:2])
    job.assert_back_within(BACK_AFTER_KILL_S, killed_at)
    assert job.end().num_redone_steps <= 1
    assert not job.events("checkpoint.saved")


@pytest.mark.parametrize("place", [Place.START, Place.BUILT], ids=str)
def test_a_newcomer_killed_while_it_warms_disturbs_nobody(
    pool: Pool, client: Client, tmp_path: Path, place: Place
) -> None:
    job = trial(pool, client, tmp_path, max_tasks=2)
    job.until_size(2)
    job.hurt(kill(place=place))
    job.resize(3)
    (killed,) = job.until_claimed("kill")
    job.until_size(3)
    assert not job.events("generation.abandoned")
    job.assert_back_within(0, killed.at)
    assert job.end().num_redone_steps == 0


@pytest.mark.parametrize("victim", ["the newcomer", "the leader", "another"])
def test_a_worker_killed_while_a_generation_forms(pool: Pool, client: Client, tmp_path: Path, victim: str) -> None:
    forming = Fault(id="forming", place=Place.FORMING, act=Act.PAUSE, value=5.0, task=3)
    job = trial(pool, client, tmp_path, forming, max_tasks=2)
    two = job.until_size(2)
    job.resize(3)
    (newcomer,) = job.until_claimed("forming")
    leader = job.leader()
    victims = {"the leader": leader, "another": next(task for task in two if task.id != leader.id)}
    if victim == "the newcomer":
        victims[victim] = next(task for task in job.client.job(job.job_id).tasks if task.pid == newcomer.pid)
    killed_at = job.kill(victims[victim])
    job.assert_back_within(BACK_AFTER_KILL_S, killed_at)
    job.until_size(3)
    redone = job.end().num_redone_steps
    assert redone <= (0 if victim == "the newcomer" else 1)
    assert job.events("generation.abandoned")


@pytest.mark.parametrize("victim", ["the giver", "the taker", "a witness"])
def test_a_worker_killed_during_a_switch(pool: Pool, client: Client, tmp_path: Path, victim: str) -> None:
    job = trial(pool, client, tmp_path, max_tasks=2)
    job.until_size(2)
    # The newcomer gets its state from rank 0; rank 1 waits for both at the step that follows.
    job.hurt(
        {
            "the giver": kill(0, place=Place.GIVING),
            "the taker": Fault(id="kill", place=Place.TAKING, act=Act.KILL, task=3),
            "a witness": Fault(id="giving", place=Place.GIVING, act=Act.PAUSE, value=0.5, rank=0),
        }[victim]
    )
    job.resize(3)
    if victim == "a witness":
        job.until_claimed("giving")
        leader = job.leader()
        killed_at = job.kill(next(task for task in job.training() if task.id != leader.id and task.id[-1] in "12"))
        limit_s = BACK_AFTER_KILL_S + 0.5
    else:
        killed_at, limit_s = job.until_claimed("kill")[0].at, BACK_AFTER_KILL_S
    job.assert_back_within(limit_s, killed_at)
    job.until_size(3)
    assert job.end().num_redone_steps <= 1
    assert not job.events("checkpoint.saved")


def test_a_worker_killed_at_the_switch_of_a_shrinking_job(pool: Pool, client: Client, tmp_path: Path) -> None:
    forming = Fault(id="forming", place=Place.FORMING, act=Act.PAUSE, value=5.0)
    job = trial(pool, client, tmp_path, max_tasks=4)
    job.until_size(4)
    job.hurt(forming)
    job.resize(2)
    job.until_claimed("forming")
    leavers = [task for task in job.client.job(job.job_id).tasks if task.state == "leaving"]
    killed_at = job.kill(leavers[0])
    job.assert_back_within(BACK_AFTER_KILL_S, killed_at)
    job.until_size(2)
    assert job.end().num_redone_steps <= 1


def test_the_leader_killed_while_it_saves_the_model_is_replaced_by_one_that_does(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    job = trial(pool, client, tmp_path, kill(0, place=Place.NAMING))
    job.until_size(3)
    job.end()
    assert [claim.id for claim in job.claims()] == ["kill"]
    assert len(job.events("model.saved")) == 1


def test_a_worker_that_runs_out_of_memory_is_replaced(pool: Pool, client: Client, tmp_path: Path) -> None:
    job = trial(pool, client, tmp_path)
    job.until_size(3)
    job.hurt(Fault(id="oom", place=Place.STEP, act=Act.OOM, value=50, rank=1))
    job.until_claimed("oom")
    (lost,) = job.until(lambda: job.events("task.lost"), "it is lost")
    assert "out of memory" in lost.message
    job.assert_back_within(BACK_AFTER_KILL_S, lost.at)
    job.until_size(3)
    assert job.end().num_redone_steps <= 1


def test_all_killed_at_once_go_on_from_the_newest_checkpoint(pool: Pool, client: Client, tmp_path: Path) -> None:
    job = trial(pool, client, tmp_path, checkpoint_freq=1)
    job.until_size(3)
    job.until(lambda: job.events("checkpoint.saved"), "a checkpoint")
    with job.all_hurt():
        newest = job.newest_checkpoint()
    job.until(lambda: len(job.starts()) == 2, "it starts again")
    assert job.starts()[1].data["step"] == newest
    job.end()


def test_all_killed_at_once_before_any_checkpoint_begin_anew(pool: Pool, client: Client, tmp_path: Path) -> None:
    job = trial(pool, client, tmp_path)
    job.until_size(3)
    with job.all_hurt():
        for path in job.memory_checkpoints():  # there is one if five seconds have passed
            path.unlink()
    job.until(lambda: len(job.starts()) == 2, "it starts again")
    assert [event.data["step"] for event in job.starts()] == [0, 0]
    job.end()


@pytest.mark.parametrize("rank", [0, 2], ids=["the leader", "another"])
def test_a_worker_killed_during_evaluation_costs_no_step(pool: Pool, client: Client, tmp_path: Path, rank: int) -> None:
    job = trial(pool, client, tmp_path)
    job.until_size(3)
    job.hurt(kill(rank, place=Place.EVALUATING))
    (killed,) = job.until_claimed("kill")
    job.assert_back_within(BACK_AFTER_KILL_S, killed.at)
    job.until_size(3)
    assert job.end().num_redone_steps == 0
    assert not job.events("checkpoint.saved")
    metrics = job.client.metrics(job.job_id, names=["accuracy_of_all"]).points
    assert [point.step for point in metrics] == list(range(50, job.num_steps + 1, 50))
