"""Machines that reach the server and not each other: what a task says of that, and when it counts."""

from typing import Any

import pytest
from tests.control.kinds.elastic.test_hangs import live

from pliant.api.jobs import JobPatch
from pliant.core.event import EventKind
from pliant.core.job import JobId, NodeId, TaskId
from pliant.core.lifecycle import JobState
from pliant.core.link import Hello, Lost, Ready, Unreachable
from pliant.core.plan import NodeView
from pliant.policy.elastic.paths import FIRST_S

World = Any
LOCAL, FAR, FARTHER = NodeId("local"), NodeId("far"), NodeId("farther")


@pytest.fixture
def world(make_world: Any) -> World:
    """Give a world with one slot here, and two machines with two slots each."""
    found = make_world(1)
    for name in (FAR, FARTHER):
        found.cluster.add_node(NodeView(id=name, slots=(0, 1)))
    return found


def started(world: World, num_tasks: int, **changes: object) -> JobId:
    job_id: JobId = world.submit(max_tasks=num_tasks, **changes)
    live(world, 3.0)
    assert len(world.members(job_id)) == num_tasks
    world.train(job_id)
    live(world, 0.1)
    return job_id


def on(world: World, job_id: JobId, node_id: NodeId) -> list[TaskId]:
    return [task.id for task in world.tasks(job_id) if task.node_id == node_id]


def nodes(world: World, job_id: JobId) -> set[NodeId]:
    members = world.members(job_id)
    return {task.node_id for task in world.tasks(job_id) if task.id in members}


def complain(world: World, job_id: JobId, seconds: float = 3.0, *, of: NodeId = FARTHER, by: NodeId = FAR) -> None:
    """Let the tasks of one machine say again and again that they do not reach another machine."""
    for _ in range(round(seconds / 0.5)):
        for task_id in on(world, job_id, by):
            world.say(task_id, Unreachable(peers=tuple(on(world, job_id, of))))
        live(world, 0.5)


def warnings(world: World) -> list[str]:
    return [text for text in world.said(EventKind.WARNING) if "reach each other" in text]


def test_a_training_goes_on_without_one_of_two_machines_that_do_not_reach_each_other(world: World) -> None:
    job_id = started(world, 5)
    assert nodes(world, job_id) == {LOCAL, FAR, FARTHER}
    complain(world, job_id)

    assert len(world.members(job_id)) == 3
    assert len(nodes(world, job_id) & {FAR, FARTHER}) == 1
    (gone,) = {FAR, FARTHER} - nodes(world, job_id)
    assert warnings(world) == [
        f"job-1 (digits): far and farther do not reach each other (both reach the server): see that no firewall is "
        f"between them; the training goes on without {gone}, and tries it again in 20 s"
    ]
    (kept,) = {FAR, FARTHER} & nodes(world, job_id)
    assert f"kept off {gone} for now: far and farther do not reach each other" in world.job(job_id).why
    assert f"does not reach {kept} from {gone}" in world.said(EventKind.TASK_LOST)[0]
    assert world.training(job_id).losses == (), "its tasks are not to blame"
    forms = [text for text in world.said(EventKind.GENERATION_FORMING) if "do not reach each other" in text]
    assert len(forms) == 1, "both leave at once"


def test_newcomers_leave_though_they_are_more_than_those_that_hold_the_state(world: World) -> None:
    job_id = started(world, 1)
    assert nodes(world, job_id) == {LOCAL}
    (first,) = world.members(job_id)
    world.links.obedient = False  # nobody connects in a generation from now on
    world.control.requests.change(job_id, JobPatch(max_tasks=3))
    live(world, 0.5)
    (there,) = {task.node_id for task in world.tasks(job_id)} - {LOCAL}
    newcomers = on(world, job_id, there)
    for task_id in newcomers:
        world.say(task_id, Hello(task_id=task_id, pid=7))
        world.say(task_id, Ready(host="h", port=7, virtual_workers=8))
    live(world, 0.5)
    forming = world.training(job_id).membership.forming
    assert set(forming.members) == {first, *newcomers}
    world.say(newcomers[0], Lost(generation=forming.number, step=0, error="it did not connect"))
    complain(world, job_id, of=there, by=LOCAL)

    assert world.members(job_id) == (first,)
    assert f"goes on without {there}" in warnings(world)[0]


def test_it_grows_again_when_the_time_is_over_and_the_time_doubles_if_the_path_is_still_broken(world: World) -> None:
    job_id = started(world, 5)
    complain(world, job_id)
    world.train(job_id)
    live(world, FIRST_S - 4.0)
    assert len(world.members(job_id)) == 3
    live(world, 8.0)
    assert len(world.members(job_id)) == 5

    complain(world, job_id)
    assert len(world.members(job_id)) == 3
    assert "tries it again in 40 s" in warnings(world)[1]


