"""Told that a job is over are the machines that may have something of it, and no others."""

from pliant.cluster.joined.leftovers import AGAIN_S, NUM_IN_TURN, Leftovers
from pliant.cluster.joined.nodes import ClusterOfNodes
from pliant.cluster.joined.outbox import Outbox
from pliant.cluster.node import KnownNode
from pliant.core.job import JobId, NodeId, TaskId
from pliant.core.plan import NodeView
from pliant.core.ports import StartOrder

A, B, C = NodeId("a"), NodeId("b"), NodeId("c")
ALL = (A, B, C)
ONE, TWO, THREE = JobId("job-1"), JobId("job-2"), JobId("job-3")


def begun(*living: JobId) -> Leftovers:
    """Return what a server knows that has found these jobs."""
    leftovers = Leftovers()
    assert set(leftovers.take(living, ALL, 0.0)) == set(ALL)
    assert set(leftovers.take(living, ALL, AGAIN_S)) == set(ALL)
    return leftovers


def test_the_end_of_a_job_is_told_where_its_tasks_were_and_once_more_later() -> None:
    leftovers = begun()
    leftovers.note(ONE, A)
    leftovers.note(ONE, B)
    leftovers.note(TWO, B)
    leftovers.note(THREE, C)

    assert set(leftovers.take([TWO, THREE], ALL, 100.0)) == {A, B}
    assert set(leftovers.take([THREE], ALL, 101.0)) == {B}
    assert set(leftovers.take([], ALL, 100.0 + AGAIN_S)) == {A, B, C}
    assert set(leftovers.take([], ALL, 101.0 + AGAIN_S)) == {B}
    assert set(leftovers.take([], ALL, 1000.0)) == {C}
    assert set(leftovers.take([], ALL, 2000.0)) == set()


def test_while_no_job_is_over_nobody_is_told() -> None:
    leftovers = begun()
    leftovers.note(ONE, A)

    assert set(leftovers.take([ONE], ALL, 100.0)) == set()


def test_the_end_of_a_job_that_this_server_has_found_is_told_to_everybody_and_once_more() -> None:
    leftovers = begun(ONE, TWO)
    leftovers.note(ONE, A)

    assert set(leftovers.take([TWO], ALL, 100.0)) == set(ALL)
    assert set(leftovers.take([TWO], ALL, 100.0 + AGAIN_S)) == set(ALL)
    assert set(leftovers.take([TWO], ALL, 1000.0)) == set()


def test_many_machines_are_told_in_turn_who_has_waited_longest_first() -> None:
    many = tuple(NodeId(f"node-{number:03}") for number in range(3 * NUM_IN_TURN))
    leftovers = Leftovers()
    leftovers.take([ONE, TWO], many, 0.0)
    leftovers.note(THREE, many[-1])
    leftovers.take([ONE, TWO, THREE], many, AGAIN_S)

    first = set(leftovers.take([TWO, THREE], many, 100.0))
    second = set(leftovers.take([TWO], many, 101.0))
    third = set(leftovers.take([], many, 102.0))

    assert first == set(many[:NUM_IN_TURN])
    assert second == {*many[NUM_IN_TURN : 2 * NUM_IN_TURN], many[-1]}
    assert third == {*many[2 * NUM_IN_TURN : -1], many[0]}  # the end of job-2 is told to all others after them


def test_a_machine_that_is_new_or_was_away_is_told_at_the_next_end_of_whatever_job() -> None:
    leftovers = begun()
    leftovers.note(ONE, A)
    leftovers.come(C)

    assert set(leftovers.take([], ALL, 100.0)) == {A, C}
    assert set(leftovers.take([], ALL, 100.0 + AGAIN_S)) == {A, C}
    assert set(leftovers.take([], ALL, 1000.0)) == set()


def test_a_pool_says_it_to_those_machines_alone() -> None:
    boxes = {name: KnownNode(node=NodeView(id=name, slots=(0, 1))) for name in (A, B)}
    nodes = ClusterOfNodes(None, boxes.values())
    written: dict[NodeId, list[bytes]] = {}
    for name in boxes:
        machine = nodes.greet(name)
        nodes.meet(machine)
        lines = written.setdefault(name, [])
        assert isinstance(machine.outbox, Outbox)
        machine.outbox.attach(lines.append, lambda _first: b"", received=0)
    nodes.retain([])
    nodes.start(
        StartOrder(task_id=TaskId("job-1.1"), node_id=A, slots=(0,), argv=(), env={}, cwd="/", log_dir="/nowhere")
    )
    for lines in written.values():
        lines.clear()

    nodes.retain([])

    assert {name: any(b"retain" in line for line in lines) for name, lines in written.items()} == {A: True, B: False}
