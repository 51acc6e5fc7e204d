"""Nothing of a task outlives it, and its slot is not free before."""

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contracts.process_stage import ProcessStage, until

from pliant.cluster import process
from pliant.cluster.agent import remains
from pliant.cluster.node import NodeCluster
from pliant.cluster.zygote.records import Record
from pliant.core.job import TaskId
from pliant.isolation import control_groups
from pliant.isolation.control_groups import ControlGroups, find_parent

Stage = ProcessStage[NodeCluster]

DETACHES = """
import os, signal, sys, time
ready, told = os.pipe()
if os.fork() == 0:
    os.setsid()
    {more}
    child = os.fork()
    if child == 0:
        os.execve("/bin/sleep", ["sleep", "600"], {{}})
    os.write(told, str(child).encode())
    os._exit(0)
os.wait()
note(folder / "report", int(os.read(ready, 20)))
{end}
"""
IGNORES = "[signal.signal(number, signal.SIG_IGN) for number in (1, 2, 15)]"
FORGETS = "import ctypes; ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)"
WAITS = "(folder / 'orders').open().readline()"


class NoGroups(ControlGroups):
    """A machine on which no control group can be made."""

    def __init__(self, owner: str) -> None:
        super().__init__(owner, parent=Path("/nowhere"))


@pytest.fixture(params=["with control groups", "without"])
def machine(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bring_up: Callable[..., Stage]
) -> Stage:
    if request.param == "without":
        monkeypatch.setattr(remains, "ControlGroups", NoGroups)
    elif find_parent() is None:
        pytest.skip("this process may make no control groups")
    return bring_up(tmp_path)


@pytest.mark.parametrize("more", ["", IGNORES], ids=["plain", "hears no signal"])
@pytest.mark.parametrize("end", ["", "os.kill(os.getpid(), 9)"], ids=["ends", "is killed"])
def test_what_a_task_detaches_has_ended_when_its_slot_is_free(machine: Stage, more: str, end: str) -> None:
    exits = machine.exits()
    task_id = machine.start("job-1.1", (0,), DETACHES.format(more=more or "pass", end=end))
    pid = machine.read(task_id)

    machine.exit_of(task_id, exits)

    assert process.stamp(pid) is None


def test_what_a_task_that_was_killed_detached_has_ended_too(machine: Stage) -> None:
    exits = machine.exits()
    task_id = machine.start("job-1.1", (0,), DETACHES.format(more="pass", end=WAITS))
    pid = machine.read(task_id)
    assert process.stamp(pid) is not None

    machine.cluster.kill(task_id)

    assert machine.exit_of(task_id, exits).exit_code == -signal.SIGKILL
    assert process.stamp(pid) is None


def test_a_task_that_gives_its_children_away_loses_them_and_no_other_task_does(stage: Stage) -> None:
    """It turns off what makes it their parent: then the zygote is, and ends them."""
    other = stage.start(
        "job-2.1", (1,), "import subprocess; note(folder / 'report', subprocess.Popen(['sleep', '600']).pid); " + WAITS
    )
    kept = stage.read(other)
    task_id = stage.start("job-1.1", (0,), FORGETS + "\n" + DETACHES.format(more="pass", end=WAITS))
    pid = stage.read(task_id)

    until(lambda: process.stamp(pid) is None, "the child that was given away has ended")

    assert process.stamp(kept) is not None
    assert stage.running(TaskId("job-1.1"))


def test_after_a_task_its_control_group_is_gone(tmp_path: Path, bring_up: Callable[..., Stage]) -> None:
    parent = find_parent()
    if parent is None:
        pytest.skip("this process may make no control groups")
    stage = bring_up(tmp_path)
    exits = stage.exits()
    task_id = stage.start("job-1.1", (0,))
    owner = (tmp_path / "agent" / "memory").read_text()
    group = parent / f"pliant-{owner}" / task_id
    until(lambda: stage.running(task_id), "the program has begun")
    assert stage.pid_of(task_id) in control_groups.members(str(group))

    stage.finish(task_id, 0)
    stage.exit_of(task_id, exits)

    assert not os.path.exists(group)


@pytest.mark.parametrize(("num_ended", "why"), [(0, ""), (2, "used more memory than its limit of 1.0 GiB")])
def test_a_task_that_the_kernel_ended_for_its_memory_says_so(tmp_path: Path, num_ended: int, why: str) -> None:
    (tmp_path / "memory.events").write_text(f"low 0\nhigh 0\nmax 12\noom 1\noom_kill {num_ended}\n")
    record = Record(task_id=TaskId("job-1.1"), slots=(0,), memory_bytes=1 << 30, group=str(tmp_path))

    assert remains.memory_cause(record).startswith(why)
    assert bool(remains.memory_cause(record)) == bool(why)
    assert remains.memory_cause(replace(record, group=str(tmp_path / "gone"))) == ""
