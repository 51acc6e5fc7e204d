"""The local cluster keeps the port's laws with real processes, and the next server goes on where one was killed."""

import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tests.contracts.cluster import ClusterContract
from tests.contracts.process_stage import DEADLINE_S, PATHS, ProcessStage, until
from tests.hostile import PLANTS

from pliant.cluster import process
from pliant.cluster.agent import node_zygote, remains
from pliant.cluster.agent.inspector import Inspector
from pliant.cluster.node import NodeCluster
from pliant.cluster.zygote import records
from pliant.core.errors import Unavailable
from pliant.core.job import TaskId
from pliant.core.ports import ExitFacts, TaskExit
from pliant.files import step_file

BringUp = Callable[..., ProcessStage[NodeCluster]]
Stage = ProcessStage[NodeCluster]


class TestNodeCluster(ClusterContract):
    """Runs on the fixture `stage` of this folder."""


def test_a_host_tells_what_resource_groups_choose_it_by(tmp_path: Path, bring_up: BringUp) -> None:
    (node,) = bring_up(tmp_path, labels={"kind": "gpu"}).cluster.observe().nodes

    assert (dict(node.labels), node.num_gpus, node.num_cpus) == ({"kind": "gpu"}, 0, len(os.sched_getaffinity(0)))


def test_the_agent_tells_how_its_machine_is(stage: Stage) -> None:
    until(lambda: bool(stage.cluster.measured()), "the machine was read once")

    facts = stage.cluster.measured()[stage.node_id].facts
    assert facts.memory_bytes is not None
    assert facts.memory_used_bytes is not None
    assert 0 < facts.memory_used_bytes < facts.memory_bytes
    assert facts.load is not None
    assert facts.booted_at is not None
    assert facts.devices == ()


def test_exits_are_seen_within_100_ms(stage: Stage) -> None:
    seen: dict[TaskId, float] = {}
    stage.cluster.watch(lambda ended: seen.update({ended.task_id: time.monotonic()}))
    last_words = "import os, time; note(folder / 'report', time.monotonic());"
    late: list[float] = []
    for number, end in enumerate(("", "os._exit(3)", "os.kill(os.getpid(), 15)", "os.kill(os.getpid(), 9)") * 2):
        task_id = stage.start(f"job-1.{number}", (0,), f"{last_words} {end}")
        until(lambda task_id=task_id: task_id in seen, "the exit is reported")  # type: ignore[misc]
        late.append(seen[task_id] - stage.read(task_id))
    for number in range(4):
        task_id = stage.start(f"job-2.{number}", (0,))
        until(lambda task_id=task_id: stage.running(task_id), "the program has begun")  # type: ignore[misc]
        killed_at = time.monotonic()
        stage.cluster.kill(task_id)
        until(lambda task_id=task_id: task_id in seen, "the exit is reported")  # type: ignore[misc]
        late.append(seen[task_id] - killed_at)

    assert statistics.median(late) < 0.1, late


def test_a_task_that_uses_more_memory_than_it_may_is_ended_and_that_is_told(stage: Stage) -> None:
    exits = stage.exits()
    limit = 150 << 20
    modest = replace(stage.order(TaskId("job-1.1"), (0,)), memory_bytes=limit)
    hog = "import signal; x = b'1' * (300 << 20); signal.pause()"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hog!r}])"
    greedy = replace(stage.order(TaskId("job-1.2"), (1,), child), memory_bytes=limit)
    for order in (modest, greedy):
        stage.cluster.start(order)
    ended = stage.exit_of(greedy.task_id, exits)
    assert ended.exit_code == -9
    assert re.fullmatch(r"used [0-9]+ MiB of memory, more than its limit of 150 MiB, and .*", ended.cause), ended.cause
    until(lambda: stage.running(modest.task_id), "the modest one goes on")
    stage.cluster.kill(modest.task_id)
    assert ended.facts.out_of_memory
    killed = stage.exit_of(modest.task_id, exits)
    assert (killed.cause, killed.facts.out_of_memory) == ("", False)


# what cannot be started


def test_a_folder_that_is_not_there_is_named(stage: Stage) -> None:
    exits = stage.exits()
    order = stage.hopeless_order(TaskId("job-1.1"), (0,))
    stage.cluster.start(order)

    assert order.cwd in stage.exit_of(order.task_id, exits).error


def test_an_environment_that_cannot_be_set_is_told(stage: Stage) -> None:
    exits = stage.exits()
    order = stage.order(TaskId("job-1.1"), (0,))
    stage.cluster.start(replace(order, env={"BAD": "a\0b"}))

    assert "environment" in stage.exit_of(order.task_id, exits).error


