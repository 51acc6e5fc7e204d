"""How many machines of each kind an autoscaler is asked for, and which it may take away: `plan_machines`. Pure.

Theory of operation. All that runs, waits or could grow is laid out on the machines that there are, what runs first,
then what the fewest machines may run, then tasks with the most slots: on those that no autoscaler can take away, then
on its own, those that work before those that are idle and those that were let go at last. What is left over is laid out
on new ones, in the order of the kinds, each on those that may run it. So the wish is what must fit in all, as Ray's
standing request is. A machine is let go if it has had no task for the `idle_s` of its kind, and nothing was laid on it.

Example: 2 slots are the server's own, a new machine has 4, at most 3 of them. A job of 1 to 10 tasks arrives: 2 tasks
are laid out at home, so 2 machines are wished, and the job grows onto them. It ends at 100 s: both are idle from then
on, and still wished. With `idle_s` of 300 both are let go at 400 s, one of them if the least is 1. If a job comes
before they went, they are wished again before any new one is.

With kinds `cpu` and then `gpu`, a job of a queue over the machines of `gpu` alone brings those; one that may run on
either brings machines of `cpu` up to their most, and the rest of `gpu`.

Laws, of each kind: the number is never above the most nor below the least. A machine with a task is never let go, one
that is idle not before its time, and none below the least. No new one is wished for what may not run on it. If nothing
changes, the plan does not change either but for time. A job that cannot begin even with the most machines brings none.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineKind:
    """Machines that are alike, how far an autoscaler may go with them, and what is known of a new one."""

    name: str = ""
    """Empty, where there is no need to tell it from others."""
    least: int
    most: int
    idle_s: float
    """So long a machine has no task before it is let go."""
    num_slots: int
    """Of a new machine; 0: nobody knows, so one is asked for, to see."""
    labels: Mapping[str, str] = field(default_factory=dict)
    num_gpus: int = 0
    num_cpus: int = 0
    group_slots: Mapping[str, int] = field(default_factory=dict)
    """So many slots of a new machine each resource group has, at most; of one that is not named it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledMachine:
    """A machine that there is."""

    name: str
    num_slots: int | None
    """On which tasks are started; None: it has not told yet."""
    is_busy: bool
    """It has a task, or something else holds a slot of it."""
    kind: str | None
    """Of which kind an autoscaler brought it, and takes it away; None: no autoscaler does."""
    group_slots: Mapping[str, int] = field(default_factory=dict)
    """As of `MachineKind`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotDemand:
    """What one workload could have."""

    min_tasks: int
    max_tasks: int
    slots_per_task: int
    """All of one machine."""
    is_running: bool
    group: str = ""
    """The resource group whose slots it may have; empty: all slots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinePlan:
    """What an autoscaler is asked for."""

    num_machines: Mapping[str, int] = field(default_factory=dict)
    """By kind, that there shall be in all."""
    let_go: frozenset[str] = frozenset()
    """Machines that it may take away."""
    idle_since: Mapping[str, float] = field(default_factory=dict)
    """Of those without a task; for the next plan."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """By kind, how many slots the largest machine had that was seen; for the next plan."""


@dataclass(slots=True)
class _Bin:
    """A machine as tasks are laid out."""

    kind: str | None
    free: int
    groups: Mapping[str, int]
    """See `group_slots`."""
    name: str | None = None
    """None: it is a new one."""
    is_unseen: bool = False
    """It stands for machines of which nobody knows how many slots they have."""
    is_used: bool = False
    taken: dict[str, int] = field(default_factory=dict)
    """Slots that are laid out, by group."""

    def room(self, demand: SlotDemand) -> int:
        """Return how many more tasks fit."""
        return self._slots_for(demand.group) // demand.slots_per_task

    def may_run(self, demand: SlotDemand) -> bool:
        """Tell whether a machine of an unseen kind could have a task, for all that is known."""
        return self.is_unseen and (not demand.group or self.groups.get(demand.group, 0) >= demand.slots_per_task)

    def take(self, num_tasks: int, demand: SlotDemand) -> None:
        num_slots = num_tasks * demand.slots_per_task
        self.free -= num_slots
        self.taken[demand.group] = self.taken.get(demand.group, 0) + num_slots
        self.is_used = True

    def _slots_for(self, group: str) -> int:
        return min(self.free, self.groups.get(group, 0) - self.taken.get(group, 0)) if group else self.free


def plan_machines(
    machines: Sequence[PooledMachine],
    demands: Sequence[SlotDemand],
    kinds: Sequence[MachineKind],
    before: MachinePlan,
    now: float,
) -> MachinePlan:
    """Return what to ask for.

    Args:
        machines: that there are; those that are about to be taken away anyhow are not among them.
        demands: of all workloads that want slots.
        kinds: how far to go with each, in the order in which they are asked for; machines are of no others.
        before: the plan before this one.
        now: seconds, as of the plans.
    """
    idle_since = {
        one.name: before.idle_since.get(one.name, now) for one in machines if one.kind is not None and not one.is_busy
    }
    rank = {kind.name: number for number, kind in enumerate(kinds)}
    order = sorted(machines, key=lambda one: _precedence(one, before, idle_since, rank))
    sizes = {kind.name: _largest(kind.name, machines, before) for kind in kinds}
    bins = _bins(order, kinds, sizes)
    asked = _lay_out(bins, demands)
    used = {one.name for one in bins if one.is_used}
    num_machines, let_go = {}, set()
    for kind in kinds:
        its = [one for one in order if one.kind == kind.name]
        num_new = sum(one.is_used and one.name is None and one.kind == kind.name for one in bins)
        num_new += kind.name in asked and all(one.num_slots is not None for one in its)  # what one has is known soon
        kept = _kept(its, used, kind, before, {name: now - since for name, since in idle_since.items()})
        num_machines[kind.name] = min(max(len(kept) + num_new, kind.least), kind.most)
        let_go |= {one.name for one in its} - kept
    return MachinePlan(num_machines=num_machines, let_go=frozenset(let_go), idle_since=idle_since, sizes=sizes)


def _precedence(
    one: PooledMachine, before: MachinePlan, idle_since: Mapping[str, float], rank: Mapping[str, int]
) -> tuple[bool, bool, bool, int, float, str]:
    """Return who tasks are laid on first (least first)."""
    kind = -1 if one.kind is None else rank[one.kind]
    is_its = one.kind is not None
    return is_its, not one.is_busy, one.name in before.let_go, kind, -idle_since.get(one.name, 0.0), one.name


def _largest(kind: str, machines: Iterable[PooledMachine], before: MachinePlan) -> int:
    """Return the most slots that a machine of a kind has been seen with; 0: none was seen."""
    seen = [one.num_slots for one in machines if one.kind == kind and one.num_slots]
    return max(seen, default=before.sizes.get(kind, 0))


def _kept(
    its: Sequence[PooledMachine],
    used: Collection[str | None],
    kind: MachineKind,
    before: MachinePlan,
    idle_s: Mapping[str, float],
) -> set[str]:
    """Return which machines of a kind are not let go."""
    kept = {one.name for one in its if one.is_busy or one.name in used}
    kept |= {one.name for one in its if idle_s.get(one.name, 0.0) < kind.idle_s and one.name not in before.let_go}
    for one in its:  # the least, those first that worked last
        if len(kept) >= kind.least:
            break
        kept.add(one.name)
    return kept


def _bins(order: Sequence[PooledMachine], kinds: Sequence[MachineKind], sizes: Mapping[str, int]) -> list[_Bin]:
    """Return the machines that tasks can be laid on, in that order: those that there are, and new ones."""
    size = {kind.name: kind.num_slots or sizes[kind.name] for kind in kinds}
    bins = []
    for one in order:
        free = one.num_slots if one.num_slots is not None else 0 if one.kind is None else size[one.kind]
        bins.append(_Bin(kind=one.kind, free=free, groups=one.group_slots, name=one.name))
    for kind in kinds:
        its = [one for one in order if one.kind == kind.name]
        num_new = kind.most - len(its)
        if size[kind.name]:
            bins += [_Bin(kind=kind.name, free=size[kind.name], groups=kind.group_slots) for _ in range(num_new)]
        elif num_new > 0 or any(one.num_slots is None for one in its):
            bins.append(_Bin(kind=kind.name, free=0, groups=kind.group_slots, is_unseen=True))
    return bins


def _lay_out(bins: Sequence[_Bin], demands: Sequence[SlotDemand]) -> set[str]:
    """Lay tasks on machines; return the kinds of which one is needed, to see how many slots it has."""
    shapes = {(one.group, one.slots_per_task): one for one in demands}
    num_places = {shape: sum(bool(one.room(of)) for one in bins) for shape, of in shapes.items()}
    most_tasks: dict[tuple[str, int], int] = {}
    """Of a shape that no machine has room enough for: how many tasks fit still, at most."""
    asked: set[str] = set()

    def urgency(one: SlotDemand) -> tuple[bool, int, int]:
        return not one.is_running, num_places[one.group, one.slots_per_task], -one.slots_per_task

    for demand in sorted(demands, key=urgency):
        shape = demand.group, demand.slots_per_task
        num_needed = 1 if demand.is_running else demand.min_tasks
        if most_tasks.get(shape, num_needed) < num_needed:
            continue
        found, unseen = _places(bins, demand)
        asked |= unseen
        num_found = sum(num for _, num in found)
        is_laid = num_found >= num_needed
        if num_found < demand.max_tasks:
            most_tasks[shape] = 0 if is_laid else num_found
        if is_laid:
            for one, num in found:
                one.take(num, demand)
            bins = [one for one in bins if one.free or one.is_unseen]
    return asked


def _places(bins: Iterable[_Bin], demand: SlotDemand) -> tuple[Sequence[tuple[_Bin, int]], set[str]]:
    """Return how many tasks have room on which machines, and the kind that has to be seen before the rest has."""
    found: list[tuple[_Bin, int]] = []
    rest = demand.max_tasks
    for one in bins:
        if rest == 0:
            break
        if one.kind is not None and one.may_run(demand):
            return found, {one.kind}
        if num := min(rest, one.room(demand)):
            found.append((one, num))
            rest -= num
    return found, set()
