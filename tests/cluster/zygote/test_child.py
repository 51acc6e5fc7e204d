"""A forked task finds and leaves everything as a program of its own would."""

import os
import signal
import stat
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contracts.cluster import NUM_SLOTS
from tests.contracts.process_stage import PATHS, ProcessStage, until

from pliant.cluster import process
from pliant.cluster.node import NodeCluster
from pliant.core.job import TaskId

BringUp = Callable[..., ProcessStage[NodeCluster]]
Stage = ProcessStage[NodeCluster]

REPORT = """
import os, random, signal, sys, threading
note(folder / "report", {
    "pid": os.getpid(), "sid": os.getsid(0), "cwd": os.getcwd(), "argv": sys.argv[1:], "path": sys.path,
    "files": sorted(fd for fd in map(int, os.listdir("/proc/self/fd")) if os.path.exists(f"/proc/self/fd/{fd}")),
    "stdin": os.readlink("/proc/self/fd/0"), "env": dict(os.environ), "random": random.random(),
    "modules": sorted(sys.modules), "parent": os.getppid(),
    "signals": {s.name: repr(signal.getsignal(s)) for s in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE)},
})
"""


# what a task finds around it


def test_a_task_has_its_session_files_folder_arguments_and_environment(stage: Stage) -> None:
    report = stage.read(stage.start("job-1.1", (0, 2), REPORT))

    folder = str(stage.folder(TaskId("job-1.1")))
    assert report["sid"] == report["pid"]
    assert report["files"] == [0, 1, 2]
    assert report["stdin"] == "/dev/null"
    assert report["cwd"] == report["path"][0] == folder
    assert report["argv"][0] == folder
    assert report["env"]["GREETING"] == "hello"
    assert report["env"]["PLIANT_HOST"] == "127.0.0.1"
    assert report["env"]["CUDA_VISIBLE_DEVICES"] == report["env"]["NVIDIA_VISIBLE_DEVICES"] == ""
    num_threads = str(max(1, len(os.sched_getaffinity(0)) * 2 // NUM_SLOTS))
    assert {report["env"][name] for name in ("PLIANT_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")} == {
        num_threads
    }
    assert report["env"]["PATH"] == os.environ["PATH"]
    assert "PLIANT_SECRET" not in report["env"]
    assert "Handlers.SIG_DFL" in report["signals"]["SIGHUP"]
    assert "default_int_handler" in report["signals"]["SIGINT"]


def test_a_cold_task_finds_the_same_as_a_forked_one(stage: Stage) -> None:
    first = stage.order(TaskId("job-1.1"), (0,), REPORT)
    stage.cluster.start(replace(first, env={**first.env, "PLIANT_JOB_ID": "job-1"}))
    warm = stage.read(first.task_id)
    order = stage.order(TaskId("job-1.2"), (1,), REPORT)
    stage.cluster.start(
        replace(order, env={**order.env, "PLIANT_JOB_ID": "job-1", "PYTHONPATH": PATHS}, python=sys.executable)
    )
    cold = stage.read(order.task_id)

    for same in ("files", "stdin", "signals", "parent"):
        assert warm[same] == cold[same]
    assert cold["sid"] == cold["pid"]
    assert cold["path"][0] == cold["cwd"] == str(stage.folder(order.task_id))
    assert [path for path in warm["path"][1:] if path] == [path for path in cold["path"][1:] if path]
    ours = {"PWD", "OLDPWD", "_", "LC_CTYPE"}
    assert {k: v for k, v in warm["env"].items() if k not in ours} == {
        k: v for k, v in cold["env"].items() if k not in ours
    }


def test_the_orders_pythonpath_comes_before_the_agents(stage: Stage) -> None:
    order = stage.order(TaskId("job-1.1"), (0,), REPORT)
    stage.cluster.start(replace(order, env={"PYTHONPATH": "/first/of/all"}))

    path = stage.read(order.task_id)["path"]

    assert path[1] == "/first/of/all"
    assert path[2:4] == PATHS.split(":")


def test_two_tasks_draw_different_random_numbers(stage: Stage) -> None:
    drawn = {stage.read(stage.start(f"job-1.{number}", (number,), REPORT))["random"] for number in range(3)}

    assert len(drawn) == 3


def test_what_a_task_prints_is_in_its_own_files_at_once_and_only_the_owner_reads_them(stage: Stage) -> None:
    source = "import sys; print('to out'); print('to err', file=sys.stderr); (folder / 'orders').open().readline()"
    task_id = stage.start("job-1.1", (0,), source)

    log_dir = stage.folder(task_id) / "log"
    until(lambda: (log_dir / "stderr").exists() and "to err" in stage.log(task_id), "both lines are there")

    assert stage.log(task_id, "stdout") == "to out\n"
    assert {stat.S_IMODE(file.stat().st_mode) for file in log_dir.iterdir()} == {0o600}


def test_an_order_larger_than_a_sockets_buffer_arrives_whole(stage: Stage) -> None:
    order = stage.order(TaskId("job-1.1"), (0,), REPORT)
    stage.cluster.start(replace(order, env={"LARGE": "x" * 100_000, **{f"V{i}": "y" * 9000 for i in range(100)}}))

    env = stage.read(order.task_id)["env"]

    assert len(env["LARGE"]) == 100_000
    assert len(env["V99"]) == 9000


def test_secrets_stand_on_no_command_line_and_in_no_log_of_the_zygote(stage: Stage) -> None:
    order = stage.order(TaskId("job-1.1"), (0,))
    stage.cluster.start(replace(order, env={"PLIANT_TASK_TOKEN": "s3cr3t", "PYTHONPATH": PATHS}, python=sys.executable))
    until(lambda: stage.running(order.task_id), "the program has begun")

    pids = (stage.pid_of(order.task_id), stage.cluster.readiness().pid)
    assert not any("s3cr3t" in Path(f"/proc/{pid}/cmdline").read_text() for pid in pids)
    kept = [path.read_text() for path in (stage.root / "agent").iterdir() if path.is_file()]
    assert not any("s3cr3t" in text for text in kept)


# how a task ends


@pytest.mark.parametrize(
    ("source", "code", "said"),
    [
        ("raise RuntimeError('went wrong')", 1, "RuntimeError: went wrong"),
        ("import sys; sys.exit(7)", 7, ""),
        ("import sys; sys.exit()", 0, ""),
        ("import sys; sys.exit('enough')", 1, "enough"),
        ("raise KeyboardInterrupt", 130, "KeyboardInterrupt"),
        ("import os; os._exit(9)", 9, ""),
        ("import os, signal; os.kill(os.getpid(), signal.SIGUSR1)", -signal.SIGUSR1, ""),
        ("import os; os.abort()", -signal.SIGABRT, ""),
    ],
)
def test_the_exit_code_is_that_of_a_program(stage: Stage, source: str, code: int, said: str) -> None:
    exits = stage.exits()
    task_id = stage.start("job-1.1", (0,), source)

    ended = stage.exit_of(task_id, exits)
    assert (ended.exit_code, ended.error) == (code, "")
    assert said in ended.facts.stderr
    assert said in stage.log(task_id)


def test_threads_end_and_exit_handlers_run_and_buffers_are_written_as_at_the_end_of_any_program(
    stage: Stage,
) -> None:
    source = """
import atexit, concurrent.futures, sys, threading
atexit.register(print, "handler")
go = threading.Event()
threading.Thread(target=lambda: (go.wait(10), print("thread"))).start()
pool = concurrent.futures.ThreadPoolExecutor()
pool.submit(print, "pool").result()
sys.stdout.write("no newline, ")
threading.Timer(0.01, go.set).start()
"""
    exits = stage.exits()
    task_id = stage.start("job-1.1", (0,), source)

    assert stage.exit_of(task_id, exits).exit_code == 0
    assert stage.log(task_id, "stdout") == "pool\nno newline, thread\nhandler\n"


def test_what_a_module_wants_done_at_the_end_is_not_done_by_every_task_for_which_it_was_imported_ahead(
    tmp_path: Path, bring_up: BringUp
) -> None:
    module = "import weakref\nclass Kept: ...\nkept = Kept()\nweakref.finalize(kept, print, 'of the module')\n"
    (tmp_path / "ahead.py").write_text(module)
    stage = bring_up(tmp_path, {"PYTHONPATH": f"{PATHS}:{tmp_path}"}, preload=("ahead",))
    source = "import ahead, weakref\nown = ahead.Kept()\nweakref.finalize(own, print, 'of the task')\n"
    exits = stage.exits()
    task_id = stage.start("job-1.1", (0,), source)

    assert stage.exit_of(task_id, exits).exit_code == 0
    assert stage.log(task_id, "stdout") == "of the task\n"


def test_what_a_task_leaves_in_its_session_ends_with_it(stage: Stage) -> None:
    source = """
import os, subprocess
pids = [subprocess.Popen(["sleep", "1000"]).pid, subprocess.Popen(["sleep", "1000"], process_group=0).pid]
note(folder / "report", pids)
"""
    exits = stage.exits()
    task_id = stage.start("job-1.1", (0,), source)

    assert stage.exit_of(task_id, exits).exit_code == 0
    assert [process.stamp(pid) for pid in stage.read(task_id)] == [None, None]


def test_a_kill_ends_everything_in_the_session_also_what_ignores_signals(stage: Stage) -> None:
    source = """
import signal, subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "1000"], process_group=0)
note(folder / "report", child.pid)
child.wait()
"""
    exits = stage.exits()
    task_id = stage.start("job-1.1", (0,), source)
    child = stage.read(task_id)
    stage.cluster.drain(task_id)

    stage.cluster.kill(task_id)

    assert stage.exit_of(task_id, exits).exit_code == -9
    assert process.stamp(child) is None


def test_a_kill_of_a_stopped_task_ends_it_and_the_worker_processes_that_load_its_data(stage: Stage) -> None:
    source = """
import multiprocessing, os, signal
context = multiprocessing.get_context("fork")
wanted = context.Queue()
workers = [context.Process(target=wanted.get, daemon=True) for _ in range(3)]
for worker in workers:
    worker.start()
os.kill(workers[0].pid, signal.SIGSTOP)
note(folder / "report", [worker.pid for worker in workers])
workers[1].join()
"""
    exits = stage.exits()
    task_id = stage.start("job-1.1", (0,), source)
    workers = stage.read(task_id)
    os.kill(stage.pid_of(task_id), signal.SIGSTOP)

    stage.cluster.kill(task_id)

    assert stage.exit_of(task_id, exits).exit_code == -9
    assert [process.stamp(pid) for pid in workers] == [None] * 3


def test_what_an_adopted_task_leaves_ends_with_it_also_if_its_zygote_is_gone(stage: Stage) -> None:
    source = """
import subprocess
child = subprocess.Popen(["sleep", "1000"])
note(folder / "report", child.pid)
child.wait()
"""
    exits = stage.exits()
    task_id = stage.start("job-1.1", (0,), source)
    child, zygote = stage.read(task_id), stage.cluster.readiness().pid
    assert zygote is not None
    os.kill(zygote, signal.SIGKILL)
    until(lambda: process.stamp(zygote) is None, "the zygote is gone")

    stage.cluster.kill(task_id)

    assert stage.exit_of(task_id, exits).exit_code in (None, -9)
    assert process.stamp(child) is None
