"""SIGKILL of any worker, wherever it stands: a survivor goes on at once, without a checkpoint.

One training is hurt again and again: each time it must be back, and cost one step at most; at its end every sample was
used once, and the weights are those of a training that nobody hurt.
"""

import signal
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.faults import Act, Fault, Place
from tests.e2e.pool import Pool
from tests.e2e.trial import BACK_AFTER_KILL_S, STEPS_PER_EPOCH, Trial

from pliant.client import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

POISON = """
import os, signal, sys
import torch
from torch.utils.data import TensorDataset
from pliant.train import Run
x = torch.randn(64, 4)
model = torch.nn.Linear(4, 2)
run = Run(model, torch.optim.SGD(model.parameters(), 0.1), TensorDataset(x, (x[:, 0] > 0).long()), batch_size=16)
for epoch in run.epochs(10):
    for a, b in run:
        if run.num_steps_done == 7:
            print("about to touch sample 42", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        run.step(torch.nn.functional.cross_entropy(model(a), b))
"""


def trial(pool: Pool, client: Client, folder: Path, *faults: Fault, **options: Any) -> Trial:
    return Trial.begin(pool, client, folder / "trial", *faults, **{"epochs": 40, **options})


def kill(name: str, rank: int | None = None, *, place: Place = Place.STEP, task: int | None = None) -> Fault:
    return Fault(id=name, place=place, act=Act.KILL, rank=rank, task=task)


@pytest.mark.parametrize("rank", [0, 2], ids=["the leader", "another"])
def test_a_worker_killed_in_a_step_or_between_two_costs_that_step_at_most(
    pool: Pool, client: Client, tmp_path: Path, rank: int
) -> None:
    job = trial(pool, client, tmp_path)
    job.until_calm(3)
    for place, most in ((Place.STEP, 1), (Place.REDUCED, 1), (Place.STEPPED, 1), (Place.EVALUATING, 0)):
        job.hurt(kill(place, rank, place=place))
        (killed,) = job.until_claimed(place)
        job.assert_back_within(BACK_AFTER_KILL_S, killed.at)
        job.until_calm(3)
        assert job.num_redone_since(killed.at) <= most, place
    job.end()
    assert not job.events("checkpoint.saved")
    metrics = job.client.metrics(job.job_id, names=["accuracy_of_all"]).points
    assert [point.step for point in metrics] == list(range(50, job.num_steps + 1, 50))


