"""An agent in a process of its own, over a socket pair, does all that one in the server's process does."""

import os
import re
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.contracts.cluster import NUM_SLOTS, ClusterContract
from tests.contracts.process_stage import DEADLINE_S, ENTRY, NODE, PATHS, ProcessStage, until
from tests.forks import CHANNEL, WarmModule

from pliant.cluster import process
from pliant.cluster.agent.messages import Kill, Start
from pliant.cluster.channel import AgentSocket
from pliant.cluster.json_lines import MAX_LINE_BYTES, encode
from pliant.cluster.node import NodeCluster
from pliant.core.errors import Unavailable
from pliant.core.job import TaskId

BringUp = Callable[..., ProcessStage[NodeCluster]]
Stage = ProcessStage[NodeCluster]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteStage(ProcessStage[NodeCluster]):
    """A cluster whose agent is another process."""

    agent: WarmModule
    socket: socket.socket
    """The adapter's end."""

    def end(self) -> None:
        """As for any stage, but an agent that has lost its adapter cannot be asked to end its tasks."""
        if _refuses(self):
            self.cluster.close()
        else:
            ProcessStage.end(self)
        assert self.agent.wait(DEADLINE_S) in (0, -signal.SIGKILL)


def start_agent(root: Path) -> tuple[WarmModule, socket.socket]:
    ours, theirs = socket.socketpair()
    options = {
        "--channel": CHANNEL,
        "--node": NODE,
        "--state-dir": root / "agent",
        "--num-slots": NUM_SLOTS,
        "--entry": ENTRY,
    }
    arguments = [str(part) for pair in options.items() for part in pair]
    with theirs:
        env = {**os.environ, "PYTHONPATH": PATHS}
        agent = WarmModule(["pliant.entry.agent", *arguments], env=env, channel=theirs)
    return agent, ours


@pytest.fixture
def bring_up_remote() -> Iterator[Callable[[Path], RemoteStage]]:
    """Give a function that starts an agent in a process of its own, and a cluster over it."""
    stages: list[RemoteStage] = []

    def make(root: Path) -> RemoteStage:
        agent, ours = start_agent(root)
        stages.append(RemoteStage(cluster=NodeCluster(AgentSocket(ours)), root=root, agent=agent, socket=ours))
        return stages[-1]

    yield make
    for stage in stages:
        stage.end()


@pytest.fixture
def stage(tmp_path: Path, bring_up_remote: Callable[[Path], RemoteStage]) -> RemoteStage:
    return bring_up_remote(tmp_path)


class TestAgentInAnotherProcess(ClusterContract):
    """Runs on the fixture `stage` of this file."""


def test_the_zygote_is_a_child_of_the_agents_process(stage: RemoteStage) -> None:
    stat = Path(f"/proc/{stage.cluster.readiness().pid}/stat").read_text()

    assert int(stat.rpartition(")")[2].split()[1]) == stage.agent.pid


def test_an_agent_whose_adapter_dies_lives_as_long_as_its_tasks_which_the_next_agent_adopts(
    tmp_path: Path, bring_up_remote: Callable[[Path], RemoteStage]
) -> None:
    first = bring_up_remote(tmp_path)
    tasks = [first.start(f"job-1.{number}", (number,)) for number in range(2)]
    pids = [first.pid_of(task_id) for task_id in tasks]
    first.socket.shutdown(socket.SHUT_RDWR)

    until(lambda: _refuses(first), "the adapter has seen it")
    first.finish(tasks[0], 6)
    until(lambda: process.stamp(pids[0]) is None, "one task ends while nobody watches")
    assert first.agent.poll() is None, "the other one goes on, and its agent with it"

    second = bring_up_remote(tmp_path)
    exits = second.exits()
    assert second.exit_of(tasks[0], exits).exit_code == 6
    assert [(task.task_id, task.pid) for task in second.cluster.observe().tasks] == [(tasks[1], pids[1])]
    assert first.agent.wait(DEADLINE_S) == 0, "it leaves its tasks to the later one"
    second.finish(tasks[1], 7)
    assert second.exit_of(tasks[1], exits).exit_code == 7


