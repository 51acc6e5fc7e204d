"""Ordinary torchrun scripts of a fixed size, over real processes."""

import os
import signal
from pathlib import Path

import pytest
import torch
from tests.e2e.pace import Pace
from tests.e2e.pool import HERE, Pool

from pliant.client import Client
from pliant.core.job import Task

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

DDP = HERE.parents[1] / "examples" / "fixed" / "ddp.py"
WAIT_S = 150.0

CHECKS_ITS_ENVIRONMENT = """
import os, sys, threading
import torch.distributed as dist
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
assert dist.is_torchelastic_launched()
assert (rank, size) == (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
assert "PLIANT_TASK_TOKEN" not in os.environ
assert threading.active_count() == 1, threading.enumerate()
seen = [None] * size
dist.all_gather_object(seen, {name: os.environ[name] for name in sys.argv[1:]})
if rank == 0:
    print(seen)
dist.destroy_process_group()
"""

FAILS_ON_RANK_1 = """
import os
import torch.distributed as dist
print("attempt", os.environ["TORCHELASTIC_RESTART_COUNT"], flush=True)
dist.init_process_group("gloo")
dist.barrier()  # who ends before the others are connected makes them fail, too, and they may say so first
if os.environ["RANK"] == "1":
    raise LookupError("no such sample: 17")
dist.barrier()
"""


HELD = """
import time
from pathlib import Path
from torch.utils.data import DistributedSampler
gate, set_epoch = Path({gate!r}), DistributedSampler.set_epoch
def held(sampler, epoch):
    while epoch > 2 and not gate.exists():
        time.sleep(0.05)
    set_epoch(sampler, epoch)
DistributedSampler.set_epoch = held
"""
"""Put before a script: it begins its fourth epoch when there is a file, so that it is not over before."""


def script(folder: Path, text: str) -> Path:
    path = folder / "script.py"
    path.write_text(text)
    return path


def live(client: Client, job_id: str) -> list[Task]:
    return [task for task in client.job(job_id).tasks if not task.ended]


def test_a_plain_script_finds_its_group(pool: Pool, client: Client, tmp_path: Path) -> None:
    names = ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")
    job_id = pool.submit(script(tmp_path, CHECKS_ITS_ENVIRONMENT), "--fixed", "2", args=names)
    job = client.wait(job_id, timeout_s=WAIT_S)
    assert (job.state, job.reason) == ("completed", "all 2 processes ended with exit code 0")
    seen = [dict(zip(names, (rank, "2", "0", job_id, "0"), strict=True)) for rank in "01"]
    assert pool.cli("logs", job_id, "--task", "1", "--stream", "stdout").strip() == str(seen)


def test_a_killed_worker_starts_all_again_and_the_script_goes_on(pool: Pool, client: Client, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    path = script(tmp_path, HELD.format(gate=str(gate)) + DDP.read_text())
    job_id = pool.submit(path, "--fixed", "2", args=("--epochs", "30"))
    saved = pool.home / "jobs" / job_id / "result" / "ddp.pt"
    pool.until(saved.exists, "the script has saved a checkpoint of its own", WAIT_S)
    pool.until(lambda: all(task.pid for task in live(client, job_id)), "the processes are seen")
    before = live(client, job_id)
    victim = before[-1]
    assert victim.pid is not None
    os.kill(victim.pid, signal.SIGKILL)
    gate.touch()
    job = client.wait(job_id, timeout_s=WAIT_S)

    assert (job.state, job.reason, job.num_restarts) == ("completed", "all 2 processes ended with exit code 0", 1)
    ended = {task.id: (task.state.value, task.exit_code) for task in client.job(job_id).tasks}
    assert ended == {
        victim.id: ("lost", -9),
        before[0].id: ("exited", ended[before[0].id][1]),
        f"{job_id}.3": ("exited", 0),
        f"{job_id}.4": ("exited", 0),
    }
    assert torch.load(saved, weights_only=True)["epoch"] == 29
    assert "epoch 0 " not in pool.cli("logs", job_id, "--task", "3", "--stream", "stdout")
    assert not [task for task in before if task.pid and Path(f"/proc/{task.pid}").exists()]


def test_a_script_that_raises_is_tried_again_and_then_fails_with_its_last_line(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    path = script(tmp_path, FAILS_ON_RANK_1)
    job_id = pool.submit(path, "--fixed", "2", "--max-restarts", "1")
    job = client.wait(job_id, timeout_s=WAIT_S)
    assert (job.state, job.num_restarts) == ("failed", 1)
    assert job.reason.endswith("LookupError: no such sample: 17")
    assert "exit code 1 after 1 restart" in job.reason
    assert pool.cli("logs", job_id, "--task", "3", "--stream", "stdout") == "attempt 1\n"
    pool.until(lambda: not live(client, job_id), "nothing of it is left")


def test_it_waits_for_all_its_slots_beside_an_elastic_job_and_cannot_be_resized(
    pool: Pool, client: Client, pace: Pace
) -> None:
    args = ("--pace", str(pace), "--epochs", "200")
    elastic = pool.submit(HERE / "paced.py", "--max", "3", args=args)
    pool.until(lambda: len(pool.training(client, elastic)) == 3, "the elastic job has its slots", WAIT_S)

    fixed = pool.submit(HERE / "waits.py", "--fixed", "7")
    pool.until(lambda: client.job(fixed).job.state == "running", "the elastic job makes room", WAIT_S)
    assert len(live(client, fixed)) == 7
    assert len(pool.training(client, elastic)) == 1
    assert "is fixed at 7" in pool.cli("set", fixed, "--max", "8", code=5)

    waiting = pool.submit(HERE / "waits.py", "--fixed", "8")
    pool.until(lambda: client.why(waiting).sentence.startswith("waits:"), "the third says why it waits")
    assert client.job(waiting).tasks == ()
    client.stop(waiting)
    client.stop(fixed, now=True)
    assert client.wait(fixed, timeout_s=WAIT_S).state == "stopped"
    pool.until(lambda: len(pool.training(client, elastic)) == 3, "the elastic job grows again", WAIT_S)