def test_a_log_folder_that_cannot_be_made_is_named(stage: Stage) -> None:
    exits = stage.exits()
    order = stage.order(TaskId("job-1.1"), (0,))
    stage.cluster.start(replace(order, log_dir="/dev/null/log"))

    assert "/dev/null/log" in stage.exit_of(order.task_id, exits).error


@pytest.mark.parametrize("name", ["missing", "not-executable", "not-a-program"])
def test_an_interpreter_that_cannot_be_run_is_named(stage: Stage, name: str) -> None:
    python = stage.root / name
    if name != "missing":
        python.write_bytes(b"\x00\x01")
        python.chmod(0o755 if name == "not-a-program" else 0o644)
    exits = stage.exits()
    order = stage.order(TaskId("job-1.1"), (0,))
    stage.cluster.start(replace(order, python=str(python)))

    error = stage.exit_of(order.task_id, exits).error
    assert f"the Python interpreter {python} cannot be run" in error


def test_an_interpreter_without_pliant_is_told_from_a_program_that_fails(tmp_path: Path, bring_up: BringUp) -> None:
    bare = tmp_path / "bare-python"
    base = Path(sys.base_prefix) / "bin" / "python3"
    bare.write_text(f'#!/bin/sh\nexec {base} -I "$@"\n')
    bare.chmod(0o755)
    stage = bring_up(tmp_path, entry="pliant.entry.task:main")
    exits = stage.exits()
    order = stage.order(TaskId("job-1.1"), (0,))
    reads = replace(order.confinement, reads=(str(bare),))
    stage.cluster.start(replace(order, python=str(bare), confinement=reads))
    assert f"{bare} -m pip install pliant" in stage.exit_of(order.task_id, exits).error


@pytest.mark.parametrize("kind", PLANTS)
def test_whatever_a_task_leaves_in_the_place_of_its_files_its_exit_is_told(stage: Stage, kind: str) -> None:
    """It cannot hold up the agent or the zygote: other tasks start and end meanwhile."""
    exits = stage.exits()
    order = stage.order(TaskId("job-1.1"), (0,))
    stage.cluster.start(order)
    until(lambda: stage.running(order.task_id), "the program has begun")
    log, secret = Path(order.log_dir), stage.root / "secret"
    secret.write_bytes(b"the server's token")
    for name in ("stderr", step_file.NAME, "../model/model.pt"):
        (log / name).parent.mkdir(exist_ok=True)
        (log / name).unlink(missing_ok=True)
        PLANTS[kind](log / name, secret)
    stage.cluster.kill(order.task_id)

    ended = stage.exit_of(order.task_id, exits)
    assert (ended.exit_code, ended.facts) == (-9, ExitFacts())
    stage.pass_time()
    assert stage.cluster.trouble() == ""


