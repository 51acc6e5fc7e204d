"""What is seen of the machines is the same value until something has changed."""

from dataclasses import replace

import pytest

from pliant.cluster.joined.nodes import ClusterOfNodes
from pliant.cluster.joined.outbox import Outbox
from pliant.cluster.node import KnownNode, NodeCluster
from pliant.core.job import NodeId, TaskId
from pliant.core.plan import NodeView
from pliant.core.ports import LiveTask, StartOrder, TaskExit

HERE, THERE = NodeId("here"), NodeId("there")


def known(name: NodeId) -> KnownNode:
    return KnownNode(node=NodeView(id=name, slots=(0, 1)))


def test_a_look_at_what_has_not_changed_makes_nothing_new() -> None:
    nodes = ClusterOfNodes(NodeCluster(Outbox("own"), known=known(HERE)), [known(THERE)])
    machine = nodes.greet(THERE)
    away = nodes.observe()
    assert (nodes.observe() is away, [node.slots for node in away.nodes]) == (True, [(0, 1), ()])

    nodes.meet(machine)
    met = nodes.observe()
    assert (nodes.observe() is met, [node.slots for node in met.nodes]) == (True, [(0, 1), (0, 1)])

    order = StartOrder(
        task_id=TaskId("job-1.1"), node_id=THERE, slots=(1,), argv=("x.py",), env={}, cwd="/", log_dir="/"
    )
    nodes.start(order)
    busy = nodes.observe()
    assert (busy.nodes is met.nodes, [task.task_id for task in busy.tasks]) == (True, ["job-1.1"])

    machine.cluster.give_up("it is gone")
    assert nodes.observe().tasks == ()


@pytest.mark.parametrize("has_copies", [False, True])
def test_what_is_lost_with_a_machine_that_has_copies_is_said_of_its_tasks(has_copies: bool) -> None:
    there = known(THERE)
    task = LiveTask(task_id=TaskId("job-1.1"), node_id=THERE, slots=(0,), pid=None)
    nodes = ClusterOfNodes(None, [replace(there, node=replace(there.node, has_copies=has_copies), tasks=(task,))])
    exits: list[TaskExit] = []
    nodes.watch(exits.append, lambda _note: None)

    nodes.forget(THERE)

    (ended,) = exits
    assert ended.cause.startswith("was on a machine that was removed from the pool")
    assert ended.cause.endswith("had not sent by then is lost, the end of its log too") == has_copies
