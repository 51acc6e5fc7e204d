"""An agent whose tasks' files are brought by a real mirror from a real server."""

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tests.cluster.mirror.conftest import SECRET, TASK, Keeper, Machine
from tests.contracts.process_stage import ENTRY, PATHS, until

from pliant.cluster.agent.agent import Agent
from pliant.cluster.agent.channel import Mailbox
from pliant.cluster.agent.messages import Close, Exited, FromAgent, Kill, Start
from pliant.cluster.agent.settings import AgentSettings
from pliant.cluster.mirror.bringing import Bringer
from pliant.cluster.mirror.grants import FileGrant, ticket_of
from pliant.cluster.mirror.keeper import FileKeeper
from pliant.cluster.mirror.messages import ListTree
from pliant.cluster.mirror.mirror import Mirror
from pliant.core.confinement import Confinement
from pliant.core.job import NodeId, TaskId
from pliant.core.ports import StartOrder, TaskExit
from pliant.entry.clock import SystemClock


@dataclass(slots=True, kw_only=True)
class WatchedKeeper(FileKeeper):
    """Notes which trees are looked at, for which task."""

    asked: list[tuple[TaskId, str]] = field(default_factory=list)

    def listing(self, grant: FileGrant | None, asked: ListTree) -> tuple[str, bytes]:
        assert grant is not None
        self.asked.append((grant.task_id, Path(asked.path).name))
        return FileKeeper.listing(self, grant, asked)


class Running:
    """An agent in a thread, and the mirror of its machine, whose folder is the server's own."""

    def __init__(self, keeper: Keeper, machine: Machine) -> None:
        self.keeper, self.machine = keeper, machine
        self.watched = keeper.files = WatchedKeeper(
            home=keeper.home,
            data_root=keeper.data,
            secret=SECRET,
            job_of=lambda node, task: keeper.living.get((node, task)),
        )
        self.mirror = Mirror(machine.server, Bringer(home=keeper.home, data_root=None, shared=()), machine.root)
        self.exits: list[TaskExit] = []
        self.mailbox = Mailbox(self._deliver)
        settings = AgentSettings(
            node_id=NodeId(machine.name), state_dir=machine.root / "agent", num_slots=2, preload=(), entry=ENTRY
        )
        env = {**os.environ, "PYTHONPATH": PATHS}
        agent = Agent(settings, self.mailbox, clock=SystemClock(), base_env=env, files=self.mirror)
        self.thread = threading.Thread(target=agent.run)
        self.thread.start()

    def _deliver(self, message: FromAgent) -> None:
        if isinstance(message, Exited):
            self.exits.append(message.exit)

    def start(self, task_id: TaskId) -> None:
        self.keeper.living[self.machine.name, task_id] = "job-1"
        job = self.keeper.home / "jobs" / "job-1"
        walls = Confinement(writes=tuple(str(job / folder) for folder in ("code", "result", "state")))
        ticket = ticket_of(SECRET, self.machine.name, task_id, walls.writes)
        order = StartOrder(
            task_id=task_id,
            node_id=NodeId(self.machine.name),
            slots=(0,),
            argv=(str(job / "code"), "pass"),
            env={"PLIANT_JOB_ID": "job-1"},
            cwd=str(job / "code"),
            log_dir=str(job / "result" / "log" / task_id),
            result_dir=str(job / "result"),
            confinement=walls,
        )
        self.mailbox.put(Start(order=replace(order, ticket=ticket)))

    def exit_of(self, task_id: TaskId) -> TaskExit:
        until(lambda: any(one.task_id == task_id for one in self.exits), f"{task_id} has ended")
        return next(one for one in self.exits if one.task_id == task_id)

    def close(self) -> None:
        self.mailbox.put(Close())
        self.thread.join(20)
        self.mirror.close()


@pytest.fixture
def running(keeper: Keeper, machine: Machine) -> Iterator[Running]:
    keeper.job()
    keeper.stop()
    made = Running(keeper, machine)
    yield made
    made.close()


def test_a_task_that_is_ended_while_its_files_are_brought_is_let_go_and_the_next_looks_at_the_server(
    keeper: Keeper, running: Running
) -> None:
    second = TaskId("job-1.2")
    running.start(TASK)
    running.mailbox.put(Kill(task_id=TASK))
    assert running.exit_of(TASK).cause == "was ended before its files were on this machine"
    keeper.begin()
    until(lambda: (TASK, "state") in running.watched.asked, "its files come all the same")
    until(lambda: not running.mirror._jobs.all(), "it is let go")
    running.start(second)
    ended = running.exit_of(second)
    assert (ended.exit_code, ended.error) == (0, "")
    assert {name for task_id, name in running.watched.asked if task_id == second} >= {"code", "result", "state"}
