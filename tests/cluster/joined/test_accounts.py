"""Every started task exits exactly once, and never while it lives: whatever becomes of agents, links and servers."""

from collections import deque
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pliant.cluster.agent.messages import (
    TO_AGENT,
    Acknowledge,
    Exited,
    FromAgent,
    Introduce,
    Kill,
    NodeFound,
    Observed,
    Start,
    ToAgent,
    UpToDate,
)
from pliant.cluster.joined.outbox import Outbox
from pliant.cluster.json_lines import decode
from pliant.cluster.node import KnownNode, NodeCluster
from pliant.core.errors import Unavailable
from pliant.core.job import NodeId, TaskId
from pliant.core.plan import NodeView
from pliant.core.ports import LiveTask, StartOrder, TaskExit

NODE = NodeView(id=NodeId("gpu1"), slots=(0, 1, 2))


class Agent:
    """What an agent remembers on its disk, and what its process knows besides."""

    def __init__(self) -> None:
        self.living: dict[TaskId, LiveTask] = {}
        self.exits: dict[TaskId, TaskExit] = {}
        self.spent: set[TaskId] = set()
        self.outbox: Outbox | None = None
        self.wire: deque[bytes] = deque()
        self.channel, self.received, self.next = "", 0, 1
        self._write = self.wire.append

    def connect(self, outbox: Outbox, cluster: NodeCluster) -> None:
        self.lose()
        self.wire = deque()
        self._write = self.wire.append
        self.outbox = outbox
        outbox.attach(self._write, self._welcome, received=self.received if self.channel == outbox.key else 0)
        if self.channel != outbox.key:
            self.channel, self.received = outbox.key, self.next - 1
        cluster.meet()

    def lose(self) -> None:
        if self.outbox is not None:
            self.outbox.detach(self._write)
        self.outbox = None

    def die(self) -> None:
        self.lose()
        self.channel, self.received = "", 0

    def read(self, *, and_do: bool = True) -> None:
        """Receive what one write has brought; or let it be lost with the process right after."""
        for line in self.wire.popleft().splitlines():
            number, self.next = self.next, self.next + 1
            if number > self.received:
                self.received = number
                if and_do:
                    self._do(decode(line, TO_AGENT))

    def end(self, task_id: TaskId, *, code: int = 0) -> None:
        del self.living[task_id]
        self.exits[task_id] = TaskExit(task_id=task_id, exit_code=code)
        self._say(Exited(exit=self.exits[task_id]))

    def _do(self, message: ToAgent) -> None:
        match message:
            case Start() if message.order.task_id not in self.spent:
                order = message.order
                self.spent.add(order.task_id)
                held = {slot for task in self.living.values() for slot in task.slots}
                if held & set(order.slots):
                    self.exits[order.task_id] = TaskExit(task_id=order.task_id, exit_code=None, error="held")
                    self._say(Exited(exit=self.exits[order.task_id]))
                    return
                task = LiveTask(task_id=order.task_id, node_id=NODE.id, slots=order.slots, slot_share=1000, pid=7)
                self.living[order.task_id] = task
                self._say(Observed(task=task))
            case Kill() if message.task_id in self.living:
                self.end(message.task_id, code=-9)
            case Acknowledge():
                self.exits.pop(message.task_id, None)
            case Introduce():
                self._say(NodeFound(node=NODE, session=message.session))
                for task in self.living.values():
                    self._say(Observed(task=task))
                for ended in self.exits.values():
                    self._say(Exited(exit=ended))
                self._say(UpToDate())
            case _:
                pass

    def _say(self, message: FromAgent) -> None:
        if self.outbox is not None:
            self.outbox.take(message)

    def _welcome(self, first: int) -> bytes:
        self.next = first
        return b""


