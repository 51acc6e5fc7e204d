"""One amount of slots per node, searchable by amount (`NodeIndex`), and what each resource group can have of it.

Knows no workloads: a group is a number here, and so is a node.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence, Set


class NodeIndex:
    """Nodes by amount. Updating one amount of n costs O(log n) comparisons, finding the best node too."""

    def __init__(self, amounts: Iterable[int]) -> None:
        self.amounts = list(amounts)
        self.total = sum(self.amounts)
        self._sorted = sorted((amount, node) for node, amount in enumerate(self.amounts))

    def put(self, node: int, amount: int) -> None:
        """Set the amount of a node."""
        old = self.amounts[node]
        if amount != old:
            del self._sorted[bisect_left(self._sorted, (old, node))]
            insort(self._sorted, (amount, node))
            self.amounts[node] = amount
            self.total += amount - old

    def best(self, wanted: int, least: int, excluded: Set[int] = frozenset()) -> int | None:
        """Return the node with the smallest amount that covers `wanted`, else the one with most, if that is `least`.

        So whoever fits on one node leaves the larger gaps to others, and whoever does not is spread over few nodes.
        """
        nodes = self._sorted
        if excluded:
            nodes = [(amount, node) for amount, node in nodes if node not in excluded]
        if not nodes:
            return None
        most = nodes[-1][0]
        if most < wanted and most < least:
            return None
        return nodes[bisect_left(nodes, (min(wanted, most), -1))][1]

    def best_of(self, nodes: Iterable[int], wanted: int, least: int, excluded: Set[int] = frozenset()) -> int | None:
        """Return of some nodes the one that `best` would."""
        fitting = [(self.amounts[node], node) for node in nodes if self.amounts[node] >= least and node not in excluded]
        covering = [one for one in fitting if one[0] >= wanted]
        if covering:
            return min(covering)[1]
        return min(((-amount, node) for amount, node in fitting), default=(0, None))[1]

    def num_places(self, size: int, enough: int, excluded: Set[int] = frozenset()) -> int:
        """Return how many tasks of `size` slots fit on nodes not excluded, or any number of at least `enough`."""
        if excluded:
            return sum(max(0, amount) // size for node, amount in enumerate(self.amounts) if node not in excluded)
        most = self._sorted[-1][0] // size if self._sorted else 0
        return most if most >= enough else sum(amount // size for amount in self.amounts if amount >= size)


class FreeSlots:
    """Slots of one kind that are free on every node, whoever may have them, and of these what each group can have.

    Two groups with 3 slots each of a node of 4: each can have 3 at first. After a task of the first took 2, the first
    can have 1 (its limit leaves no more) and the second 2 (the node leaves no more).
    """

    def __init__(self, amounts: Iterable[int], limits: Iterable[Sequence[int] | None]) -> None:
        self.amounts = list(amounts)
        self.limits = [None if limit is None else list(limit) for limit in limits]
        """What each group's own limit leaves on every node; None: it has none."""
        self._of = [
            NodeIndex(self.amounts if limit is None else map(min, self.amounts, limit)) for limit in self.limits
        ]
        # Usually there is one group, and it has no limit. Then the amounts are kept once, which is faster.
        self._only = self._of[0] if self.limits == [None] else None
        if self._only is not None:
            self.amounts = self._only.amounts

    def of(self, group: int) -> NodeIndex:
        """Return what a group can have."""
        return self._of[group]

    def add(self, group: int, node: int, num: int) -> None:
        """Give slots back that tasks of a group had, or (negative) let them have more."""
        amount = self.amounts[node] + num
        if self._only is not None:
            self._only.put(node, amount)
            return
        self.amounts[node] = amount
        own = self.limits[group]
        if own is not None:
            own[node] += num
        for index, limit in zip(self._of, self.limits, strict=True):
            index.put(node, amount if limit is None or limit[node] > amount else limit[node])
