"""Workers that end by themselves: an exception is the script's, and its traceback is what people see first."""

from pathlib import Path

import pytest
from tests.contracts.faults import Act, Fault, Place
from tests.e2e.pool import Pool
from tests.e2e.trial import Trial

from pliant.client import Client
from pliant.core.job import Job

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def failed(job: Trial) -> Job:
    """Wait for the end of a job that cannot go on; nothing of it is left."""
    ended = job.client.wait(job.job_id, timeout_s=60, poll_s=0.1)
    assert ended.state == "failed", job.story()
    job.until(lambda: all(task.ended for task in job.client.job(job.job_id).tasks), "its processes are gone")
    return ended


@pytest.mark.parametrize("rank", [0, 2], ids=["the leader", "another"])
@pytest.mark.parametrize("act", [Act.RAISE, Act.MEMORY, Act.EXIT], ids=["raises", "gets no memory", "exits"])
def test_a_worker_that_ends_by_its_own_fault_costs_a_step(
    pool: Pool, client: Client, tmp_path: Path, rank: int, act: Act
) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial")
    job.until_size(3)
    job.hurt(Fault(id="fault", place=Place.STEP, act=act, value=50 if act is Act.MEMORY else 3, rank=rank))
    (hurt,) = job.until_claimed("fault")
    job.assert_back_within(1.0, hurt.at)
    assert job.end().num_redone_steps <= 1
    [lost] = job.events("task.lost")
    told = {Act.RAISE: "raised", Act.MEMORY: "MemoryError", Act.EXIT: "exit code 3"}
    assert told[act] in lost.message


def test_an_exception_of_a_newcomer_leaves_the_others_alone(pool: Pool, client: Client, tmp_path: Path) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial", max_tasks=2)
    job.until_size(2)
    job.hurt(Fault(id="raise", place=Place.BUILT, act=Act.RAISE, task=3))
    job.resize(3)
    job.until_claimed("raise")
    job.until_size(3)  # with the one after it
    assert job.end().num_redone_steps == 0


def test_an_exception_at_the_same_step_again_ends_the_job_with_its_traceback(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    wrong = Fault(id="raise", place=Place.STEP, act=Act.RAISE, step=20, exactly=True, times=100)
    job = Trial.begin(pool, client, tmp_path / "trial", wrong)
    ended = failed(job)
    assert "FaultError: a fault of the plan" in ended.reason
    assert 'faulty.py", line' in ended.reason