def test_an_agent_without_adapter_ends_with_its_last_task(stage: RemoteStage) -> None:
    task_id = stage.start("job-1.1")
    until(lambda: stage.running(task_id), "the program has begun")
    stage.socket.shutdown(socket.SHUT_RDWR)
    stage.finish(task_id, 0)

    assert stage.agent.wait(DEADLINE_S) == 0


def test_the_tasks_of_an_agent_that_is_killed_are_adopted_by_the_next_one(
    tmp_path: Path, bring_up_remote: Callable[[Path], RemoteStage]
) -> None:
    first = bring_up_remote(tmp_path)
    task_id = first.start("job-1.1")
    pid = first.pid_of(task_id)
    first.agent.kill()
    until(lambda: _refuses(first), "the adapter has seen it")

    second = bring_up_remote(tmp_path)
    assert [(task.task_id, task.pid) for task in second.cluster.observe().tasks] == [(task_id, pid)]
    second.finish(task_id, 5)
    assert second.exit_of(task_id, second.exits()).exit_code == 5


def test_the_memory_limit_of_a_task_outlives_the_agent_that_started_it(
    tmp_path: Path, bring_up_remote: Callable[[Path], RemoteStage]
) -> None:
    first = bring_up_remote(tmp_path)
    hog = """
import signal, time
while not (folder / "go").exists():
    time.sleep(0.01)
x = b"1" * (300 << 20)
signal.pause()
"""
    order = replace(first.order(TaskId("job-1.1"), (0,), hog), memory_bytes=150 << 20)
    first.cluster.start(order)
    pid = first.pid_of(order.task_id)
    first.agent.kill()
    until(lambda: _refuses(first), "the adapter has seen it")

    second = bring_up_remote(tmp_path)
    exits = second.exits()
    assert [(task.task_id, task.pid) for task in second.cluster.observe().tasks] == [(order.task_id, pid)]
    (second.folder(order.task_id) / "go").touch()
    ended = second.exit_of(order.task_id, exits)
    assert ended.exit_code == -9
    assert re.fullmatch(r"used [0-9]+ MiB of memory, more than its limit of 150 MiB, and .*", ended.cause), ended.cause
    assert ended.facts.out_of_memory


def test_where_no_agent_answers_there_is_no_cluster() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()

    with pytest.raises(Unavailable, match="does not answer"):
        NodeCluster(AgentSocket(ours))


@pytest.mark.parametrize(
    "junk",
    [b"hello\n", b'{"kind": "kill", "task_id": 7}\n'],
)
def test_an_agent_hangs_up_on_whoever_sends_anything_but_messages_and_its_tasks_go_on(
    stage: RemoteStage, junk: bytes
) -> None:
    task_id = stage.start("job-1.1")
    until(lambda: stage.running(task_id), "the program has begun")
    pid = stage.pid_of(task_id)  # which may arrive after the program has begun
    stage.socket.send(junk)

    until(lambda: _refuses(stage), "the agent has hung up")
    assert process.stamp(pid) is not None
    stage.finish(task_id, 0)
    assert stage.agent.wait(DEADLINE_S) == 0


def test_a_message_that_is_too_long_is_refused_before_anything_is_started(stage: RemoteStage) -> None:
    order = stage.order(TaskId("job-1.1"), (0,), "x" * MAX_LINE_BYTES)

    with pytest.raises(ValueError, match="longer than"):
        stage.cluster.start(order)
    assert stage.cluster.observe().tasks == ()


def test_an_agent_starts_no_task_on_a_slot_that_is_held_whatever_its_adapter_believes(stage: RemoteStage) -> None:
    exits = stage.exits()
    first = stage.start("job-1.1", (0,))
    wrong = [stage.order(TaskId(name), slots) for name, slots in (("job-1.2", (0,)), ("job-1.3", (9,)))]
    for order in wrong:
        stage.socket.send(encode(Start(order=order)))
    stage.pass_time()
    stage.socket.send(encode(Kill(task_id=first)))

    assert stage.exit_of(first, exits).exit_code == -9
    assert not any(stage.running(order.task_id) for order in wrong)


def _refuses(stage: RemoteStage) -> bool:
    """Return whether the adapter knows that its agent is gone."""
    try:
        stage.cluster.start(stage.order(TaskId("job-9.9"), (NUM_SLOTS,)))
    except Unavailable:
        return True
    except ValueError:  # there is no such slot
        return False
    raise AssertionError("it was started")
