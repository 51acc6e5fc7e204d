"""Endpoints whose kernels hold a part of a slot: they share slots, and move together when somebody else needs one."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.control.conftest import World
from tests.control.kinds.test_endpoint import PROFILE, deploy, get_ready, kernels

from pliant.core.job import JobId, Task
from pliant.core.lifecycle import TaskState
from pliant.core.serving_profile import EndpointPart, KernelBounds


@pytest.fixture
def small(make_world: Callable[..., World]) -> World:
    """A pool of two slots."""
    return make_world(2)


def deploy_part(world: World, name: str, share: int, num: int = 1) -> JobId:
    """Deploy an endpoint that holds so many kernels, each on so many thousandths of a slot, and let them load."""
    profile = replace(PROFILE, kernel_min=num)
    part = EndpointPart(name=name, version=1, runner="python", profile=profile, slot_share=share)
    job_id = deploy(world, profile, name=f"{name}-v1", endpoint=part)
    get_ready(world, job_id)
    return job_id


def slots(world: World, job_id: JobId) -> list[int]:
    return [slot for task in kernels(world, job_id) for slot in task.slots]


def leavers(world: World, job_id: JobId) -> list[Task]:
    return [task for task in world.tasks(job_id) if task.state is TaskState.LEAVING]


def spread(world: World) -> tuple[JobId, JobId]:
    """Return two endpoints with one kernel each, on a slot of its own each, though both would fit on one."""
    digits = deploy_part(world, "digits", 400, 2)
    shop = deploy_part(world, "shop", 400)
    live = world.control.jobs()[digits]
    profile = replace(PROFILE, kernel_min=1, release_delay_s=0.0)
    world.control.kernels.adjust(
        digits, profile, KernelBounds(promised=1, at_most=4), live.job.priority, live.job.queue
    )
    world.settle(2)
    for task in leavers(world, digits):
        world.cluster.exit(task.id, 0)
    world.settle()
    assert (slots(world, digits), slots(world, shop)) == ([0], [1])
    return digits, shop


def test_kernels_of_two_endpoints_share_a_slot_and_a_training_has_the_others(world: World) -> None:
    training = world.submit(max_tasks=8)
    world.train(training)
    world.settle(2)

    digits = deploy_part(world, "digits", 250, 2)
    shop = deploy_part(world, "shop", 500)

    world.settle(2)
    assert len(world.tasks(training)) == 7
    assert len({*slots(world, digits), *slots(world, shop)}) == 1
    assert {order.task_id: order.slot_share for order in world.cluster.orders if order.slot_share < 1000} == {
        **{task.id: 250 for task in kernels(world, digits)},
        **{task.id: 500 for task in kernels(world, shop)},
    }
    assert world.job(digits).num_slots == 1
    (shared,) = [slot for slot in world.control.queries.cluster().slots if slot.sharers]
    assert set(shared.sharers) == {task.id for job_id in (digits, shop) for task in kernels(world, job_id)}
    assert "250" not in world.job(digits).why
    assert world.job(digits).why.startswith("2 times 0.25 of a slot, together with shop-v1 on 1 of 8 slots: ")


def test_a_kernel_whose_slot_is_given_up_answers_until_the_one_in_its_place_has_loaded(small: World) -> None:
    digits, shop = spread(small)

    small.submit(max_tasks=1)
    small.settle(1)

    (old,), (new,) = leavers(small, shop), kernels(small, shop)
    assert (old.slots, new.slots, new.state) == ((1,), (0,), TaskState.STARTING)
    assert not small.cluster.drained.count(old.id), "it drains though nobody is there to answer"

    get_ready(small, shop)

    assert old.id in small.cluster.drained
    assert len(kernels(small, digits)) == 1


def test_a_load_that_takes_long_keeps_the_slot_from_nobody_for_ever(small: World) -> None:
    _, shop = spread(small)
    small.submit(max_tasks=1)
    small.settle(1)
    (old,) = leavers(small, shop)

    small.settle(25)
    early = old.id in small.cluster.drained
    small.settle(10)

    assert not early
    assert old.id in small.cluster.drained


def test_an_endpoint_that_is_stopped_does_not_wait_for_kernels_that_load(small: World) -> None:
    _, shop = spread(small)
    small.submit(max_tasks=1)
    small.settle(1)
    (old,) = leavers(small, shop)

    small.control.kernels.stop(shop, "ann")
    small.settle()

    assert old.id in small.cluster.drained
