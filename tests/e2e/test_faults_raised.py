"""Workers that end by themselves: an exception is the script's, and its traceback is what people see first."""

from pathlib import Path

import pytest
from tests.contracts.faults import Act, Fault, Place
from tests.e2e.pool import Pool
from tests.e2e.trial import BACK_AFTER_KILL_S, Trial

from pliant.client import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

TOLD = {Act.RAISE: "raised", Act.MEMORY: "MemoryError", Act.EXIT: "exit code 3"}


def test_workers_that_end_by_their_own_fault_cost_a_step_and_a_newcomer_none(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial", epochs=40)
    for act, told in TOLD.items():
        for rank in (0, 2):
            job.until_calm(3)
            name = f"{act}-{rank}"
            job.hurt(Fault(id=name, place=Place.STEP, act=act, value=50 if act is Act.MEMORY else 3, rank=rank))
            (hurt,) = job.until_claimed(name)
            job.assert_back_within(BACK_AFTER_KILL_S, hurt.at)
            lost = job.lost_since(hurt.at)
            assert [told in one.message for one in lost] == [True], lost
            assert job.num_redone_since(hurt.at) <= 1, name

    job.until_size(3)
    job.resize(2)
    job.until_calm(2)
    job.hurt(Fault(id="newcomer", place=Place.BUILT, act=Act.RAISE, task=job.next_task()))
    job.resize(3)
    (hurt,) = job.until_claimed("newcomer")
    job.until_size(3)  # with the one after it
    assert job.num_redone_since(hurt.at) == 0
    job.end()


def test_an_exception_at_the_same_step_again_ends_the_job_with_its_traceback(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    wrong = Fault(id="raise", place=Place.STEP, act=Act.RAISE, step=20, exactly=True, times=100)
    job = Trial.begin(pool, client, tmp_path / "trial", wrong)
    ended = job.client.wait(job.job_id, timeout_s=60, poll_s=0.1)
    assert ended.state == "failed", job.story()
    assert "FaultError: a fault of the plan" in ended.reason
    assert 'faulty.py", line' in ended.reason
    job.until(lambda: all(task.ended for task in job.client.job(job.job_id).tasks), "its processes are gone")
