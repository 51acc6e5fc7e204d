"""Processes that stand still without ending: workers, a newcomer, the server; and a step that kills whoever tries."""

import os
import signal
import time
from pathlib import Path

import pytest
from tests.e2e.pace import Pace
from tests.e2e.pool import HERE, Pool
from tests.train.test_elastic import samples_by_epoch

from pliant.api.jobs import JobPatch
from pliant.client import Client
from pliant.core.event import Event
from pliant.core.job import Job, Task

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

LEASE_S = 2.0
EPOCHS, STEPS_PER_EPOCH, NUM_SAMPLES = 40, 10, 500

LATE = """
import os, time
from pathlib import Path
gate = Path({gate!r})
while int(os.environ["PLIANT_TASK_ID"].rpartition(".")[2]) > 2 and not gate.exists():
    time.sleep(0.05)
"""
"""Put before a script: from the third task on, wait for a file before anything is built."""

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


def training(pool: Pool, client: Client, pace: Pace, num: int = 3) -> str:
    """Start a paced training and wait until so many tasks train."""
    args = ("--epochs", str(EPOCHS), "--pace", str(pace))
    job_id = pool.submit(HERE / "paced.py", "--max", str(num), "--audit", args=args)
    pool.until(lambda: len(pool.training(client, job_id)) == num, f"{num} tasks train")
    return job_id


def events(client: Client, job_id: str, kind: str) -> list[Event]:
    return [event for event in client.events(job_id=job_id, limit=10_000).events if event.kind == kind]


def members(client: Client, job_id: str) -> list[Task]:
    """Return the tasks of the newest generation that trains, in order of rank."""
    detail = client.job(job_id)
    active = [generation for generation in detail.generations if generation.state == "active"]
    tasks = {task.id: task for task in detail.tasks}
    return [tasks[task_id] for task_id in active[-1].members]


def completed(pool: Pool, client: Client, job_id: str, pace: Pace) -> Job:
    """Let a job run to its end; check that every sample of every epoch was used once."""
    pace.set(0)
    job = client.wait(job_id, timeout_s=120)
    assert (job.state, job.reason) == ("completed", job.reason)
    epochs, steps = samples_by_epoch(pool.home / "jobs" / job_id / "result")
    assert steps == set(range(EPOCHS * STEPS_PER_EPOCH))
    assert all(sorted(epochs[epoch]) == list(range(NUM_SAMPLES)) for epoch in range(EPOCHS))
    return job


def test_a_stopped_worker_is_replaced_and_the_others_train_within_the_lease_and_a_second(
    pool: Pool, client: Client, pace: Pace
) -> None:
    job_id = training(pool, client, pace)
    victim = members(client, job_id)[2]
    assert victim.pid is not None
    starved_before_s = pool.starved_s()
    stopped_at = time.time()
    os.kill(victim.pid, signal.SIGSTOP)

    def replaced() -> bool:
        found = {task.id for task in pool.training(client, job_id)}
        return victim.id not in found and len(found) == 3

    pool.until(replaced, "it is replaced")
    starved_s = pool.starved_s() - starved_before_s

    (lost,) = events(client, job_id, "task.lost")
    resumed = next(e for e in events(client, job_id, "generation.switched") if e.at > stopped_at)
    assert lost.task_id == victim.id
    assert "gave no sign of life for 2.0 s and was killed by Pliant" in lost.message
    assert lost.at - stopped_at > LEASE_S / 2, "its last sign of life is a quarter of the lease older, or a bit more"
    assert resumed.at - stopped_at < LEASE_S + 1.0 + starved_s
    assert resumed.data["size"] == 2
    assert resumed.data["redone_steps"] in (0, 1)
    assert not Path(f"/proc/{victim.pid}").exists()
    job = completed(pool, client, job_id, pace)
    assert job.num_redone_steps <= 1


def test_a_newcomer_that_is_stopped_while_it_warms_disturbs_nobody(
    pool: Pool, client: Client, pace: Pace, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    script = tmp_path / "code" / "train.py"
    script.parent.mkdir()
    script.write_text(LATE.format(gate=str(gate)) + (HERE / "paced.py").read_text())
    args = ("--epochs", str(EPOCHS), "--pace", str(pace))
    job_id = pool.submit(script, "--max", "2", "--audit", args=args)
    pool.until(lambda: len(pool.training(client, job_id)) == 2, "two tasks train")
    client.change(job_id, JobPatch(max_tasks=3))
    (newcomer,) = pool.until(
        lambda: [t for t in client.job(job_id).tasks if t.state == "starting" and t.pid], "a newcomer says hello"
    )
    stopped_at = time.time()
    os.kill(newcomer.pid, signal.SIGSTOP)
    gate.touch()
    pool.until(lambda: len(pool.training(client, job_id)) == 3, "another newcomer joins", 90)

    (lost,) = events(client, job_id, "task.lost")
    assert lost.task_id == newcomer.id
    assert lost.at - stopped_at > 10, "it was given the time to start"
    switched = [event for event in events(client, job_id, "generation.switched") if event.at > stopped_at]
    assert [event.data["size"] for event in switched] == [3]
    assert switched[0].at > lost.at
    assert events(client, job_id, "generation.abandoned") == []
    told = client.metrics(job_id, names=("loss",)).points
    assert len({p.step for p in told if stopped_at < p.at < lost.at}) > 10, "it did not train on meanwhile"
    assert completed(pool, client, job_id, pace).num_redone_steps == 0


@pytest.mark.parametrize("num_tasks", [1, 3])
def test_a_poison_step_fails_the_job_with_a_diagnosis(
    pool: Pool, client: Client, tmp_path: Path, num_tasks: int
) -> None:
    script = tmp_path / "code" / "poison.py"
    script.parent.mkdir()
    script.write_text(POISON)

    job_id = pool.submit(script, "--max", str(num_tasks), "--min", str(num_tasks))
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