def test_a_file_system_that_does_not_answer_costs_the_facts_and_nothing_else(
    tmp_path: Path, bring_up: BringUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = [sys.executable, "-c", "import time; time.sleep(600)"]
    monkeypatch.setattr(remains, "Inspector", partial(Inspector, command=hangs, deadline_s=0.5))
    stage = bring_up(tmp_path)
    exits = stage.exits()
    stage.leave_behind(TaskId("job-1.1"), ExitFacts(step=4))
    stage.start("job-1.1", (0,))
    stage.finish(TaskId("job-1.1"), 3)

    assert stage.exit_of(TaskId("job-1.1"), exits) == TaskExit(task_id=TaskId("job-1.1"), exit_code=3)
    stage.pass_time()


def test_a_slot_is_free_when_what_its_task_left_was_looked_at_and_not_before(
    tmp_path: Path, bring_up: BringUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = [sys.executable, "-c", "import time; time.sleep(600)"]
    monkeypatch.setattr(remains, "Inspector", partial(Inspector, command=hangs))
    stage = bring_up(tmp_path)
    task_id = stage.start("job-1.1", (0,))
    pid = stage.pid_of(task_id)
    stage.finish(task_id, 3)
    until(lambda: process.stamp(pid) is None, "its process is gone")
    assert [task.task_id for task in stage.cluster.observe().tasks] == [task_id]
    stage.cluster.close()

    monkeypatch.undo()
    second = bring_up(tmp_path)
    assert second.exit_of(task_id, second.exits()).exit_code == 3


def inspectors() -> int:
    num = 0
    for path in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # a thread or a child may have ended
            for pid in path.read_text().split():
                num += b"pliant.entry.inspector" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return num


def test_what_looks_at_files_does_not_begin_beside_the_zygote_that_a_task_waits_for(
    tmp_path: Path, bring_up: BringUp
) -> None:
    os.mkfifo(tmp_path / "go")
    (tmp_path / "slow_to_import.py").write_text(f"open({str(tmp_path / 'go')!r}).read()\n")
    env = {"PYTHONPATH": f"{PATHS}:{tmp_path}"}
    stage = bring_up(tmp_path, env, preload=("slow_to_import",), max_disk_bytes=1 << 30)
    stage.start("job-1.1")
    until((tmp_path / "agent" / "job-1.1.json").exists, "the order is sent")

    assert inspectors() == 0
    (tmp_path / "go").write_text("go")
    until(lambda: inspectors() == 2, "they look at what the task leaves, and at what it writes")


def test_what_looks_at_files_does_not_begin_beside_a_task_that_begins(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_zygote, "_BEGIN_S", 600.0)
    exits = stage.exits()
    for number in range(2):
        task_id = stage.start(f"job-1.{number}", (number,))
        until(partial(stage.running, task_id), "the task runs")

    assert inspectors() == 0
    stage.finish(task_id, 3)
    assert stage.exit_of(task_id, exits).exit_code == 3
    assert inspectors() == 1, "it was asked"


def test_what_looks_at_files_is_there_before_the_first_task_if_there_is_time(tmp_path: Path, bring_up: BringUp) -> None:
    bring_up(tmp_path, max_disk_bytes=1 << 30)

    until(lambda: inspectors() == 2, "both are there")


def test_a_task_id_that_cannot_name_a_file_is_refused(stage: Stage) -> None:
    order = replace(stage.order(TaskId("job-1.1"), (0,)), task_id=TaskId("../elsewhere"))

    with pytest.raises(ValueError, match="elsewhere"):
        stage.cluster.start(order)


def test_nothing_is_started_on_a_closed_cluster(stage: Stage) -> None:
    stage.cluster.close()

    with pytest.raises(Unavailable, match="closed"):
        stage.start("job-1.1")


# a server after a server


def test_the_next_server_adopts_what_runs_and_learns_how_it_ends(tmp_path: Path, bring_up: BringUp) -> None:
    first = bring_up(tmp_path)
    facts = [ExitFacts(step=number + 1, stderr=f"task {number}\n", stderr_at=1.0) for number in range(3)]
    for number in range(3):
        first.leave_behind(TaskId(f"job-1.{number}"), facts[number])
    tasks = [first.start(f"job-1.{number}", (number,)) for number in range(3)]
    pids = [first.pid_of(task_id) for task_id in tasks]
    zygote = first.cluster.readiness().pid
    assert zygote is not None
    first.cluster.close()
    first.finish(tasks[0], 6)
    until(lambda: process.stamp(pids[0]) is None, "one task ends while nobody watches")

    second = bring_up(tmp_path)
    until(lambda: len(second.cluster.observe().tasks) == 2, "the dead one is sorted out")
    assert [(task.task_id, task.pid) for task in second.cluster.observe().tasks] == [*zip(tasks, pids, strict=True)][1:]
    exits = second.exits()
    assert second.exit_of(tasks[0], exits) == TaskExit(task_id=tasks[0], exit_code=6, facts=facts[0])
    second.finish(tasks[1], 7)
    assert second.exit_of(tasks[1], exits) == TaskExit(task_id=tasks[1], exit_code=7, facts=facts[1])
    until(lambda: second.running(tasks[2]), "the last one can be drained")
    second.cluster.drain(tasks[2])
    assert second.exit_of(tasks[2], exits) == TaskExit(task_id=tasks[2], exit_code=0, facts=facts[2])
    until(lambda: process.stamp(zygote) is None, "the old zygote ends with its last child")


@pytest.mark.parametrize("is_acknowledged", [True, False], ids=["acknowledged", "not acknowledged"])
def test_an_exit_is_reported_by_the_next_server_unless_this_one_has_dealt_with_it_and_its_id_is_spent(
    tmp_path: Path, bring_up: BringUp, is_acknowledged: bool
) -> None:
    first = bring_up(tmp_path)
    exits = first.exits()
    task_id = TaskId("job-1.1")
    first.leave_behind(task_id, ExitFacts(unsent="what it said last"))
    first.start(task_id)
    first.finish(task_id, 0)
    told = first.exit_of(task_id, exits)
    if is_acknowledged:
        first.cluster.acknowledge(task_id)
    first.cluster.close()

    second = bring_up(tmp_path)
    exits = second.exits()
    if not is_acknowledged:
        assert second.exit_of(task_id, exits) == told
        assert told.facts.unsent == "what it said last"
        exits.clear()
    second.start("job-1.1")
    second.pass_time()
    assert all(ended.task_id != task_id for ended in exits)
    assert second.cluster.observe().tasks == ()


def test_tasks_outlive_a_server_that_is_killed(tmp_path: Path, bring_up: BringUp) -> None:
    task_id = TaskId("job-1.1")
    (tmp_path / task_id).mkdir()
    os.mkfifo(tmp_path / task_id / "orders")
    server = f"""
import os, signal, time
from pathlib import Path
from pliant.cluster.agent.settings import AgentSettings
from pliant.cluster.channel import AgentThread
from pliant.cluster.node import NodeCluster
from pliant.core.confinement import Confinement
from pliant.core.ports import StartOrder
class Clock:
    now = staticmethod(time.time)
folder = Path({str(tmp_path / "job-1.1")!r})
settings = AgentSettings(node_id="here", state_dir=Path({str(tmp_path / "agent")!r}), num_slots=4, preload=(),
                         entry="tests.contracts.program:main")
cluster = NodeCluster(AgentThread(settings, clock=Clock(), base_env=os.environ))
cluster.start(StartOrder(task_id="job-1.1", node_id="here", slots=(0,), argv=(str(folder),), env={{}}, cwd=str(folder),
                         confinement=Confinement(writes=(str(folder),)),
                         log_dir=str(folder)))
while not (folder / "began").exists():
    time.sleep(0.01)
os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run(
        [sys.executable, "-c", server], env={**os.environ, "PYTHONPATH": PATHS}, timeout=DEADLINE_S, check=False
    )
    assert ended.returncode == -signal.SIGKILL

    stage = bring_up(tmp_path)
    exits = stage.exits()
    (task,) = stage.cluster.observe().tasks
    assert (task.task_id, task.slots) == (task_id, (0,))
    stage.finish(task_id, 5)
    assert stage.exit_of(task_id, exits).exit_code == 5


def test_an_older_servers_zygote_starts_nothing_once_a_newer_server_has_begun(
    tmp_path: Path, bring_up: BringUp
) -> None:
    os.mkfifo(tmp_path / "go")
    (tmp_path / "slow_to_import.py").write_text(f"open({str(tmp_path / 'go')!r}).read()\n")
    old = bring_up(tmp_path, {"PYTHONPATH": f"{PATHS}:{tmp_path}"}, preload=("slow_to_import",))
    task_id = old.start("job-1.1")
    until((tmp_path / "agent" / "job-1.1.json").exists, "the order is sent")
    zygote = old.cluster.readiness().pid
    assert zygote is not None

    new = bring_up(tmp_path)
    exits = new.exits()
    assert "before the task was started" in new.exit_of(task_id, exits).error
    old.cluster.close()
    (tmp_path / "go").write_text("go")
    until(lambda: process.stamp(zygote) is None, "the old zygote ends")
    assert not new.running(task_id)


def test_records_of_long_ago_are_forgotten(tmp_path: Path, bring_up: BringUp) -> None:
    agent = tmp_path / "agent"
    agent.mkdir()
    old = records.Record(task_id=TaskId("job-1.1"), slots=(0,), ended_at=1.0, exit_code=0, reported=True)
    records.write(agent, old)

    bring_up(tmp_path).end()

    assert records.read(agent, old.task_id) is None


def test_a_closed_cluster_leaves_no_thread_no_file_and_no_zygote(tmp_path: Path, bring_up: BringUp) -> None:
    def open_now() -> set[object]:
        files = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
        return {*threading.enumerate(), *((file, os.readlink(file)) for file in files if os.path.lexists(file))}

    bring_up(tmp_path / "first").end()
    before = open_now()
    for number in range(3):
        stage = bring_up(tmp_path / f"again-{number}")
        exits = stage.exits()
        stage.finish(stage.start("job-1.1"), 0)
        stage.exit_of(TaskId("job-1.1"), exits)
        zygote = stage.cluster.readiness().pid
        assert zygote is not None
        stage.end()
        until(lambda zygote=zygote: process.stamp(zygote) is None, "the zygote is gone")  # type: ignore[misc]

    assert open_now() <= before  # something of an earlier test's may have gone meanwhile


def test_an_agent_that_was_stopped_does_nothing_after_the_next_one_has_begun(tmp_path: Path, bring_up: BringUp) -> None:
    stopped = bring_up(tmp_path)
    task_id = stopped.start("job-1.1", (0,))
    stopped.pid_of(task_id)
    exits = stopped.exits()
    stopped.finish(stopped.start("job-0.1", (1,)), 0)
    stopped.exit_of(TaskId("job-0.1"), exits)  # the end of a tick: it is not in the middle of one
    leader = bring_up(tmp_path)
    until(lambda: len(leader.cluster.observe().tasks) == 1, "the next agent has taken it up")
    order = stopped.order(TaskId("job-1.2"), (1,))
    stopped.cluster.start(order)
    stopped.cluster.kill(task_id)
    leader.finish(task_id, 3)
    assert leader.exit_of(task_id, leader.exits()).exit_code == 3, "it was not killed"
    stopped.cluster.close()
    assert not [ended for ended in exits if ended.task_id == "job-1.2"]
    assert not records.path_of(tmp_path / "agent", TaskId("job-1.2")).exists()
