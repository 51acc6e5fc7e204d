"""What an endpoint takes from trainings comes from surplus first, and goes back to those from whom it came.

Nobody keeps an account of that: shares are worked out anew every time, and the same jobs have the same shares as
before. Only which slots they had is known (`given_up`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.schedule.oracle import place_in_order
from tests.policy.schedule.parts_world import PartsWorld, part
from tests.policy.schedule.world import World, job, pool

from pliant.core.job import JobId, NodeId
from pliant.core.plan import Plan, Policy, PolicyName
from pliant.core.workload import Workload

ROUNDS = 80
DIGITS = JobId("job-99")
BOUNDS = st.tuples(st.integers(1, 3), st.integers(0, 8)).map(lambda one: (one[0], sum(one)))
PRIORITIES = st.sampled_from([1000, 5000, 5000, 9000])
TRAININGS = st.lists(st.tuples(BOUNDS, PRIORITIES), min_size=1, max_size=6)
"""Some of them wait, if the minimums are more than there is."""

Sizes = Mapping[JobId, int]


def sizes(world: World) -> dict[JobId, int]:
    return {view.id: len(view.tasks) for view in world.jobs.values() if view.id != DIGITS}


def slots(world: World) -> dict[JobId, set[tuple[NodeId, int]]]:
    return {view.id: {(t.node_id, slot) for t in view.tasks for slot in t.slots} for view in world.jobs.values()}


@dataclass(kw_only=True)
class Wave:
    """What trainings had before an endpoint came, while it had what it wanted, and after it gave everything back."""

    world: World
    kernels: Workload
    minimum: int

    def __post_init__(self) -> None:
        self.world.settle(ROUNDS)
        self.before, self.slots_before = sizes(self.world), slots(self.world)

    def take(self, wanted: int) -> None:
        """Let the endpoint want so many kernels."""
        held = self.world.jobs.get(DIGITS, self.kernels)
        self.world.put(replace(held, min_tasks=max(1, min(self.minimum, wanted)), max_tasks=wanted))
        self.world.settle(ROUNDS)
        self.during = sizes(self.world)

    def give_back(self) -> list[Plan]:
        """Let the endpoint want nothing; return the decisions until all rests."""
        self.drained = self.world.jobs[DIGITS]
        self.world.put(replace(self.drained, min_tasks=0, max_tasks=0))
        return self.world.settle(ROUNDS)

    @property
    def paused(self) -> list[Workload]:
        return [self.world.jobs[job_id] for job_id, size in self.before.items() if size and not self.during[job_id]]

    @property
    def givers(self) -> set[JobId]:
        return {job_id for job_id, size in self.before.items() if self.during[job_id] < size}

    @property
    def gainers(self) -> set[JobId]:
        return {job_id for job_id, size in self.before.items() if self.during[job_id] > size}


@st.composite
def waves(
    draw: st.DrawFn, nodes: st.SearchStrategy[list[int]], widths: st.SearchStrategy[int], policies: list[PolicyName]
) -> Wave:
    policy = Policy(name=draw(st.sampled_from(policies)), cooldown_s=2.0)
    world = World(pool(*draw(nodes)), policy=policy)
    for number, (bounds, weight) in enumerate(draw(TRAININGS), 1):
        world.put(job(f"train-{number}", number, bounds=bounds, priority=weight, size=draw(widths)))
    kernels = job("digits", 99, priority=draw(PRIORITIES), size=draw(widths))
    if draw(st.booleans()):
        kernels = replace(kernels, submitted_at=0.0)  # older than all trainings
    return Wave(world=world, kernels=kernels, minimum=draw(st.integers(0, 2)))


def one_slot_each(*policies: PolicyName) -> st.SearchStrategy[Wave]:
    """Return waves where a task fits on every slot."""
    return waves(st.lists(st.integers(2, 8), min_size=1, max_size=3), st.just(1), [*policies] or [*PolicyName])


def on_one_node() -> st.SearchStrategy[Wave]:
    """Return waves on one node, with tasks of several slots."""
    return waves(st.lists(st.integers(4, 16), min_size=1, max_size=1), st.sampled_from([1, 1, 2, 4]), [*PolicyName])


@settings(max_examples=150)
@given(wave=st.one_of(one_slot_each(), on_one_node()), wanted=st.lists(st.integers(1, 8), min_size=1, max_size=4))
def test_a_wave_leaves_every_training_with_what_it_had(wave: Wave, wanted: list[int]) -> None:
    for num in wanted:
        wave.take(num)
    wave.give_back()

    trainings = [view for view in wave.world.jobs.values() if view.id != DIGITS]
    surplus = sum(max(0, wave.before[v.id] - v.min_tasks) * v.slots_per_task for v in trainings)
    needed = wave.drained.min_tasks * wave.drained.slots_per_task
    fits_anywhere = all(view.slots_per_task == 1 for view in wave.world.jobs.values())
    assert wave.drained.tasks or not fits_anywhere or surplus < needed, "the wave took nothing, though it could"
    assert sizes(wave.world) == wave.before


@settings(max_examples=150)
@given(wave=one_slot_each(), wanted=st.integers(1, 8))
def test_no_training_is_paused_that_could_be_kept_by_shrinking_others(wave: Wave, wanted: int) -> None:
    wave.take(wanted)

    policy = wave.world.policy.name
    num_slots = sum(len(node.slots) for node in wave.world.nodes.values())
    assert policy is not PolicyName.FAIRSHARE or not wave.paused
    for view in wave.paused:
        # One that waited may have started in the place of a larger one, if it comes before the one that is paused.
        kept = [
            other
            for job_id, other in wave.world.jobs.items()
            if job_id != DIGITS
            and wave.during[job_id]
            and (wave.before[job_id] or place_in_order(other, policy) < place_in_order(view, policy))
        ]
        minimums = sum(one.min_tasks for one in (wave.world.jobs[DIGITS], view, *kept))
        assert minimums > num_slots, f"{view.id} was paused, though all minimums fit"


@settings(max_examples=150)
@given(wave=one_slot_each(), wanted=st.integers(1, 8))
def test_only_those_who_gave_something_are_resized_when_it_comes_back(wave: Wave, wanted: int) -> None:
    wave.take(wanted)
    resized = [
        job_id
        for decision in wave.give_back()
        for job_id, grant in decision.grants.items()
        if job_id != DIGITS and (grant.start or grant.leave)
    ]

    # Whoever has more during the wave has what the minimum of one that was paused left over, or by rounding.
    assert wave.paused or all(wave.during[job_id] == wave.before[job_id] + 1 for job_id in wave.gainers)
    assert wave.paused or not wave.gainers or wave.world.policy.name is PolicyName.FAIRSHARE
    assert {*resized} == wave.givers | wave.gainers
    if not wave.paused:
        assert sorted(resized) == sorted({*resized}), "somebody is resized twice"


@settings(max_examples=150)
@given(
    num_slots=st.integers(4, 12),
    arrivals=st.lists(st.tuples(BOUNDS, PRIORITIES, st.booleans()), min_size=2, max_size=8),
    wanted=st.integers(1, 4),
)
def test_on_one_node_every_training_has_the_very_slots_that_it_gave_up(
    num_slots: int, arrivals: list[tuple[tuple[int, int], int, bool]], wanted: int
) -> None:
    world = World(pool(num_slots))
    for number, (bounds, weight, oldest_ends) in enumerate(arrivals, 1):
        world.put(job(f"train-{number}", number, bounds=bounds, priority=weight))
        world.settle(ROUNDS)
        if oldest_ends and len(world.jobs) > 2:  # so that slots are not held in the order of age
            del world.jobs[min(world.jobs)]
    wave = Wave(world=world, kernels=job("digits", 99, priority=9000), minimum=1)
    wave.take(wanted)
    wave.give_back()

    if not wave.gainers:
        assert slots(world) == {**wave.slots_before, DIGITS: set()}


@settings(max_examples=100)
@given(
    policy=st.sampled_from(list(PolicyName)),
    nodes=st.lists(st.integers(2, 8), min_size=1, max_size=2),
    trainings=TRAININGS,
    endpoints=st.lists(st.tuples(st.sampled_from([100, 250, 400, 600]), PRIORITIES), min_size=1, max_size=3),
    wanted=st.lists(st.integers(0, 6), min_size=3, max_size=3),
)
def test_kernels_on_parts_of_slots_leave_every_training_with_what_it_had(
    policy: PolicyName,
    nodes: list[int],
    trainings: list[tuple[tuple[int, int], int]],
    endpoints: list[tuple[int, int]],
    wanted: list[int],
) -> None:
    world = PartsWorld(pool(*nodes), policy=Policy(name=policy, cooldown_s=2.0))
    for number, (bounds, weight) in enumerate(trainings, 1):
        world.put(job(f"train-{number}", number, bounds=bounds, priority=weight))
    world.settle(ROUNDS)
    before = sizes(world)

    shares = [part(f"serve-{n}", 90 + n, share, priority=weight) for n, (share, weight) in enumerate(endpoints)]
    for kernels, num in zip(shares, wanted, strict=False):
        world.put(replace(kernels, min_tasks=min(1, num), max_tasks=num))
    world.settle(ROUNDS)
    for kernels in shares:
        world.put(replace(world.jobs[kernels.id], min_tasks=0, max_tasks=0))
    world.settle(ROUNDS)

    assert sizes(world) == {**before, **{kernels.id: 0 for kernels in shares}}


def test_the_slots_that_two_trainings_gave_up_are_not_mixed_up() -> None:
    given_up = {1: ((NodeId("node-1"), 3), (NodeId("node-1"), 2)), 2: ((NodeId("node-1"), 1),)}
    first, second = (
        replace(job(f"train-{number}", number, on=on), given_up=given_up[number])
        for number, on in ((1, [(1, 0)]), (2, [(1, 4), (1, 5)]))
    )
    world = World(pool(6), [first, second])

    grants = world.decide().grants

    assert [placement.slots for placement in grants[first.id].start] == [(2,), (3,)]
    assert [placement.slots for placement in grants[second.id].start] == [(1,)]
