"""The zygote is warm, has one thread, and can be lost at any moment without losing a task."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

from tests.contracts.process_stage import PATHS, ProcessStage, until

from pliant.cluster import process
from pliant.cluster.agent.settings import PRELOAD
from pliant.cluster.node import NodeCluster
from pliant.core.ports import TaskExit

BringUp = Callable[..., ProcessStage[NodeCluster]]
Stage = ProcessStage[NodeCluster]

SHOW_MODULES = "import sys; note(folder / 'report', sorted(sys.modules))"

# the zygote


def test_orders_wait_until_the_zygote_is_warm_and_its_readiness_is_told(tmp_path: Path, bring_up: BringUp) -> None:
    os.mkfifo(tmp_path / "go")
    (tmp_path / "slow_to_import.py").write_text(f"open({str(tmp_path / 'go')!r}).read()\n")
    stage = bring_up(
        tmp_path, {"PYTHONPATH": f"{PATHS}:{tmp_path}"}, preload=("slow_to_import", "json", "no_such_module")
    )
    exits = stage.exits()
    task_id = stage.start("job-1.1")
    (task,) = stage.cluster.observe().tasks
    assert task.pid is None
    assert not stage.cluster.readiness().warm

    (tmp_path / "go").write_text("go")
    until(lambda: stage.running(task_id), "the task has begun")
    until(lambda: stage.cluster.readiness().warm, "the agent knows")

    ready = stage.cluster.readiness()
    assert (ready.warm, ready.num_threads, list(ready.missing)) == (True, 1, ["no_such_module"])
    stage.finish(task_id, 0)
    assert stage.exit_of(task_id, exits).exit_code == 0


def test_modules_are_warm_in_the_task_and_torch_leaves_the_zygote_with_one_thread(
    tmp_path: Path, bring_up: BringUp
) -> None:
    source = """
import gc, os, sys
warm = "torch" in sys.modules and gc.isenabled()
import numpy, torch
torch.set_num_threads(2)
torch.randn(300, 300) @ torch.randn(300, 300)
loss = torch.nn.Linear(512, 512)(torch.randn(2000, 512)).sum()
loss.backward()
note(folder / "report", [warm, torch.get_num_threads(), len(os.listdir("/proc/self/fd")) - 1, numpy.random.rand()])
"""
    stage = bring_up(tmp_path, preload=("torch", "pliant.train.rehearsal"))
    reports = [stage.read(stage.start(f"job-1.{number}", (number,), source)) for number in range(2)]

    assert [report[:3] for report in reports] == [[True, 2, 3], [True, 2, 3]]
    assert reports[0][3] != reports[1][3]
    until(lambda: stage.cluster.readiness().warm, "the agent knows")
    assert stage.cluster.readiness().num_threads == 1


def test_a_task_imports_nothing_for_its_first_address_optimizer_and_data(tmp_path: Path, bring_up: BringUp) -> None:
    source = """
import socket, sys
before = set(sys.modules)
import torch
from pliant.train import Run
socket.getaddrinfo("127.0.0.1", 80)
torch.manual_seed(0)
optimizer = torch.optim.SGD(torch.nn.Linear(2, 1).parameters(), lr=0.1)
optimizer.step()
next(iter(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.zeros(4, 2)), batch_size=2)))
brought = sorted(set(sys.modules) - before)
if torch.version.cuda:  # then nothing is rehearsed
    brought = [name for name in brought if not name.startswith("torch.profiler._")]
