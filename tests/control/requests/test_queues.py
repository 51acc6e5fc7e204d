"""Queues and resource groups in the control room: submissions, changes while jobs run, moves, restarts."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.control.conftest import World

from pliant.api.jobs import JobPatch
from pliant.core.confinement import RunAs
from pliant.core.errors import Conflict, InvalidInput, NotFound, Stale
from pliant.core.event import EventKind
from pliant.core.job import JobId
from pliant.core.plan import PolicyName
from pliant.core.queue import Queue, ResourceGroup


def group(world: World, name: str, slots: int | str) -> None:
    world.control.queues.add_group(ResourceGroup(name=name, slots_per_host=slots), "ada")


def queue(world: World, name: str, **facts: object) -> None:
    world.control.queues.add_queue(Queue(name=name, **facts), "ada")  # type: ignore[arg-type]


def slots(world: World, *jobs: JobId) -> list[int]:
    return [world.job(job_id).num_slots for job_id in jobs]


def test_there_is_a_queue_over_all_slots_from_the_start(make_world: Callable[..., World]) -> None:
    world = make_world(8, PolicyName.FIFO)

    assert [kept.noun for kept in world.control.queues.queues()] == [Queue(name="default", policy=PolicyName.FIFO)]
    assert [(kept.noun.name, kept.revision) for kept in world.control.queues.groups()] == [("all", 0)]
    assert world.job(world.submit()).queue == "default"


def test_the_defaults_cannot_be_removed(world: World) -> None:
    with pytest.raises(Conflict, match="always there"):
        world.control.queues.remove_queue("default", None, "ada")
    with pytest.raises(Conflict, match="always there"):
        world.control.queues.remove_group("all", None, "ada")
    with pytest.raises(Conflict, match="all slots there are"):
        world.control.queues.change_group("all", {"slots_per_host": 1}, None, "ada")


def test_a_submission_to_an_unknown_queue_is_told_which_there_are(world: World) -> None:
    queue(world, "batch")

    with pytest.raises(InvalidInput, match="queue: there is no queue 'bach'; there are batch, default"):
        world.submit(queue="bach")


def test_jobs_run_on_the_slots_of_their_queues_group(world: World) -> None:
    group(world, "few", 3)
    group(world, "rest", 5)
    queue(world, "a", resource_group="few")
    queue(world, "b", resource_group="rest", preemption=False)

    first = world.submit(max_tasks=8, queue="a")
    second = world.submit(max_tasks=8, queue="b")
    world.settle(2.0)

    assert slots(world, first, second) == [3, 5]
    assert "queue b has no preemption" in world.job(second).why


def test_a_weight_takes_effect_at_the_next_decision(world: World) -> None:
    queue(world, "a")
    queue(world, "b")
    first, second = world.submit(max_tasks=8, queue="a"), world.submit(max_tasks=8, queue="b")
    world.settle(2.0)
    assert slots(world, first, second) == [4, 4]

    world.control.queues.change_queue("b", {"weight": 3}, None, "ada")
    world.settle(2.0)

    assert slots(world, first, second) == [2, 6]
    assert world.control.queues.deserved == {"a": 2, "b": 6}
    assert world.said(EventKind.QUEUE_CHANGED)[-1] == (
        "queue b was changed by ada: group all, policy fairshare, preemption on, weight 3"
    )


def test_a_group_that_shrinks_is_left_at_a_boundary(world: World) -> None:
    group(world, "g", 8)
    queue(world, "a", resource_group="g")
    queue(world, "kept", resource_group="g", preemption=False)
    elastic, kept = world.submit(max_tasks=4, queue="a"), world.submit(max_tasks=4, queue="kept")
    world.settle(2.0)
    assert slots(world, elastic, kept) == [4, 4]

    world.control.queues.change_group("g", {"slots_per_host": 5}, 1, "ada")
    world.settle(2.0)

    assert slots(world, elastic, kept) == [1, 4]


def test_a_job_can_be_moved_while_it_runs(world: World) -> None:
    group(world, "few", 2)
    queue(world, "a", resource_group="few")
    job_id = world.submit(max_tasks=8)
    world.settle(2.0)
    assert slots(world, job_id) == [8]

    moved = world.control.requests.change(job_id, JobPatch(queue="a"))
    world.settle(2.0)

    assert moved.queue == "a"
    assert slots(world, job_id) == [2]
    assert world.said(EventKind.JOB_CHANGED)[-1].endswith("queue default → a")
    with pytest.raises(InvalidInput, match="there is no queue 'b'; there are a, default"):
        world.control.requests.change(job_id, JobPatch(queue="b"))


def test_a_queue_with_jobs_stays_and_names_them(world: World) -> None:
    queue(world, "a")
    job_id = world.submit(queue="a")
    world.settle(1.0)

    with pytest.raises(Conflict, match=f"queue 'a' has jobs that have not ended: {job_id}"):
        world.control.queues.remove_queue("a", None, "ada")
    world.finish(job_id)
    world.control.queues.remove_queue("a", None, "ada")

    with pytest.raises(NotFound, match="no queue 'a'; there are default"):
        world.control.queues.queue("a")


def test_a_closed_queue_runs_what_it_has_and_takes_nothing_new(world: World) -> None:
    queue(world, "a")
    job_id = world.submit(max_tasks=2, queue="a")
    world.control.queues.change_queue("a", {"open": False}, None, "ada")
    world.settle(2.0)

    with pytest.raises(InvalidInput, match="queue 'a' is closed"):
        world.submit(queue="a")
    assert slots(world, job_id) == [2]


def test_a_queue_limits_the_tasks_of_a_job(world: World) -> None:
    queue(world, "a", max_tasks_per_job=2)

    with pytest.raises(InvalidInput, match=r"max_tasks: 4 is more than queue 'a' takes \(2 tasks per job\)"):
        world.submit(max_tasks=4, queue="a")


def test_a_group_that_queues_are_over_stays_and_names_them(world: World) -> None:
    group(world, "g", 2)
    queue(world, "a", resource_group="g")

    with pytest.raises(Conflict, match="is used by queue a"):
        world.control.queues.remove_group("g", None, "ada")
    with pytest.raises(InvalidInput, match="there is no resource group 'h'"):
        queue(world, "b", resource_group="h")
    with pytest.raises(Conflict, match="there is a queue 'a' already"):
        queue(world, "a")


def test_who_saw_an_older_revision_is_told(world: World) -> None:
    queue(world, "a")
    world.control.queues.change_queue("a", {"weight": 2}, 1, "ada")

    with pytest.raises(Stale):
        world.control.queues.change_queue("a", {"weight": 3}, 1, "bob")
    with pytest.raises(Stale):
        world.control.queues.change_queue("default", {"weight": 3}, 1, "bob")
    assert world.control.queues.queue("a").noun.weight == 2


def test_all_is_there_again_after_the_server_was_killed(world: World) -> None:
    group(world, "g", 2)
    queue(world, "a", resource_group="g", preemption=False)
    world.control.queues.change_queue("default", {"policy": PolicyName.PRIORITY}, 0, "ada")
    job_id = world.submit(max_tasks=8, queue="a")
    world.settle(2.0)

    world.restart()
    world.settle(2.0)

    there = {kept.noun.name: kept.noun for kept in world.control.queues.queues()}
    assert there["a"] == Queue(name="a", resource_group="g", preemption=False)
    assert there["default"].policy is PolicyName.PRIORITY
    assert world.job(job_id).queue == "a"
    assert slots(world, job_id) == [2]


def test_a_change_that_cannot_be_written_changes_nothing(world: World) -> None:
    queue(world, "a")
    kept = world.control.queues.queue("a")
    world.store.registry.replace(replace(kept.noun, weight=7), at=1.0)  # as another server that leads would

    with pytest.raises(Stale):
        world.control.queues.change_queue("a", {"weight": 3}, 1, "ada")

    assert world.control.queues.queue("a") == kept


def test_the_queue_says_what_its_jobs_run_in_and_as(world: World) -> None:
    world.cluster.users = frozenset({"nobody"})
    queue(world, "a", run_as="nobody")
    with pytest.raises(InvalidInput, match="run_as: there is no user 'noone'"):
        queue(world, "b", run_as="noone")

    job_id = world.submit(queue="a")
    world.settle(1.0)

    confinement = world.cluster.orders[-1].confinement
    assert confinement.user == RunAs(name="nobody")
    root = world.control.settings.folders(job_id).root
    assert set(confinement.writes) == {str(root / "code"), str(root / "result"), str(root / "state")}
    assert confinement.hides == (str(world.home),)
    with pytest.raises(Conflict, match="its files are not the other's"):
        world.control.requests.change(job_id, JobPatch(queue="default"))
    with pytest.raises(Conflict, match="make another queue"):
        world.control.queues.change_queue("a", {"run_as": None}, None, "ada")


def test_a_job_that_names_no_environment_takes_its_queues(world: World) -> None:
    queue(world, "a", default_environment="nlp")

    with pytest.raises(InvalidInput, match="environment: 'nlp' cannot be made"):
        world.submit(queue="a")
