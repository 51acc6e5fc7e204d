"""Pass 2, on the nodes: minimums and shares become claims, and those who hold too much are told to give.

Nothing is taken unless somebody takes its place: a task is told to leave only when its slots complete a place for a
workload that is below its share (or lacks its minimum). So every decision brings somebody nearer to its share and moves
nobody who is at or below it away from it, except for minimums: two workloads cannot trade slots in turn.

Knows nothing of how shares come about.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush

from pliant.policy.schedule.place import Board, Stake, emptiest_first


class Givers:
    """Workloads that hold more than their share, in the order in which they give.

    Those whose cool-down is over come first, then those last in the policy's order.
    """

    def __init__(self, board: Board, order: Sequence[Stake]) -> None:
        self._board = board
        giving = sorted((s for s in order if s.excess > 0 and s.admitted), key=lambda s: (s.cools_down, -s.rank))
        self._paths = deque((stake, emptiest_first(stake)) for stake in giving)
        self._on_node: dict[int, list[Stake]] = {}
        for stake in giving:
            for node in stake.held:
                self._on_node.setdefault(node, []).append(stake)

    def vacate(self, taker: Stake, *, for_minimum: bool) -> int | None:
        """Make a place for a task of `taker` free in time, out of excess alone; return the node, or None.

        For a minimum cool-downs do not count, and the place must not be one that another minimum rests on.
        """
        while self._paths and self._paths[0][0].excess <= 0:
            self._paths.popleft()
        room = self._board.room.of(taker).amounts if for_minimum else None
        for giver, path in self._paths:
            if giver.cools_down and not for_minimum:
                return None
            while path and path[0] not in giver.held:
                path.pop(0)
            if giver.excess <= 0:
                continue
            for node in path:
                if room is not None and room[node] < taker.size:
                    continue
                if node in giver.held and node not in taker.avoid and self._can_vacate(node, taker, for_minimum):
                    self._release(node, taker, for_minimum, giver)
                    return node
        return None

    def _can_vacate(self, node: int, taker: Stake, for_minimum: bool) -> bool:
        size = taker.size
        slots = self._board.soon.amounts[node]
        limit = self._board.soon.limits[taker.area]
        own = size if limit is None else limit[node]
        for giver in self._on_node[node]:
            if slots >= size and own >= size:
                break
            given = max(0, _spare(giver, node, for_minimum)) * giver.size
            slots += given
            own += given * (giver.area == taker.area)
        return slots >= size and own >= size

    def _release(self, node: int, taker: Stake, for_minimum: bool, first: Stake) -> None:
        givers = (first, *self._on_node[node])
        for giver in givers:
            if giver.area == taker.area:
                while _over_limit(self._board, taker, node, taker.size) and _spare(giver, node, for_minimum) > 0:
                    self._board.release(giver, node)
        for giver in givers:
            while self._board.soon.amounts[node] < taker.size and _spare(giver, node, for_minimum) > 0:
                self._board.release(giver, node)


def _over_limit(board: Board, taker: Stake, node: int, least: int) -> bool:
    """Tell whether the limit of a workload's group leaves less than this on a node."""
    limit = board.soon.limits[taker.area]
    return limit is not None and limit[node] < least


def _spare(giver: Stake, node: int, for_minimum: bool) -> int:
    """Return how many tasks a workload can give on a node."""
    if giver.cools_down and not for_minimum:
        return 0
    here = len(giver.held.get(node, ())) - (giver.seats.get(node, 0) if for_minimum else 0)
    return min(giver.excess, here)


def settle_minimums(
    board: Board, order: Sequence[Stake], givers: Givers, borrowed: Iterable[tuple[Stake, int]]
) -> None:
    """Find for every borrowed place slots that are somebody's excess; failing that, take surplus where it stands."""
    holders: dict[int, list[Stake]] = {}
    for stake, node in borrowed:
        if board.soon.of(stake).amounts[node] >= 0:
            continue
        board.unclaim(stake, node)
        better = _vacated(board, stake)
        if better is None:
            better = givers.vacate(stake, for_minimum=True)
        board.claim(stake, node if better is None else better, 1)
        if better is None:
            holders = holders or _holders(order)
            _take_surplus(board, holders[node], node, stake)
    for stake in order:
        _drop_spare_claims(board, stake)


def _drop_spare_claims(board: Board, stake: Stake) -> None:
    """Take claims back from a workload that was to move for others' minimums and in the end need not."""
    for node in list(stake.claims):
        while node in stake.claims and stake.target > stake.share:
            board.unclaim(stake, node)


def _vacated(board: Board, stake: Stake) -> int | None:
    """Return a node with a place that somebody leaves anyhow and no other minimum counts on."""
    node = board.soon.of(stake).best(stake.size, stake.size, stake.avoid)
    return node if node is not None and board.room.of(stake).amounts[node] >= stake.size else None


def _holders(order: Sequence[Stake]) -> dict[int, list[Stake]]:
    """Return who has tasks on each node, last in order first."""
    holders: dict[int, list[Stake]] = {}
    for stake in reversed(order):
        for node in stake.held:
            holders.setdefault(node, []).append(stake)
    return holders


def _take_surplus(board: Board, holders: Sequence[Stake], node: int, taker: Stake) -> None:
    """Release tasks on a node that no minimum rests on until its claims can be served."""
    for stake in holders:
        if stake.area == taker.area:
            while _over_limit(board, taker, node, 0) and _num_loose(stake, node) > 0:
                board.release(stake, node)
    for stake in holders:
        while board.soon.amounts[node] < 0 and _num_loose(stake, node) > 0:
            board.release(stake, node)


def _num_loose(stake: Stake, node: int) -> int:
    """Return how many tasks on a node no minimum rests on."""
    return len(stake.held.get(node, ())) - stake.seats.get(node, 0)


def grow(board: Board, order: Sequence[Stake], givers: Givers) -> bool:
    """Bring workloads up to their shares, large tasks first since they are hardest to place; tell if all got there."""
    complete = True
    hopeless: set[tuple[int, int]] = set()
    growing = [stake for stake in order if stake.can_grow and stake.target < stake.share]
    for stake in sorted(growing, key=lambda stake: -stake.size):
        missing = stake.share - stake.target
        missing -= board.seek(stake, board.now, missing)
        missing -= board.seek(stake, board.soon, missing)
        while missing and (stake.area, stake.size) not in hopeless:
            node = givers.vacate(stake, for_minimum=False)
            if node is None:
                if not stake.avoid:
                    hopeless.add((stake.area, stake.size))
                break
            board.claim(stake, node, 1)
            missing -= 1
        complete = complete and not missing
    return complete


def use_up(board: Board, order: Sequence[Stake], urgency: Callable[[Stake], tuple[int, ...]]) -> None:
    """Give slots that nobody deserving can use to whoever can, least urgency first, one task at a time."""
    largest = max(board.soon.amounts, default=0)
    if largest <= 0:
        return
    heap = [(urgency(stake), stake.rank) for stake in order if stake.can_grow and stake.target < stake.view.max_tasks]
    heapify(heap)
    while heap and largest > 0:
        stake = order[heappop(heap)[1]]
        if stake.size > largest:
            continue
        if board.seek(stake, board.now, 1) or board.seek(stake, board.soon, 1):
            if stake.target < stake.view.max_tasks:
                heappush(heap, (urgency(stake), stake.rank))
        else:
            largest = max(board.soon.amounts)