note(folder / "report", brought)
"""
    stage = bring_up(tmp_path, preload=PRELOAD)
    until(lambda: stage.cluster.readiness().warm, "it has imported all that tasks need", timeout_s=60)

    brought = stage.read(stage.start("job-1.1", (0,), source))
    assert brought == []


def test_a_module_that_starts_threads_makes_tasks_start_cold_rather_than_unsafely(
    tmp_path: Path, bring_up: BringUp
) -> None:
    (tmp_path / "with_thread.py").write_text(
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    )
    stage = bring_up(tmp_path, {"PYTHONPATH": f"{PATHS}:{tmp_path}"}, preload=("with_thread",))
    report = stage.read(stage.start("job-1.1", (0,), SHOW_MODULES))
    until(lambda: stage.cluster.readiness().warm, "the agent knows")

    assert stage.cluster.readiness().num_threads == 2
    assert "with_thread" not in report


def test_a_zygote_that_is_stuck_is_noticed_until_it_goes_on(stage: Stage) -> None:
    until(lambda: stage.cluster.readiness().warm, "the agent knows")
    pid = stage.cluster.readiness().pid
    assert pid is not None
    assert stage.cluster.trouble() == ""
    os.kill(pid, signal.SIGSTOP)
    try:
        until(lambda: stage.cluster._alive.zygote_silent_s > 1.5, "it does not answer")
    finally:
        os.kill(pid, signal.SIGCONT)
    until(lambda: stage.cluster._alive.zygote_silent_s == 0.0, "it answers again")


def test_tasks_outlive_the_zygote_and_the_next_start_brings_up_another(stage: Stage) -> None:
    exits = stage.exits()
    old = stage.start("job-1.1", (0,))
    pid = stage.pid_of(old)
    until(lambda: stage.running(old), "the task has begun")
    dead = stage.cluster.readiness().pid
    assert dead is not None

    os.kill(dead, signal.SIGKILL)
    until(lambda: stage.cluster.readiness().pid is None, "the agent sees it")
    new = stage.start("job-1.2", (1,))
    until(lambda: stage.running(new), "the new task has begun")

    assert process.stamp(pid) is not None
    assert stage.cluster.readiness().pid not in (None, dead)
    stage.finish(old, 0)
    stage.finish(new, 4)
    assert stage.exit_of(old, exits) == TaskExit(task_id=old, exit_code=None)
    assert stage.exit_of(new, exits) == TaskExit(task_id=new, exit_code=4)


def test_an_order_that_dies_with_the_zygote_is_carried_out_by_the_next_one(stage: Stage) -> None:
    until(lambda: stage.cluster.readiness().warm, "the agent knows")
    zygote = stage.cluster.readiness().pid
    assert zygote is not None
    os.kill(zygote, signal.SIGSTOP)
    task_id = stage.start("job-1.1")
    os.kill(zygote, signal.SIGKILL)

    until(lambda: stage.running(task_id), "the task has begun")

    assert stage.cluster.readiness().pid not in (None, zygote)
    exits = stage.exits()
    stage.finish(task_id, 4)
    assert stage.exit_of(task_id, exits) == TaskExit(task_id=task_id, exit_code=4)


def test_an_order_that_no_zygote_lives_to_carry_out_is_told_and_frees_its_slot(
    tmp_path: Path, bring_up: BringUp
) -> None:
    os.mkfifo(tmp_path / "never")
    (tmp_path / "endless_import.py").write_text(f"open({str(tmp_path / 'never')!r}).read()\n")
    stage = bring_up(tmp_path, {"PYTHONPATH": f"{PATHS}:{tmp_path}"}, preload=("endless_import",))
    exits = stage.exits()
    task_id = stage.start("job-1.1")
    until((tmp_path / "agent" / "job-1.1.json").exists, "the order is sent")
    dead: set[int | None] = {None}
    for _ in range(3):
        until(lambda: stage.cluster.readiness().pid not in dead, "there is a zygote")
        zygote = stage.cluster.readiness().pid
        assert zygote is not None
        dead.add(zygote)
        os.kill(zygote, signal.SIGKILL)

    error = stage.exit_of(task_id, exits).error
    assert "has ended 3 times" in error
    assert "zygote.log" in error
    assert stage.cluster.observe().tasks == ()


def test_the_zygote_inherits_no_file_of_the_servers(tmp_path: Path, bring_up: BringUp) -> None:
    inherited = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(inherited, True)
    stage = bring_up(tmp_path)
    until(lambda: stage.cluster.readiness().warm, "the zygote is warm")
    files = Path(f"/proc/{stage.cluster.readiness().pid}/fd")
    assert str(tmp_path / "lock") not in [os.readlink(file) for file in files.iterdir()]
    os.close(inherited)
