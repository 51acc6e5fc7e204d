"""The working paper of one decision: how much room every node has (`Board`), and how each workload stands (`Stake`).

Three amounts per node, each at most the next: `now`, slots that no process holds and no claim has taken; `soon`, slots
left when all who leave are gone and all claims are served (negative while a claim waits for slots that are yet to be
taken from somebody); `room`, slots left beside the minimums and the claims. A claim is a task that shall start on a
node. An area is what a resource group has of the board: of every node so many slots, whichever they are. Of an amount
an area can have no more than its own limit leaves, which the tasks of its queues use up too.

Knows no policy, priority or time. The values here are changed in place and never outlive one call of `plan`.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from pliant.core.job import NodeId
from pliant.core.plan import NodeView, Placement, QueueView, Snapshot
from pliant.core.workload import TaskView, Workload
from pliant.policy.schedule.order import age, natural


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

    def best(self, wanted: int, least: int, avoid: Set[int] = frozenset()) -> int | None:
        """Return the node with the smallest amount that covers `wanted`, else the one with most, if that is `least`.

        Nodes of `avoid` are passed over.
        """
        if avoid:
            return self._best_beside(avoid, wanted, least)
        at = bisect_left(self._sorted, (wanted, -1))
        if at == len(self._sorted):
            most = self._sorted[-1][0] if self._sorted else 0
            if most < least:
                return None
            at = bisect_left(self._sorted, (most, -1))
        return self._sorted[at][1]

    def _best_beside(self, avoid: Set[int], wanted: int, least: int) -> int | None:
        found = [(amount, node) for amount, node in self._sorted if node not in avoid]
        if not found or (found[-1][0] < wanted and found[-1][0] < least):
            return None
        at = bisect_left(found, (min(wanted, found[-1][0]), -1))
        return found[at][1]

    def places(self, size: int, enough: int, avoid: Set[int] = frozenset()) -> int:
        """Return how many tasks of `size` slots fit on nodes not to avoid, or any number of at least `enough`."""
        if avoid:
            return sum(max(0, amount) // size for node, amount in enumerate(self.amounts) if node not in avoid)
        most = self._sorted[-1][0] // size if self._sorted else 0
        return most if most >= enough else sum(amount // size for amount in self.amounts if amount >= size)


class Tally:
    """One amount per node, and what each area can have of it."""

    def __init__(self, amounts: Iterable[int], limits: Iterable[Sequence[int] | None]) -> None:
        self.amounts = list(amounts)
        self.limits = [None if limit is None else list(limit) for limit in limits]
        """What each area's own limit leaves on every node; None: it has none."""
        self.tiers = [Tier(self.amounts if limit is None else map(min, self.amounts, limit)) for limit in self.limits]
        self._only = self.tiers[0] if self.limits == [None] else None
        """The amounts themselves, where there is one area and it has no limit."""
        if self._only is not None:
            self.amounts = self._only.amounts

    def of(self, stake: "Stake") -> Tier:
        """Return what a workload can have."""
        return self.tiers[stake.area]

    def add(self, area: int, node: int, num: int) -> None:
        """Give slots back that tasks of an area had, or (negative) let them have more."""
        amount = self.amounts[node] + num
        if self._only is not None:
            self._only.put(node, amount)
            return
        self.amounts[node] = amount
        own = self.limits[area]
        if own is not None:
            own[node] += num
        for tier, limit in zip(self.tiers, self.limits, strict=True):
            tier.put(node, amount if limit is None or limit[node] > amount else limit[node])


@dataclass(slots=True, eq=False, kw_only=True)
class Stake:
    """A workload in the course of one decision. All numbers are of tasks; nodes are numbers of the board."""

    view: Workload
    size: int
    """Slots per task."""
    low: int
    """Its minimum, or what it holds already if that is more and nobody may take it away."""
    queue: QueueView
    keeps: bool = False
    """Its queue has no preemption: what it holds it keeps."""
    area: int = 0
    """Of its queue's group."""
    held: dict[int, list[TaskView]]
    """Tasks that stay, by node, oldest first."""
    num_held: int = 0
    avoid: frozenset[int] = frozenset()
    """Nodes on which none of its tasks is to be started."""
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
        return self.low - sum(self.seats.values()) - self.num_claimed

    @property
    def excess(self) -> int:
        """Held tasks beyond its share."""
        return self.num_held - self.share

    @property
    def can_grow(self) -> bool:
        return self.admitted and not self.backs_off and not self.gave


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """How many slots of every node processes hold, by area; nodes are numbers of the board."""

    held: list[list[int]]
    staying: list[list[int]]
    """Held by those that nobody has told to leave."""


