"""What generations and jobs leave behind: no thread, file, socket, process or shared memory."""

from pathlib import Path

import pytest
from tests.contracts.faults import Act, Fault, Place
from tests.e2e.pool import Pool
from tests.e2e.trial import Trial
from tests.soak import census

from pliant.client import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def test_a_worker_holds_no_more_after_many_generations_than_after_the_first(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    job = Trial.begin(pool, client, tmp_path / "trial", max_tasks=2, epochs=60, pace=0.1)
    survivor = job.until_size(2)[0]
    assert survivor.pid is not None
    pid = survivor.pid
    disturb(job)  # what is opened once is open after this
    before = census.process(pid)
    for _ in range(3):
        disturb(job)
    job.until(lambda: not census.more(before, census.process(pid)), "nothing is left of the generations")
    assert len(job.events("generation.switched")) > 6
    job.end()


def disturb(job: Trial) -> None:
    """Grow, lose the newcomer, shrink: end with two that train."""
    num_switches = len(job.events("generation.switched"))
    job.resize(3)
    newest = max(job.until_size(3), key=lambda task: int(task.id.rpartition(".")[2]))
    job.kill(newest)
    job.resize(2)
    job.until(lambda: len(job.events("generation.switched")) >= num_switches + 2, "it was lost")
    job.until_size(2)


def test_nothing_outlives_a_job_whose_workers_were_killed_stopped_and_cut_off(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    warm = Trial.begin(pool, client, tmp_path / "warm", pace=0.0)
    warm.end()
    pool.until(lambda: not census.count(pool.home).tasks, "no task of an earlier job is left")
    before = census.count(pool.home)
    job = Trial.begin(pool, client, tmp_path / "trial", checkpoint_freq=1)
    first, second, _ = job.until_size(3)
    job.kill(first)
    job.stop(second)
    job.until(lambda: len(job.events("task.lost")) == 2, "two are lost")
    job.hurt(Fault(id="cut", place=Place.STEP, act=Act.CUT, value=0.5))
    job.until_claimed("cut")
    job.end()

    def left() -> list[str]:
        after = census.count(pool.home)
        found = [f"{process.role} ({process.pid}, {process.state})" for process in after.tasks]
        found += sorted(after.shared_memory - before.shared_memory)
        for role in ("server", "zygote"):
            was, now = before.role(role), after.role(role)
            found += [f"{len(now)} of {role}, {len(was)} before"] * (len(was) != len(now))
            found += [line for pair in zip(was, now, strict=False) for line in census.more(*pair)]
        return found

    job.until(lambda: not left(), "nothing is left of the job")
