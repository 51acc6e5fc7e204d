"""How many machines an autoscaler is asked for, and which it may take away: `plan_machines`. Pure.

Theory of operation. All that runs, waits or could grow is laid out on the machines that there are, what runs first and
tasks with the most slots first: on those that no autoscaler can take away, then on its own, those that work before
those that are idle and those that were let go at last. What is left over is laid out on new ones. So the wish is what
must fit in all, as Ray's standing request is. A machine is let go if it has no task, had none for `idle_s`, and nothing
was laid on it.

Example: 2 slots are the server's own, a new machine has 4, at most 3 of them. A job of 1 to 10 tasks arrives: 2 tasks
are laid out at home, so 2 machines are wished, and the job grows onto them. It ends at 100 s: both are idle from then
on, and still wished. With `idle_s` of 300 both are let go at 400 s, one of them if the least is 1. If a job comes
before they went, they are wished again before any new one is.

Laws: the number is never above the most nor below the least. A machine with a task is never let go, one that is idle
not before its time, and none below the least. If nothing changes, the plan does not change either but for time. A job
that cannot begin even with the most machines brings none.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineLimits:
    """How far an autoscaler may go."""

    least: int
    most: int
    idle_s: float
    """So long a machine has no task before it is let go."""
    num_slots: int
    """Of a new machine; 0: nobody knows, so one is asked for, to see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledMachine:
    """A machine that there is."""

    name: str
    num_slots: int | None
    """On which tasks are started; None: it has not told yet."""
    is_busy: bool
    """It has a task, or something else holds a slot of it."""
    may_go: bool
    """An autoscaler brought it, and takes it away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotDemand:
    """What one workload could have."""

    min_tasks: int
    max_tasks: int
    slots_per_task: int
    """All of one machine."""
    is_running: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinePlan:
    """What an autoscaler is asked for."""

    num_machines: int = 0
    """That there shall be in all."""
    let_go: frozenset[str] = frozenset()
    """Machines that it may take away."""
    idle_since: Mapping[str, float] = field(default_factory=dict)
    """Of those without a task; for the next plan."""


@dataclass(slots=True)
class _Bin:
    """A machine as tasks are laid out."""

    free: int
    name: str | None = None
    is_used: bool = False


def plan_machines(
    machines: Sequence[PooledMachine],
    demands: Sequence[SlotDemand],
    limits: MachineLimits,
    before: MachinePlan,
    now: float,
) -> MachinePlan:
    """Return what to ask for.

    Args:
        machines: that there are; those that are about to be taken away anyhow are not among them.
        demands: of all workloads that want slots.
        limits: how far to go.
        before: the plan before this one.
        now: seconds, as of the plans.
    """
    known = [one.num_slots for one in machines if one.may_go and one.num_slots]
    size = limits.num_slots or max(known, default=0)
    idle_since = {one.name: before.idle_since.get(one.name, now) for one in machines if one.may_go and not one.is_busy}
    order = sorted(machines, key=lambda one: _precedence(one, before, idle_since))
    num_existing = sum(one.may_go for one in machines)
    used, num_new = _lay_out(order, demands, size, max(0, limits.most - num_existing))
    every = [one for one in order if one.may_go]
    wanted = {one.name for one in every if one.is_busy or one.name in used}
    young = {name for name, since in idle_since.items() if now - since < limits.idle_s and name not in before.let_go}
    kept = wanted | young
    for one in every:  # the least, those first that worked last
        if len(kept) >= limits.least:
            break
        kept.add(one.name)
    num = min(max(len(kept) + num_new, limits.least), limits.most)
    return MachinePlan(
        num_machines=num,
        let_go=frozenset(one.name for one in every if one.name not in kept),
        idle_since=idle_since,
    )


def _precedence(
    one: PooledMachine, before: MachinePlan, idle_since: Mapping[str, float]
) -> tuple[bool, bool, bool, float, str]:
    """Return who tasks are laid on first (least first)."""
    return one.may_go, not one.is_busy, one.name in before.let_go, -idle_since.get(one.name, 0.0), one.name


def _lay_out(
    order: Sequence[PooledMachine], demands: Sequence[SlotDemand], size: int, max_new: int
) -> tuple[set[str], int]:
    """Return the machines that tasks were laid on, and how many new ones are needed."""
    bins = [_Bin(size if one.num_slots is None else one.num_slots, one.name) for one in order]
    if not size and any(one.num_slots is None and one.may_go for one in order):
        max_new = 0  # what it has is known soon
    new = [_Bin(size) for _ in range(max_new if size else 0)]
    is_short = False
    for demand in sorted(demands, key=lambda one: (not one.is_running, -one.slots_per_task)):  # what runs comes first
        places = list(_places((*bins, *new), demand.slots_per_task))
        num_places = sum(num for _, num in places)
        if not demand.is_running and num_places < demand.min_tasks:
            is_short = True
            continue
        rest = demand.max_tasks
        for bin_, num in places:
            taken = min(rest, num)
            if taken:
                bin_.free -= taken * demand.slots_per_task
                bin_.is_used = True
            rest -= taken
        is_short = is_short or rest > 0
    num_new = sum(one.is_used for one in new)
    if not size and is_short:
        num_new = min(1, max_new)
    return {one.name for one in bins if one.name is not None and one.is_used}, num_new


def _places(bins: Sequence[_Bin], slots_per_task: int) -> Iterator[tuple[_Bin, int]]:
    for one in bins:
        if num := one.free // slots_per_task:
            yield one, num