class Board:
    """The nodes in natural order of their ids, and what is left on each."""

    def __init__(
        self, nodes: Sequence[NodeView], free: list[list[int]], areas: Sequence[Sequence[int] | None], usage: Usage
    ) -> None:
        self.ids = [node.id for node in nodes]
        self.sizes = [len(node.slots) for node in nodes]
        self.areas = areas
        """Slots of every node that each area has; None: all."""
        self.free = free
        """Slots that no process holds, highest first."""
        staying = [sum(column) for column in zip(*usage.staying, strict=True)]
        self._startable = _beside(areas, usage.held)
        self.now = Tally((len(slots) for slots in free), self._startable)
        self.soon = Tally(map(int.__sub__, self.sizes, staying), _beside(areas, usage.staying))
        self.room = Tally(self.sizes, areas)
        self.num_slots = sum(self.sizes)

    def num_slots_of(self, areas: Iterable[int], unit: int = 1) -> int:
        """Return how many slots these areas have together, leaving out what of a node is no multiple of `unit`."""
        limits = [self.areas[area] for area in areas]
        if None in limits:
            return sum(size // unit * unit for size in self.sizes)
        known = [limit for limit in limits if limit is not None]
        return sum(
            min(size, sum(limit[node] for limit in known)) // unit * unit for node, size in enumerate(self.sizes)
        )

    def claim(self, stake: Stake, node: int, num: int) -> None:
        """Set slots aside for tasks that shall start on a node."""
        slots = num * stake.size
        now = self.now.of(stake).amounts[node]
        if now < slots:
            stake.awaits.add(node)
        self.now.add(stake.area, node, -max(0, min(now, slots)))
        self.soon.add(stake.area, node, -slots)
        self.room.add(stake.area, node, -slots)
        stake.claims[node] = stake.claims.get(node, 0) + num
        stake.num_claimed += num

    def unclaim(self, stake: Stake, node: int) -> None:
        """Take one claim back; what it took from `now` stays taken, which at worst delays a choice by one decision."""
        self.soon.add(stake.area, node, stake.size)
        self.room.add(stake.area, node, stake.size)
        stake.num_claimed -= 1
        stake.claims[node] -= 1
        if not stake.claims[node]:
            del stake.claims[node]
            stake.awaits.discard(node)

    def seek(self, stake: Stake, tally: Tally, num: int) -> int:
        """Claim up to `num` places: where the workload is already, else on as few nodes as can be.

        Return how many were found.
        """
        tier = tally.of(stake)
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
        self.soon.add(stake.area, node, stake.size)

    def startable(self, stake: Stake) -> int:
        """Return how many claims of a workload could start now."""
        return sum(min(num, self._num_free(stake, node) // stake.size) for node, num in stake.claims.items())

    def place(self, stake: Stake, num: int) -> list[Placement]:
        """Hand out free slots, lowest numbers first, to up to `num` of a workload's claims."""
        placed: list[Placement] = []
        size = stake.size
        limit = self._startable[stake.area]
        for node, claimed in stake.claims.items():
            free = self.free[node]
            for _ in range(min(claimed, self._num_free(stake, node) // size, num - len(placed))):
                slots = tuple(free[: -size - 1 : -1])
                del free[-size:]
                if limit is not None:
                    limit[node] -= size
                placed.append(Placement(node_id=self.ids[node], slots=slots))
        return placed

    def _num_free(self, stake: Stake, node: int) -> int:
        limit = self._startable[stake.area]
        free = len(self.free[node])
        return free if limit is None else max(0, min(free, limit[node]))


def _beside(areas: Sequence[Sequence[int] | None], used: Sequence[Sequence[int]]) -> list[list[int] | None]:
    """Return what the limits of areas leave beside what their tasks hold."""
    return [None if area is None else list(map(int.__sub__, area, own)) for area, own in zip(areas, used, strict=True)]


def _choose(stake: Stake, tier: Tier, num: int) -> int | None:
    size, amounts = stake.size, tier.amounts
    if stake.held or stake.claims:
        own = {node: len(tasks) for node, tasks in stake.held.items()}
        for node, count in stake.claims.items():
            own[node] = own.get(node, 0) + count
        fitting = [(-count, node) for node, count in own.items() if amounts[node] >= size and node not in stake.avoid]
        if fitting:
            return min(fitting)[1]
    return tier.best(num * size, size, stake.avoid)


def emptiest_first(stake: Stake) -> list[int]:
    """Return the nodes that a workload leaves first: with fewest of its tasks, then with its newest task."""
    if len(stake.held) < 2:
        return list(stake.held)
    newest = {task.node_id: at for at, task in enumerate(stake.view.tasks) if not task.leaving}
    return sorted(stake.held, key=lambda node: (len(stake.held[node]), -newest[stake.held[node][-1].node_id]))


def lay_out(snapshot: Snapshot) -> tuple[Board, list[Stake]]:
    """Return the board and the stakes of a snapshot with queues, nothing decided yet.

    A task whose node or slot is gone does not count to its workload and is told to leave. So do tasks on slots beyond
    what their group has, except of workloads that keep what they hold.
    """
    nodes = sorted(snapshot.nodes, key=lambda node: natural(node.id))
    index = {node.id: at for at, node in enumerate(nodes)}
    slots_of = [frozenset(node.slots) for node in nodes]
    queues = {queue.name: queue for queue in snapshot.queues}
    area_of, areas = _areas(snapshot.queues, index)
    taken: list[set[int]] = [set() for _ in nodes]
    usage = Usage(held=[[0] * len(nodes) for _ in areas], staying=[[0] * len(nodes) for _ in areas])
    stakes = []
    for view in snapshot.workloads:
        queue = queues[view.queue]
        area = area_of[view.queue]
        stake = Stake(view=view, size=view.slots_per_task, low=view.min_tasks, queue=queue, area=area, held={})
        stake.keeps = not queue.preemption
        for task in view.tasks:
            node = index.get(task.node_id)
            if node is not None:
                taken[node].update(task.slots)
                usage.held[area][node] += len(task.slots)
            if task.leaving:
                continue
            if node is not None and slots_of[node].issuperset(task.slots):
                stake.held.setdefault(node, []).append(task)
                usage.staying[area][node] += len(task.slots)
                stake.num_held += 1
            else:
                stake.leave.append(task)
        if view.excluded:
            stake.avoid = frozenset(index[node_id] for node_id in view.excluded if node_id in index)
        stakes.append(stake)
    free = [sorted(slots - used, reverse=True) for slots, used in zip(slots_of, taken, strict=True)]
    board = Board(nodes, free, areas, usage)
    if any(area is not None for area in areas):
        _evict(board, stakes)
    return board, stakes


def _areas(
    queues: Iterable[QueueView], index: Mapping[NodeId, int]
) -> tuple[dict[str, int], list[Sequence[int] | None]]:
    """Return the area of every queue by its name, and the areas; queues without a limit share one."""
    area_of: dict[str, int] = {}
    number_of: dict[str | None, int] = {}
    areas: list[Sequence[int] | None] = []
    for queue in sorted(queues, key=lambda queue: queue.name):
        group = None if queue.slots is None else queue.group
        if group not in number_of:
            number_of[group] = len(areas)
            limit = queue.slots
            areas.append(None if limit is None else [limit.get(node_id, 0) for node_id in index])
        area_of[queue.name] = number_of[group]
    return area_of, areas


def _evict(board: Board, stakes: Sequence[Stake]) -> None:
    """Tell tasks to leave that hold more of a node than their group has there: of those above their minimum first.

    Of these the youngest workload's newest task goes first.
    """
    last_first = sorted(stakes, key=lambda stake: age(stake.view), reverse=True)
    for least in (False, True):
        for stake in last_first:
            for node in list(stake.held):
                while _is_over(board, stake, node) and (least or stake.num_held > stake.view.min_tasks):
                    board.release(stake, node)


def _is_over(board: Board, stake: Stake, node: int) -> bool:
    """Tell whether a group has less of a node than its tasks hold, and this workload can give some of it up."""
    limit = board.soon.limits[stake.area]
    fast = stake.keeps or stake.view.pinned or not stake.held.get(node)
    return limit is not None and limit[node] < 0 and not fast
