"""The working paper of one decision: how much room every node has (`Board`), and how each workload stands (`Stake`).

Three amounts per node, each at most the next: `now`, slots that no process holds and no claim has taken; `soon`, slots
left when all who leave are gone and all claims are served (negative while a claim waits for slots that are yet to be
taken from somebody); `room`, slots left beside the minimums and the claims. A claim is a task that shall start on a
node.

Knows no policy, priority or time. The values here are changed in place and never outlive one call of `plan`.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, field

from pliant.core.job import NodeId
from pliant.core.plan import NodeView, Placement, Snapshot, TaskView, WorkloadView
from pliant.policy.order import natural


class Tier:
    """An amount of slots per node, searchable by amount."""

    def __init__(self, amounts: Iterable[int]) -> None:
        self.amounts = list(amounts)
        self.total = sum(self.amounts)
        self._sorted = sorted((amount, node) for node, amount in enumerate(self.amounts))

    def put(self, node: int, amount: int) -> None:
        old = self.amounts[node]
        if amount != old:
            del self._sorted[bisect_left(self._sorted, (old, node))]
            insort(self._sorted, (amount, node))
            self.amounts[node] = amount
            self.total += amount - old

    def best(self, wanted: int, least: int) -> int | None:
        """Return the node with the smallest amount that covers `wanted`, else the one with most, if that is `least`."""
        at = bisect_left(self._sorted, (wanted, -1))
        if at == len(self._sorted):
            most = self._sorted[-1][0] if self._sorted else 0
            if most < least:
                return None
            at = bisect_left(self._sorted, (most, -1))
        return self._sorted[at][1]

    def places(self, size: int, enough: int) -> int:
        """Return how many tasks of `size` slots fit, or any number of at least `enough`."""
        most = self._sorted[-1][0] // size if self._sorted else 0
        return most if most >= enough else sum(amount // size for amount in self.amounts if amount >= size)


@dataclass(slots=True, eq=False, kw_only=True)
class Stake:
    """A workload in the course of one decision. All numbers are of tasks; nodes are numbers of the board."""

    view: WorkloadView
    size: int
    """Slots per task."""
    held: dict[int, list[TaskView]]
    """Tasks that stay, by node, oldest first."""
    num_held: int
    leave: list[TaskView] = field(default_factory=list)
    """Tasks that are told to go by this decision."""
    claims: dict[int, int] = field(default_factory=dict)
    num_claimed: int = 0
    seats: dict[int, int] = field(default_factory=dict)
    """Held tasks that its minimum rests on."""
    awaits: set[int] = field(default_factory=set)
    """Nodes where some of the claimed slots are still held by somebody."""
    gave: bool = False
    """Some of its tasks were taken by this decision; it does not grow in the same one."""
    rank: int = 0
    """Place in the policy's order, 0 first."""
    age: int = 0
    """Place in the order of age, 0 the oldest."""
    admitted: bool = False
    """Its minimum is granted."""
    backs_off: bool = False
    """No task of it is started before `held_until`."""
    cools_down: bool = False
    share: int = 0
    """Tasks that it deserves."""
    free_share: bool = False
    """Neither minimum nor maximum bounds its share."""

    @property
    def target(self) -> int:
        return self.num_held + self.num_claimed

    @property
    def num_unseated(self) -> int:
        """Tasks of its minimum that rest neither on tasks that it has nor on claims."""
        return self.view.min_tasks - sum(self.seats.values()) - self.num_claimed

    @property
    def excess(self) -> int:
        """Held tasks beyond its share."""
        return self.num_held - self.share

    @property
    def can_grow(self) -> bool:
        return self.admitted and not self.backs_off and not self.gave