class Accounts(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.agent = Agent()
        self.tasks: dict[TaskId, LiveTask] = {}
        """Those that were started and have not exited, as a server remembers them."""
        self.exited: list[TaskId] = []
        self.num_servers = self.num_tasks = 0
        self.begin()

    def begin(self) -> None:
        self.num_servers += 1
        self.outbox = Outbox(f"server {self.num_servers}")
        known = KnownNode(node=NODE, tasks=tuple(self.tasks.values()))
        self.cluster = NodeCluster(self.outbox, known=known)
        self.cluster.watch(self.take)

    def take(self, ended: TaskExit) -> None:
        assert ended.task_id not in self.agent.living, "it lives"
        assert ended.task_id in self.tasks, "it was started, and has not exited"
        del self.tasks[ended.task_id]
        self.exited.append(ended.task_id)
        self.cluster.acknowledge(ended.task_id)

    @rule(slot=st.sampled_from(NODE.slots))
    def start(self, slot: int) -> None:
        self.num_tasks += 1
        task_id = TaskId(f"job-1.{self.num_tasks}")
        task = LiveTask(task_id=task_id, node_id=NODE.id, slots=(slot,), slot_share=1000, pid=None)
        order = StartOrder(task_id=task_id, node_id=NODE.id, slots=(slot,), argv=(), env={}, cwd="/", log_dir="")
        self.tasks[task_id] = task
        try:
            self.cluster.start(order)
        except (ValueError, Unavailable):
            del self.tasks[task_id]

    @rule(data=st.data())
    @precondition(lambda self: self.tasks)
    def kill(self, data: st.DataObject) -> None:
        self.cluster.kill(data.draw(st.sampled_from(sorted(self.tasks))))

    @rule()
    def connect(self) -> None:
        self.agent.connect(self.outbox, self.cluster)

    @rule()
    def lose_link(self) -> None:
        self.agent.lose()

    @rule()
    @precondition(lambda self: self.agent.outbox is not None and self.agent.wire)
    def read(self) -> None:
        self.agent.read()

    @rule()
    @precondition(lambda self: self.agent.outbox is not None and self.agent.wire)
    def read_all(self) -> None:
        while self.agent.wire:
            self.agent.read()

    @rule()
    @precondition(lambda self: self.agent.outbox is not None)
    def confirm(self) -> None:
        self.outbox.confirm(self.agent.received)

    @rule()
    def restart_agent(self) -> None:
        self.agent.die()

    @rule()
    @precondition(lambda self: self.agent.outbox is not None and self.agent.wire)
    def restart_agent_that_has_received_more_than_it_did(self) -> None:
        self.agent.read(and_do=False)
        self.outbox.confirm(self.agent.received)
        self.agent.die()

    @rule()
    def restart_server(self) -> None:
        self.agent.lose()
        self.cluster.close()
        self.begin()

    @rule(data=st.data())
    @precondition(lambda self: self.agent.living)
    def end_task(self, data: st.DataObject) -> None:
        self.agent.end(data.draw(st.sampled_from(sorted(self.agent.living))))

    @rule()
    def give_up(self) -> None:
        """As `ClusterOfNodes` does, when the agent has ended all by itself."""
        self.agent.lose()
        for task_id in list(self.agent.living):
            self.agent.end(task_id, code=-9)
        self.outbox.drop()
        self.cluster.give_up("was on a machine that is gone")
        assert not self.tasks

    @invariant()
    def what_is_held_there_is_held_here(self) -> None:
        observed = {task.task_id for task in self.cluster.observe().tasks}
        assert self.tasks.keys() <= observed, "a task that has not exited keeps its slots"

    def teardown(self) -> None:
        self.agent.connect(self.outbox, self.cluster)
        for _ in range(3):
            while self.agent.wire:
                self.agent.read()
            for task_id in list(self.agent.living):
                self.agent.end(task_id)
        assert not self.tasks
        assert len(set(self.exited)) == len(self.exited)
        assert not self.agent.exits, "all are acknowledged"
        assert self.cluster.observe().tasks == ()


TestAccounts = Accounts.TestCase
TestAccounts.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


def joined(outbox: Outbox, *tasks: LiveTask) -> tuple[NodeCluster, list[TaskExit]]:
    cluster, exits = NodeCluster(outbox, known=KnownNode(node=NODE, tasks=tasks)), list[TaskExit]()
    cluster.watch(exits.append)
    return cluster, exits


def live(task_id: str, slot: int = 0) -> LiveTask:
    return LiveTask(task_id=TaskId(task_id), node_id=NODE.id, slots=(slot,), slot_share=1000, pid=None)


def test_an_order_that_died_with_the_agent_that_had_received_it_exits_once_with_the_reason() -> None:
    outbox = Outbox("key")
    cluster, exits = joined(outbox, live("job-1.1"))
    for _ in range(2):
        session = cluster.meet()
        outbox.take(NodeFound(node=NODE, session=session))
        outbox.take(UpToDate())

    assert [(ended.task_id, ended.exit_code) for ended in exits] == [("job-1.1", None)]
    assert "ended before it had begun to start it" in exits[0].cause


def test_what_a_machine_that_begins_anew_knows_nothing_of_went_with_it_and_blames_nobody() -> None:
    outbox = Outbox("key")
    cluster, exits = joined(outbox, replace(live("job-1.1"), pid=7))
    outbox.take(NodeFound(node=NODE, session=cluster.meet()))
    outbox.take(UpToDate())

    assert [(ended.task_id, ended.went_with_its_machine, ended.error) for ended in exits] == [("job-1.1", True, "")]
    assert "has begun anew" in exits[0].cause


def test_what_was_given_up_and_still_lives_is_killed_and_holds_its_slots_until_it_is_gone() -> None:
    outbox, agent = Outbox("key"), Agent()
    cluster, exits = joined(outbox, live("job-1.1"))
    agent.spent.add(TaskId("job-1.1"))
    agent.living[TaskId("job-1.1")] = live("job-1.1")
    outbox.drop()
    cluster.give_up("was on a machine that is gone")
    assert [ended.cause for ended in exits] == ["was on a machine that is gone"]
    cluster.acknowledge(TaskId("job-1.1"))

    agent.connect(outbox, cluster)
    agent.wire.popleft()  # the welcome
    agent.read()
    assert [task.task_id for task in cluster.observe().tasks] == ["job-1.1"]
    while agent.wire:
        agent.read()
    assert not agent.living
    assert not agent.exits
    assert cluster.observe().tasks == ()
    assert len(exits) == 1
