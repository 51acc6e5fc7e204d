"""How many machines an autoscaler is asked for, and which it may take away."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pliant.policy.autoscale.machines import (
    MachineKind,
    MachinePlan,
    PooledMachine,
    SlotDemand,
    plan_machines,
)

KIND = MachineKind(least=0, most=3, idle_s=300.0, num_slots=4)
HOME = PooledMachine(name="local", num_slots=2, is_busy=True, kind=None)
NOTHING = MachinePlan()


def machine(name: str, num_slots: int | None = 4, *, busy: bool = False) -> PooledMachine:
    return PooledMachine(name=name, num_slots=num_slots, is_busy=busy, kind="")


def job(max_tasks: int, min_tasks: int = 1, slots: int = 1, *, runs: bool = False) -> SlotDemand:
    return SlotDemand(min_tasks=min_tasks, max_tasks=max_tasks, slots_per_task=slots, is_running=runs)


def num(*demands: SlotDemand, machines: tuple[PooledMachine, ...] = (HOME,), kind: MachineKind = KIND) -> int:
    return plan_machines(machines, demands, (kind,), NOTHING, 0.0).num_machines[""]


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
    unknown = replace(KIND, num_slots=0)
    assert num(job(99), kind=unknown) == 1
    assert num(job(2), kind=unknown) == 0
    assert num(job(99), machines=(HOME, machine("a", None)), kind=unknown) == 1, "it comes"
    assert num(job(9), machines=(HOME, machine("a", 8)), kind=unknown) == 1
    assert num(job(11), machines=(HOME, machine("a", 8)), kind=unknown) == 2


def test_the_example_of_the_module() -> None:
    one_stays = replace(KIND, least=1)
    coming = plan_machines((HOME,), (job(10),), (KIND,), NOTHING, 0.0)
    assert coming.num_machines == {"": 2}
    both = (HOME, machine("a"), machine("b"))
    busy = (HOME, machine("a", busy=True), machine("b", busy=True))
    plan = plan_machines(busy, (job(10, runs=True),), (KIND,), coming, 50.0)
    assert (plan.num_machines[""], plan.let_go, plan.idle_since) == (2, frozenset(), {})
    idle = plan_machines(both, (), (KIND,), plan, 100.0)
    assert (idle.num_machines[""], idle.let_go) == (2, frozenset())
    assert not plan_machines(both, (), (KIND,), idle, 399.9).let_go
    gone = plan_machines(both, (), (KIND,), idle, 400.0)
    assert (gone.num_machines[""], gone.let_go) == (0, frozenset("ab"))
    assert plan_machines(both, (), (one_stays,), idle, 400.0).let_go == {"b"}
    again = plan_machines(both, (job(6),), (KIND,), gone, 401.0)
    assert (again.num_machines[""], again.let_go) == (1, frozenset("b")), "it is wished again before a new one is"


def test_a_machine_that_works_is_not_counted_away_by_one_that_is_idle() -> None:
    there = (HOME, machine("a"), machine("b", busy=True))
    early = plan_machines(there, (job(4, runs=True),), (KIND,), NOTHING, 0.0)
    late = plan_machines(there, (job(4, runs=True),), (KIND,), early, 300.0)
    assert (late.num_machines[""], late.let_go) == (1, frozenset("a"))


CPU = MachineKind(name="cpu", least=0, most=2, idle_s=60.0, num_slots=8)
GPU = MachineKind(name="gpu", least=0, most=3, idle_s=300.0, num_slots=4, group_slots={"gpus": 4})


def wished(
    *demands: SlotDemand, there: tuple[PooledMachine, ...] = (), kinds: tuple[MachineKind, ...] = (CPU, GPU)
) -> str:
    plan = plan_machines((HOME, *there), demands, kinds, NOTHING, 0.0)
    return " ".join(f"{number} {name}" for name, number in plan.num_machines.items())


def on_gpus(max_tasks: int, slots: int = 1) -> SlotDemand:
    return replace(job(max_tasks, slots=slots), group="gpus")


def test_kinds_are_asked_for_in_their_order_and_only_those_on_which_a_job_may_run() -> None:
    assert wished(job(3)) == "1 cpu 0 gpu"
    assert wished(job(19)) == "2 cpu 1 gpu", "what is above the most of one is the next one's"
    assert wished(on_gpus(3)) == "0 cpu 1 gpu"
    assert wished(on_gpus(99), job(10)) == "1 cpu 3 gpu"
    assert wished(on_gpus(1, slots=5)) == "0 cpu 0 gpu", "no machine that it may use has room for a task"
    assert wished(job(1, slots=5)) == "1 cpu 0 gpu"


def test_a_group_has_so_many_slots_of_a_machine_and_no_more() -> None:
    two_each = replace(GPU, group_slots={"gpus": 2})
    assert wished(on_gpus(2), on_gpus(2), kinds=(CPU, two_each)) == "0 cpu 2 gpu"
    assert wished(on_gpus(4), job(4), kinds=(two_each,)) == "2 gpu", "others have the rest"


def test_a_job_that_may_run_anywhere_leaves_machines_to_one_that_may_not() -> None:
    gpu = PooledMachine(name="a", num_slots=4, is_busy=False, kind="gpu", group_slots={"gpus": 4})
    assert wished(job(4, slots=4), on_gpus(4), there=(gpu,)) == "2 cpu 1 gpu"


def test_one_of_a_kind_is_asked_for_to_see_and_what_was_seen_is_remembered() -> None:
    unknown = replace(CPU, num_slots=0)
    assert wished(job(99), kinds=(unknown, GPU)) == "1 cpu 0 gpu", "the rest waits until it is seen"
    assert wished(on_gpus(1), kinds=(unknown, GPU)) == "0 cpu 1 gpu"
    small = PooledMachine(name="a", num_slots=2, is_busy=False, kind="cpu")
    seen = plan_machines((HOME, small), (job(1, slots=3),), (unknown, GPU), NOTHING, 0.0)
    assert seen.num_machines == {"cpu": 1, "gpu": 1}
    gone = plan_machines((HOME,), (job(1, slots=3),), (unknown, GPU), seen, 100.0)
    assert gone.num_machines == {"cpu": 0, "gpu": 1}, "it is not asked for again, only to be seen too small"


def test_every_kind_has_its_own_idle_time() -> None:
    there = [PooledMachine(name=name, num_slots=4, is_busy=False, kind=name) for name in ("cpu", "gpu")]
    plan = plan_machines(there, (), (CPU, GPU), NOTHING, 0.0)
    assert plan_machines(there, (), (CPU, GPU), plan, 60.0).let_go == {"cpu"}
    assert plan_machines(there, (), (CPU, GPU), plan, 300.0).let_go == {"cpu", "gpu"}


NAMES = ("x", "y")
group_slots = st.dictionaries(st.sampled_from(("g", "h")), st.integers(1, 4))
KIND_OF = {"a": None, "b": None, "c": "x", "d": "x", "e": "y", "f": "y"}
machines = st.lists(
    st.sampled_from(tuple(KIND_OF)).flatmap(
        lambda name: st.builds(
            PooledMachine,
            name=st.just(name),
            num_slots=st.none() | st.integers(0, 4),
            is_busy=st.booleans(),
            kind=st.just(KIND_OF[name]),
            group_slots=group_slots,
        )
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
        group=st.sampled_from(("", "g", "h")),
    ),
    max_size=4,
)


def kind_called(name: str) -> st.SearchStrategy[MachineKind]:
    return st.builds(
        MachineKind,
        name=st.just(name),
        least=st.integers(0, 3),
        most=st.integers(3, 6),
        idle_s=st.floats(1, 100),
        num_slots=st.integers(0, 4),
        group_slots=group_slots,
    )


two_kinds = st.tuples(*map(kind_called, NAMES))


@given(st.lists(st.tuples(machines, jobs, st.floats(0, 60)), min_size=1, max_size=6), two_kinds)
def test_the_laws_hold_whatever_comes_and_goes(
    course: list[tuple[list[PooledMachine], list[SlotDemand], float]], kinds: tuple[MachineKind, ...]
) -> None:
    now, plan = 0.0, NOTHING
    rested_since: dict[str, float] = {}
    for there, demands, later_s in course:
        now += later_s
        resting = {one.name for one in there if one.kind is not None and not one.is_busy}
        rested_since = {name: rested_since.get(name, now) for name in resting}
        before, plan = plan, plan_machines(there, demands, kinds, plan, now)
        assert plan.let_go <= resting
        for kind in kinds:
            number, its = plan.num_machines[kind.name], {one.name for one in there if one.kind == kind.name}
            assert kind.least <= number <= kind.most
            assert all(now - rested_since[name] >= kind.idle_s for name in plan.let_go & its)
            assert not plan.let_go & its or len(its - plan.let_go) >= kind.least
            assert number >= min(len(its - plan.let_go), kind.most), "not below what is kept"
            mays = [one for one in demands if may_run(one, kind, plan)]
            assert mays or number <= max(len(its - plan.let_go), kind.least), "none that is of no use"
        assert plan_machines(there, demands, kinds, plan, now) == plan, "steady"
        assert plan_machines(there[::-1], demands, kinds, before, now) == plan, "in whatever order"


def may_run(demand: SlotDemand, kind: MachineKind, plan: MachinePlan) -> bool:
    """Tell whether a task fits on a new machine, for all that is known."""
    size = kind.num_slots or plan.sizes[kind.name] or demand.slots_per_task
    usable = min(size, kind.group_slots.get(demand.group, 0)) if demand.group else size
    return usable >= demand.slots_per_task


@given(machines, jobs, two_kinds, st.integers(1, 5))
def test_who_wants_more_is_given_no_fewer(
    there: list[PooledMachine], demands: list[SlotDemand], kinds: tuple[MachineKind, ...], more: int
) -> None:
    demands = [replace(one, slots_per_task=1, is_running=True) for one in demands]
    larger = [replace(one, max_tasks=one.max_tasks + more) for one in demands]
    few, many = (plan_machines(there, every, kinds, NOTHING, 0.0).num_machines for every in (demands, larger))
    assert all(many[name] >= few[name] for name in NAMES)


@given(machines, jobs, two_kinds)
def test_what_all_that_wants_slots_has_on_the_machines_that_there_are_brings_no_others(
    there: list[PooledMachine], demands: list[SlotDemand], kinds: tuple[MachineKind, ...]
) -> None:
    enough = PooledMachine(name="z", num_slots=1000, is_busy=True, kind=None, group_slots={"g": 500, "h": 500})
    plan = plan_machines((*there, enough), demands, kinds, NOTHING, 0.0)
    for kind in kinds:
        num_there = sum(one.kind == kind.name for one in there)
        assert plan.num_machines[kind.name] == min(max(num_there, kind.least), kind.most)