class Board:
    """The nodes in natural order of their ids, and what is left on each."""

    def __init__(self, nodes: Iterable[NodeView], held: dict[NodeId, set[int]], staying: dict[NodeId, int]) -> None:
        ordered = sorted(nodes, key=lambda node: natural(node.id))
        nobody: set[int] = set()
        self.ids = [node.id for node in ordered]
        self.sizes = [len(node.slots) for node in ordered]
        self.free = [sorted(set(node.slots) - held.get(node.id, nobody), reverse=True) for node in ordered]
        """Slots that no process holds, highest first."""
        self.now = Tier(len(slots) for slots in self.free)
        self.soon = Tier(size - staying.get(node, 0) for node, size in zip(self.ids, self.sizes, strict=True))
        self.room = Tier(self.sizes)
        self.num_slots = sum(self.sizes)

    def claim(self, stake: Stake, node: int, num: int) -> None:
        """Set slots aside for tasks that shall start on a node."""
        slots = num * stake.size
        if self.now.amounts[node] < slots:
            stake.awaits.add(node)
        self.now.put(node, max(0, self.now.amounts[node] - slots))
        self.soon.put(node, self.soon.amounts[node] - slots)
        self.room.put(node, self.room.amounts[node] - slots)
        stake.claims[node] = stake.claims.get(node, 0) + num
        stake.num_claimed += num

    def unclaim(self, stake: Stake, node: int) -> None:
        """Take one claim back; what it took from `now` stays taken, which at worst delays a choice by one decision."""
        self.soon.put(node, self.soon.amounts[node] + stake.size)
        self.room.put(node, self.room.amounts[node] + stake.size)
        stake.num_claimed -= 1
        stake.claims[node] -= 1
        if not stake.claims[node]:
            del stake.claims[node]
            stake.awaits.discard(node)

    def seek(self, stake: Stake, tier: Tier, num: int) -> int:
        """Claim up to `num` places in a tier: where the workload is already, else on as few nodes as can be.

        Return how many were found.
        """
        left = num
        while left and (node := _choose(stake, tier, left)) is not None:
            count = min(left, tier.amounts[node] // stake.size)
            self.claim(stake, node, count)
            left -= count
        return num - left

    def release(self, stake: Stake, node: int) -> None:
        """Tell the newest task of a workload on a node to leave."""
        tasks = stake.held[node]
        stake.leave.append(tasks.pop())
        if not tasks:
            del stake.held[node]
        stake.num_held -= 1
        stake.gave = True
        self.soon.put(node, self.soon.amounts[node] + stake.size)

    def startable(self, stake: Stake) -> int:
        """Return how many claims of a workload could start now."""
        return sum(min(num, len(self.free[node]) // stake.size) for node, num in stake.claims.items())

    def place(self, stake: Stake, num: int) -> list[Placement]:
        """Hand out free slots, lowest numbers first, to up to `num` of a workload's claims."""
        placed: list[Placement] = []
        size = stake.size
        for node, claimed in stake.claims.items():
            free = self.free[node]
            for _ in range(min(claimed, len(free) // size, num - len(placed))):
                slots = tuple(free[: -size - 1 : -1])
                del free[-size:]
                placed.append(Placement(node_id=self.ids[node], slots=slots))
        return placed


def _choose(stake: Stake, tier: Tier, num: int) -> int | None:
    size, amounts = stake.size, tier.amounts
    if stake.held or stake.claims:
        own = {node: len(tasks) for node, tasks in stake.held.items()}
        for node, count in stake.claims.items():
            own[node] = own.get(node, 0) + count
        fitting = [(-count, node) for node, count in own.items() if amounts[node] >= size]
        if fitting:
            return min(fitting)[1]
    return tier.best(num * size, size)


def emptiest_first(stake: Stake) -> list[int]:
    """Return the nodes that a workload leaves first: with fewest of its tasks, then with its newest task."""
    if len(stake.held) < 2:
        return list(stake.held)
    newest = {task.node_id: at for at, task in enumerate(stake.view.tasks) if not task.leaving}
    return sorted(stake.held, key=lambda node: (len(stake.held[node]), -newest[stake.held[node][-1].node_id]))


def lay_out(snapshot: Snapshot) -> tuple[Board, list[Stake]]:
    """Return the board and the stakes of a snapshot, nothing decided yet.

    A task whose node or slot is gone does not count to its workload and is told to leave.
    """
    slots_of = {node.id: frozenset(node.slots) for node in snapshot.nodes}
    index = {node_id: at for at, node_id in enumerate(sorted(slots_of, key=natural))}
    taken: dict[NodeId, set[int]] = {node_id: set() for node_id in index}
    staying: dict[NodeId, int] = dict.fromkeys(index, 0)
    stakes = []
    for view in snapshot.workloads:
        held: dict[int, list[TaskView]] = {}
        stranded = []
        num_held = 0
        for task in view.tasks:
            node_id = task.node_id
            if node_id in taken:
                taken[node_id].update(task.slots)
            if task.leaving:
                continue
            if node_id in index and slots_of[node_id].issuperset(task.slots):
                held.setdefault(index[node_id], []).append(task)
                staying[node_id] += len(task.slots)
                num_held += 1
            else:
                stranded.append(task)
        stakes.append(Stake(view=view, size=view.slots_per_task, held=held, num_held=num_held, leave=stranded))
    return Board(snapshot.nodes, taken, staying), stakes