def test_several_killed_at_once_cost_one_step_at_most_and_the_last_one_saves_the_model(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    job = trial(pool, client, tmp_path, max_tasks=4)
    job.until_calm(4)
    step = job.beats()[-1].step + 2 * STEPS_PER_EPOCH  # both see the plan before it
    ranks = {"first": 0, "second": 1}
    job.hurt(*(Fault(id=name, place=Place.STEP, act=Act.KILL, rank=r, step=step) for name, r in ranks.items()))
    first, second = job.until_claimed(*ranks)
    job.assert_back_within(BACK_AFTER_KILL_S, second.at)
    tasks = job.until_calm(4)
    assert job.num_redone_since(first.at) <= 1

    killed_at = job.kill(*tasks[:3])
    job.assert_back_within(BACK_AFTER_KILL_S, killed_at)
    job.until_calm(4)
    assert job.num_redone_since(killed_at) <= 1

    job.hurt(Fault(id="oom", place=Place.STEP, act=Act.OOM, value=50, rank=1))
    (killed,) = job.until_claimed("oom")
    lost = job.lost_since(killed.at)[0]
    assert "out of memory" in lost.message
    job.assert_back_within(BACK_AFTER_KILL_S, lost.at)
    job.until_calm(4)
    assert job.num_redone_since(killed.at) <= 1

    job.hurt(kill("saving", 0, place=Place.NAMING))
    job.end()
    assert [claim.id for claim in job.claims()][-1] == "saving"
    assert len(job.events("model.saved")) == 1
    assert not job.events("checkpoint.saved")


def test_a_newcomer_killed_while_it_warms_or_connects_costs_nothing_and_another_one_comes(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    job = trial(pool, client, tmp_path, max_tasks=2)
    job.until_calm(2)
    for place in (Place.START, Place.BUILT):
        job.hurt(kill(place, place=place))
        job.resize(3)
        (killed,) = job.until_claimed(place)
        job.until_size(3)
        assert not job.events("generation.abandoned")
        job.assert_back_within(0, killed.at)
        job.resize(2)
        job.until_calm(2)

    newcomer = job.next_task()
    job.hurt(Fault(id="forming", place=Place.FORMING, act=Act.PAUSE, value=5.0, task=newcomer))
    job.resize(3)
    job.until_claimed("forming")
    killed_at = job.kill(job.task(newcomer))
    job.assert_back_within(BACK_AFTER_KILL_S, killed_at)
    job.until_size(3)
    assert job.end().num_redone_steps == 0
    assert job.events("generation.abandoned")


def test_a_worker_killed_while_a_generation_forms_costs_one_step_at_most(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    job = trial(pool, client, tmp_path, max_tasks=2)
    for victim in ("the leader", "another"):
        two = job.until_calm(2)
        num_abandoned = len(job.events("generation.abandoned"))
        job.hurt(Fault(id=victim, place=Place.FORMING, act=Act.PAUSE, value=5.0, task=job.next_task()))
        job.resize(3)
        job.until_claimed(victim)
        leader = job.leader()
        killed_at = job.kill(leader if victim == "the leader" else next(task for task in two if task.id != leader.id))
        job.assert_back_within(BACK_AFTER_KILL_S, killed_at)
        job.until_size(3)
        assert job.num_redone_since(killed_at) <= 1, victim
        assert len(job.events("generation.abandoned")) > num_abandoned
        job.resize(2)

    job.resize(4)
    job.until_calm(4)
    job.hurt(Fault(id="shrinking", place=Place.FORMING, act=Act.PAUSE, value=5.0))
    job.resize(2)
    job.until_claimed("shrinking")
    leavers = [task for task in job.client.job(job.job_id).tasks if task.state == "leaving"]
    killed_at = job.kill(leavers[0])
    job.assert_back_within(BACK_AFTER_KILL_S, killed_at)
    job.until_size(2)
    assert job.end().num_redone_steps <= 3


def test_a_worker_killed_during_a_switch(pool: Pool, client: Client, tmp_path: Path) -> None:
    job = trial(pool, client, tmp_path, max_tasks=2)
    for victim in ("the giver", "the taker", "a witness"):
        two, newcomer = job.until_calm(2), job.next_task()
        # The newcomer gets its state from rank 0; rank 1 waits for both at the step that follows.
        job.hurt(
            {
                "the giver": kill(victim, 0, place=Place.GIVING),
                "the taker": kill(victim, place=Place.TAKING, task=newcomer),
                "a witness": Fault(id=victim, place=Place.GIVING, act=Act.PAUSE, value=0.5, rank=0),
            }[victim]
        )
        job.resize(3)
        (claim,) = job.until_claimed(victim)
        killed_at, limit_s = claim.at, BACK_AFTER_KILL_S
        if victim == "a witness":
            killed_at = job.kill(next(task for task in two if task.id != job.leader().id))
            limit_s += 0.5
        job.assert_back_within(limit_s, killed_at)
        job.until_size(3)
        assert job.num_redone_since(killed_at) <= 1, victim
        job.resize(2)
    job.end()
    assert not job.events("checkpoint.saved")


def test_all_killed_at_once_begin_anew_or_go_on_from_the_newest_checkpoint(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    job = trial(pool, client, tmp_path, checkpoint_freq=1, epochs=20)
    job.until_size(3)
    with job.all_hurt():
        for path in (*job.checkpoints(), *job.memory_checkpoints()):  # there is one if an epoch has passed
            path.unlink()
    job.until(lambda: len(job.starts()) == 2, "it starts again")
    assert [event.data["step"] for event in job.starts()] == [0, 0]

    job.until_size(3)
    again_at = job.starts()[1].at
    job.until(lambda: [one for one in job.events("checkpoint.saved") if one.at > again_at], "a checkpoint")
    with job.all_hurt():
        newest = job.newest_checkpoint()
    job.until(lambda: len(job.starts()) == 3, "it starts again")
    assert job.starts()[2].data["step"] == newest
    job.end()


def test_a_poison_step_fails_the_job_with_a_diagnosis(pool: Pool, client: Client, tmp_path: Path) -> None:
    script = tmp_path / "code" / "poison.py"
    script.parent.mkdir()
    script.write_text(POISON)

    job_id = pool.submit(script, "--max", "3", "--min", "3")
    job = client.wait(job_id, timeout_s=120)

    assert job.state == "failed"
    headline, *rest = job.reason.splitlines()
    told = "step 7 kills whoever computes it: 3 times in a row workers were lost at it"
    assert headline.startswith(told), job.reason
    lost = [task for task in client.job(job_id).tasks if task.exit_code == -signal.SIGKILL]
    assert len([line for line in rest if " on local was killed by SIGKILL (not by Pliant" in line]) >= 3
    assert any(line.startswith("what to do: if the kernel killed them for want of memory") for line in rest)
    assert rest[-1] == "about to touch sample 42"
    assert 3 <= len(lost) <= 12
