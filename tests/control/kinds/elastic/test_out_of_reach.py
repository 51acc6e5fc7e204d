"""Trainings on machines that nothing is heard of: they may train on, so nobody else begins where they are."""

from typing import Any

import pytest
from tests.control.kinds.elastic.test_hangs import live

from pliant.core.job import JobId, NodeId, TaskId
from pliant.core.lifecycle import TaskState
from pliant.core.plan import NodeView

World = Any
LOCAL, FAR, FARTHER = NodeId("local"), NodeId("far"), NodeId("farther")


@pytest.fixture
def world(make_world: Any) -> World:
    """Give a world with one slot here, and two machines with two slots each."""
    found = make_world(1)
    for name in (FAR, FARTHER):
        found.cluster.add_node(NodeView(id=name, slots=(0, 1)))
    return found


def started(world: World, num_tasks: int) -> JobId:
    job_id: JobId = world.submit(max_tasks=num_tasks)
    live(world, 3.0)
    assert len(world.members(job_id)) == num_tasks
    world.train(job_id)
    live(world, 0.1)
    return job_id


def nodes(world: World, job_id: JobId) -> set[NodeId]:
    return {task.node_id for task in world.tasks(job_id)}


def states(world: World) -> dict[TaskId, TaskState]:
    return {task.id: task.state for task in world.store.tasks()}


def test_a_training_that_is_wholly_out_of_reach_is_left_to_train(world: World) -> None:
    job_id = started(world, 2)
    before, states_before, generation = world.members(job_id), states(world), world.job(job_id).generation
    silent = nodes(world, job_id)
    world.cluster.silent = frozenset(silent)
    live(world, 30.0, before)

    assert world.members(job_id) == before
    assert states(world) == states_before
    assert world.job(job_id).generation == generation

    world.cluster.silent = frozenset()
    live(world, 5.0)
    assert world.members(job_id) == before
    assert states(world) == states_before


def test_one_that_is_silent_still_when_its_machine_is_heard_again_is_fenced(world: World) -> None:
    job_id = started(world, 2)
    before = world.members(job_id)
    world.cluster.silent = frozenset(nodes(world, job_id))
    live(world, 10.0, before)
    world.cluster.silent = frozenset()
    live(world, 6.0, before)

    assert all(states(world)[task_id] is TaskState.LOST for task_id in before)


def test_a_training_with_a_member_elsewhere_goes_on_without_those_that_are_silent(world: World) -> None:
    job_id = started(world, 5)
    before = {task.id: task.node_id for task in world.tasks(job_id)}
    cut_off = {task_id for task_id, node_id in before.items() if node_id == FAR}
    assert len(cut_off) == 2
    world.cluster.silent = frozenset({FAR})
    live(world, 6.0, cut_off)

    members = set(world.members(job_id))
    assert not members & cut_off
    assert {task_id for task_id, node_id in before.items() if node_id != FAR} <= members


def test_a_deadline_of_a_training_out_of_reach_waits_until_it_is_heard(world: World) -> None:
    job_id = started(world, 2)
    before = world.members(job_id)
    world.restart()  # all of its tasks have to say something within a time
    world.cluster.silent = frozenset(nodes(world, job_id))
    world.settle(120.0)

    assert {task.id for task in world.tasks(job_id)} == set(before)
    assert all(states(world)[task_id] is not TaskState.LOST for task_id in before)
