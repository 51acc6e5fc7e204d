"""How many machines an autoscaler is asked for, and which it may take away."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pliant.policy.autoscale.machines import (
    MachineLimits,
    MachinePlan,
    PooledMachine,
    SlotDemand,
    plan_machines,
)

LIMITS = MachineLimits(least=0, most=3, idle_s=300.0, num_slots=4)
HOME = PooledMachine(name="local", num_slots=2, is_busy=True, may_go=False)
NOTHING = MachinePlan()


def machine(name: str, num_slots: int | None = 4, *, busy: bool = False) -> PooledMachine:
    return PooledMachine(name=name, num_slots=num_slots, is_busy=busy, may_go=True)


def job(max_tasks: int, min_tasks: int = 1, slots: int = 1, *, runs: bool = False) -> SlotDemand:
    return SlotDemand(min_tasks=min_tasks, max_tasks=max_tasks, slots_per_task=slots, is_running=runs)


def num(*demands: SlotDemand, machines: tuple[PooledMachine, ...] = (HOME,), limits: MachineLimits = LIMITS) -> int:
    return plan_machines(machines, demands, limits, NOTHING, 0.0).num_machines


def test_what_does_not_fit_at_home_brings_machines_up_to_the_most() -> None:
    assert [num(job(tasks)) for tasks in (1, 2, 3, 6, 7, 10, 11, 99)] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_task_is_on_one_machine() -> None:
    assert num(job(2, slots=3)) == 2
    assert num(job(2, slots=2)) == 1, "one at home"
    assert num(job(1, slots=5)) == 0, "no machine has room for it"


def test_a_job_that_cannot_begin_even_with_all_machines_brings_none() -> None:
    assert num(job(20, min_tasks=15)) == 0
    assert num(job(20, min_tasks=14)) == 3
    assert num(job(20, min_tasks=15), job(3)) == 1


def test_one_is_asked_for_to_see_how_large_a_machine_is() -> None:
    unknown = replace(LIMITS, num_slots=0)
    assert num(job(99), limits=unknown) == 1
    assert num(job(2), limits=unknown) == 0
    assert num(job(99), machines=(HOME, machine("a", None)), limits=unknown) == 1, "it comes"
    assert num(job(9), machines=(HOME, machine("a", 8)), limits=unknown) == 1
    assert num(job(11), machines=(HOME, machine("a", 8)), limits=unknown) == 2


def test_the_example_of_the_module() -> None:
    limits = replace(LIMITS, least=1)
    coming = plan_machines((HOME,), (job(10),), LIMITS, NOTHING, 0.0)
    assert coming.num_machines == 2
    both = (HOME, machine("a"), machine("b"))
    busy = (HOME, machine("a", busy=True), machine("b", busy=True))
    plan = plan_machines(busy, (job(10, runs=True),), LIMITS, coming, 50.0)
    assert (plan.num_machines, plan.let_go, plan.idle_since) == (2, frozenset(), {})
    idle = plan_machines(both, (), LIMITS, plan, 100.0)
    assert (idle.num_machines, idle.let_go) == (2, frozenset())
    assert not plan_machines(both, (), LIMITS, idle, 399.9).let_go
    gone = plan_machines(both, (), LIMITS, idle, 400.0)
    assert (gone.num_machines, gone.let_go) == (0, frozenset("ab"))
    assert plan_machines(both, (), limits, idle, 400.0).let_go == {"b"}
    again = plan_machines(both, (job(6),), LIMITS, gone, 401.0)
    assert (again.num_machines, again.let_go) == (1, frozenset("b")), "it is wished again before a new one is"


def test_a_machine_that_works_is_not_counted_away_by_one_that_is_idle() -> None:
    there = (HOME, machine("a"), machine("b", busy=True))
    early = plan_machines(there, (job(4, runs=True),), LIMITS, NOTHING, 0.0)
    late = plan_machines(there, (job(4, runs=True),), LIMITS, early, 300.0)
    assert (late.num_machines, late.let_go) == (1, frozenset("a"))


machines = st.lists(
    st.builds(
        PooledMachine,
        name=st.sampled_from("abcdef"),
        num_slots=st.none() | st.integers(0, 4),
        is_busy=st.booleans(),
        may_go=st.booleans(),
    ),
    unique_by=lambda one: one.name,
)
jobs = st.lists(
    st.builds(
        SlotDemand,
        min_tasks=st.integers(1, 4),
        max_tasks=st.integers(4, 12),
        slots_per_task=st.integers(1, 3),
        is_running=st.booleans(),
    ),
    max_size=4,
)
bounds = st.builds(
    MachineLimits,
    least=st.integers(0, 3),
    most=st.integers(3, 6),
    idle_s=st.floats(1, 100),
    num_slots=st.integers(0, 4),
)


@given(st.lists(st.tuples(machines, jobs, st.floats(0, 60)), min_size=1, max_size=6), bounds)
def test_the_laws_hold_whatever_comes_and_goes(
    course: list[tuple[list[PooledMachine], list[SlotDemand], float]], limits: MachineLimits
) -> None:
    now, plan = 0.0, NOTHING
    rested_since: dict[str, float] = {}
    for there, demands, later_s in course:
        now += later_s
        resting = {one.name for one in there if one.may_go and not one.is_busy}
        rested_since = {name: rested_since.get(name, now) for name in resting}
        before, plan = plan, plan_machines(there, demands, limits, plan, now)
        assert limits.least <= plan.num_machines <= limits.most
        assert plan.let_go <= resting
        assert all(now - rested_since[name] >= limits.idle_s for name in plan.let_go)
        kept = {one.name for one in there if one.may_go} - plan.let_go
        assert not plan.let_go or len(kept) >= limits.least
        assert plan.num_machines >= min(len(kept), limits.most), "not below what is kept"
        assert plan_machines(there, demands, limits, plan, now) == plan, "steady"
        assert plan_machines(there[::-1], demands, limits, before, now) == plan, "in whatever order"


@given(machines, jobs, bounds, st.integers(1, 5))
def test_who_wants_more_is_given_no_fewer(
    there: list[PooledMachine], demands: list[SlotDemand], limits: MachineLimits, more: int
) -> None:
    demands = [replace(one, slots_per_task=1, is_running=True) for one in demands]
    larger = [replace(one, max_tasks=one.max_tasks + more) for one in demands]
    few, many = (plan_machines(there, every, limits, NOTHING, 0.0) for every in (demands, larger))
    assert many.num_machines >= few.num_machines