def test_other_jobs_use_what_one_leaves_out(world: World) -> None:
    job_id = started(world, 5)
    complain(world, job_id)
    other = world.submit(max_tasks=2)
    live(world, 2.0)
    (gone,) = {FAR, FARTHER} - nodes(world, job_id)
    assert nodes(world, other) == {gone}


def test_a_job_whose_minimum_does_not_fit_then_pauses_and_says_why(world: World) -> None:
    job_id = started(world, 4, min_tasks=4)
    complain(world, job_id)
    live(world, 3.0)
    assert world.job(job_id).state is JobState.PAUSED
    assert world.job(job_id).why.startswith("waits: its minimum needs 4 times 1 slot")
    assert "far and farther do not reach each other (both reach the server)" in world.job(job_id).why
    live(world, FIRST_S)
    assert len(world.members(job_id)) == 4, "it is tried again"


@pytest.mark.parametrize(
    "of",
    ["once", "unsteady", "silent", "own machine", "nobody's", "withdrawn", "old"],
)
def test_what_may_be_something_else_than_a_broken_path_does_not_count(world: World, of: str) -> None:
    job_id = started(world, 5)
    mine, peer = on(world, job_id, FAR)[0], on(world, job_id, FARTHER)[0]
    before = world.members(job_id)
    match of:
        case "once":
            complain(world, job_id, 0.5)
            complain(world, job_id, 0.5)
        case "unsteady":
            world.cluster.unsteady = {FARTHER: 1.0}
            complain(world, job_id, 10.0)
        case "silent":
            world.cluster.silent = frozenset({FARTHER})
            complain(world, job_id, 1.5)
            complain(world, job_id, 5.0, of=LOCAL, by=FARTHER)
        case "own machine":
            complain(world, job_id, 10.0, of=FAR)
        case "nobody's":
            for _ in range(20):
                world.say(mine, Unreachable(peers=(TaskId("job-9.1"), TaskId("job-1.99"), TaskId(""), mine)))
                live(world, 0.5)
        case "withdrawn":
            for _ in range(10):
                world.say(mine, Unreachable(peers=(peer,)))
                live(world, 1.0)
                world.say(mine, Unreachable(peers=()))
        case "old":
            world.say(mine, Unreachable(peers=(peer,)))
            live(world, 0.1)
            world.clock.advance(30.0)  # the server stood still, and then a link brings what was said meanwhile
            world.control.note_listening()
            world.settle(0.1)
            world.say(mine, Unreachable(peers=(peer,)))
            live(world, 1.0)
    live(world, 0.5)
    assert warnings(world) == []
    assert world.members(job_id) == before


def test_a_peer_that_has_ended_is_not_taken_for_unreachable(world: World) -> None:
    job_id = started(world, 5)
    mine, peer = on(world, job_id, FAR)[0], on(world, job_id, FARTHER)[0]
    world.say(mine, Unreachable(peers=(peer,)))
    live(world, 0.5)
    world.exit(peer, -9)
    for _ in range(10):
        world.say(mine, Unreachable(peers=(peer,)))
        live(world, 0.5)
    assert warnings(world) == []
    assert len(world.members(job_id)) == 5


def test_the_next_server_finds_out_by_itself(world: World) -> None:
    job_id = started(world, 5)
    complain(world, job_id, 1.5)
    world.restart()
    generation = world.job(job_id).generation
    for task in world.tasks(job_id):
        world.say(task.id, Hello(task_id=task.id, pid=1, generation=generation, step=10, ready=True, host="h", port=1))
    live(world, 1.0)
    complain(world, job_id, 1.5)
    assert warnings(world) == [], "what the server before was told does not count"
    complain(world, job_id, 2.0)
    assert len(warnings(world)) == 1
    assert len(world.members(job_id)) == 3


def test_a_liar_does_harm_to_its_own_job_alone(world: World) -> None:
    liar = started(world, 3)
    assert nodes(world, liar) >= {LOCAL}
    honest = world.submit(max_tasks=2, min_tasks=2)
    live(world, 3.0)
    before = world.members(honest)
    far = next(task for task in world.tasks(liar) if task.node_id != LOCAL)
    for _ in range(20):
        world.say(far.id, Unreachable(peers=(*before, *world.members(liar))))
        live(world, 0.5)
    assert world.members(honest) == before
    assert world.training(honest).paths == ()
    assert "kept off" not in world.job(honest).why
    assert world.members(liar), "one of its machines remains"
