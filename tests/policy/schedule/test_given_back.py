"""Slots that an endpoint gives back go to the jobs that they came from: shares are worked out anew every time."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.schedule.world import World, job, pool

from pliant.core.job import JobId
from pliant.core.plan import Policy, PolicyName

ROUNDS = 60
BOUNDS = st.tuples(st.integers(1, 3), st.integers(0, 8)).map(lambda one: (one[0], sum(one)))
TRAININGS = st.lists(st.tuples(BOUNDS, st.sampled_from([1000, 5000, 9000])), min_size=1, max_size=5)


def sizes(world: World) -> dict[JobId, int]:
    return {view.id: len(view.tasks) for view in world.jobs.values()}


@settings(max_examples=150)
@given(
    policy=st.sampled_from(list(PolicyName)),
    nodes=st.lists(st.integers(2, 8), min_size=1, max_size=2),
    trainings=TRAININGS,
    wave=st.lists(st.integers(1, 8), min_size=1, max_size=4),
    minimum=st.integers(0, 2),
    priority=st.sampled_from([1000, 5000, 9000]),
)
def test_a_wave_leaves_every_training_with_what_it_had(
    policy: PolicyName,
    nodes: list[int],
    trainings: list[tuple[tuple[int, int], int]],
    wave: list[int],
    minimum: int,
    priority: int,
) -> None:
    world = World(pool(*nodes), policy=Policy(name=policy, cooldown_s=2.0))
    for number, (bounds, weight) in enumerate(trainings, 1):
        world.put(job(f"train-{number}", number, bounds=bounds, priority=weight))
    world.settle(ROUNDS)
    before = sizes(world)

    kernels = job("digits", 99, priority=priority)
    for wanted in wave:
        held = world.jobs.get(kernels.id, kernels)
        world.put(replace(held, min_tasks=max(1, min(minimum, wanted)), max_tasks=wanted))
        world.settle(ROUNDS)
    drained = world.jobs.pop(kernels.id)
    surplus = sum(max(0, before[view.id] - view.min_tasks) for view in world.jobs.values())
    assert drained.tasks or surplus < drained.min_tasks, "the wave took nothing, though there was something to take"
    world.settle(ROUNDS)

    assert sizes(world) == before
