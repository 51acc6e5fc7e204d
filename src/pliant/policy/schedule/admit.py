"""Pass 1: who gets its minimum, and on which nodes (`admit`).

At first everybody who has tasks *sits*: its minimum rests on tasks that it has, as far as they go. In order, those
whose seats fall short look for room. If there is none, sitters of their own queue that come later are unseated, last
first; those that turn out not to be in the way sit down again. Unless the policy may pause, only those are unseated who
lack a part of their minimum. Surplus is no obstacle here: room is what minimums leave, whoever holds it now.

Where several queues want slots, a queue grants minimums only within what it is entitled to. A queue that cannot use
that, since the minimums of those who wait do not fit into it, leaves it to the others (`_hand_on`).

Invariant: on every node, seats and claims together never exceed the slots. Knows nothing of shares.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from pliant.core.job import JobId
from pliant.policy.schedule.line import Line, assess
from pliant.policy.schedule.place import Board, Stake, Tally, Tier, emptiest_first

MAX_RECONSIDERED: Final = 4
"""A decision is begun anew so many times at most, however many queues there are."""


@dataclass(slots=True, kw_only=True)
class Hall:
    """Who of one queue sits, and what is known not to fit."""

    board: Board
    line: Line
    may_pause: bool
    sitting: list[Stake]
    """In order; those who lose all their seats are dropped from its end."""
    num_behind: int = 0
    """Slots under seats that may still be taken from sitters whose turn has not come."""
    spent: int = 0
    """Slots of the minimums that are granted."""
    borrowed: list[tuple[Stake, int]] = field(default_factory=list)
    """Claims on slots that somebody else's surplus still holds."""
    too_many: dict[tuple[int, frozenset[int]], int] = field(default_factory=dict)
    """By slots per task and nodes to avoid: so many tasks found no room; later in the order there is no more."""

    def affords(self, stake: Stake) -> bool:
        """Tell whether the minimum of a workload fits into what the queue is entitled to."""
        kept = stake.keeps and stake.num_held
        return bool(kept) or self.spent + stake.low * stake.size <= self.limit(stake)

    def limit(self, stake: Stake) -> float:
        """Return up to how many slots of minimums a workload may be granted its own.

        What a queue is left only because of what its workloads hold is not for others of it.
        """
        limit = self.line.budget if stake.num_held else self.line.newcomers
        return math.inf if limit is None else limit

    def grant(self, stake: Stake) -> None:
        """Note that a minimum is granted."""
        stake.admitted = True
        self.spent += stake.low * stake.size


def admit(
    lines: Sequence[Line], board: Board, entitle: Callable[[], None], reconsidered: set[JobId]
) -> list[tuple[Stake, int]] | None:
    """Grant minimums in order; return the claims (workload, node) for which somebody's surplus has to go.

    Who is not admitted keeps nothing: all its tasks are told to leave.

    Return None if slots that another queue leaves would have been enough for a workload whose turn was before that of
    others who have them now: all is to be decided anew within the budgets that the lines have by now. Otherwise the
    others would start, and have to leave again.

    Args:
        lines: the queues, in the order in which they look for room.
        board: nothing is decided on it yet.
        entitle: sets the budgets of the lines anew, from what they want.
        reconsidered: for whom all was decided anew before; who is next is added.
    """
    everybody = [stake for line in lines for stake in line.order]
    for stake in everybody:
        _dismiss(stake, board, keep=stake.view.max_tasks)
    wanting = [stake for stake in everybody if stake.view.max_tasks > 0]
    sitters = [stake for stake in wanting if stake.num_held]
    _seat_all(sitters, board, wide=any(s.size > 1 for s in wanting if s.num_held < s.low))
    halls = []
    for line in lines:
        seated = [stake for stake in line.order if stake.num_held and stake.view.max_tasks > 0]
        hall = Hall(board=board, line=line, may_pause=line.may_pause, sitting=seated)
        hall.num_behind = sum(_num_yielding(hall, stake) for stake in hall.sitting)
        halls.append(hall)
        assess(line, board.num_slots_of([line.area]))
    entitle()
    for hall in halls:
        hall.line.deserved = hall.line.budget
        if hall.line.given is not None:
            hall.line.budget, hall.line.newcomers = hall.line.given
    for hall in halls:
        _serve(hall, halls)
    if len(halls) > 1 and not _hand_on(halls, entitle, reconsidered):
        return None
    for stake in everybody:
        if not stake.admitted:
            _dismiss(stake, board, keep=0)
        elif stake.backs_off:
            _lend(stake, board)
    return [claim for hall in halls for claim in hall.borrowed]


def _serve(hall: Hall, halls: Sequence[Hall]) -> None:
    """Grant the minimums of one queue, in its order."""
    for stake in hall.line.order:
        if stake.view.max_tasks <= 0:
            continue
        hall.num_behind -= _num_yielding(hall, stake)
        if not hall.affords(stake):
            _give_up(hall, stake, halls)
        elif not stake.num_unseated:
            hall.grant(stake)
        elif not (stake.backs_off and not stake.num_held):
            _look_for_room(hall, stake, halls)


def _hand_on(halls: Sequence[Hall], entitle: Callable[[], None], reconsidered: set[JobId]) -> bool:
    """Let queues have what others are entitled to and cannot use, until nobody who waits can use what is left.

    Return False if somebody would have had its minimum out of that, had it been known in time.
    """

    def serve_again(served: Sequence[Hall]) -> bool:
        for hall in halls:
            hall.line.floor = hall.spent
        entitle()
        return all(_serve_refused(hall, reconsidered) for hall in served)

    while stuck := [hall.line for hall in halls if _cannot_use(hall.line)]:
        stuck[-1].wanted = stuck[-1].usable
        if not serve_again(halls):
            return False
    for hall in halls:
        if not hall.line.refused:
            continue
        for other in halls:
            other.line.wanted = other.line.usable
        hall.line.wanted = hall.line.demand
        if not serve_again([hall]):
            return False
    for hall in halls:
        hall.line.wanted = hall.line.usable
    return serve_again(())


def _cannot_use(line: Line) -> bool:
    usable = line.usable
    return line.wanted > usable and (line.budget is None or usable < line.budget)


def _serve_refused(hall: Hall, reconsidered: set[JobId]) -> bool:
    """Grant minimums that fit by now; return False if one would, but for those that were served after it."""
    waiting = set(hall.line.refused)
    ahead = 0
    for stake in hall.line.order:
        slots, num = stake.low * stake.size, stake.num_unseated
        if stake in waiting and not hall.affords(stake):
            if ahead + slots <= hall.limit(stake) and _reconsider(stake, reconsidered):
                return False
        elif stake in waiting and hall.board.room.of(stake).places(stake.size, num, stake.avoid) >= num:
            _sit_down(hall, stake)
        ahead += slots if stake.admitted else 0
    hall.line.refused = [stake for stake in hall.line.refused if not stake.admitted]
    return True


def _reconsider(stake: Stake, reconsidered: set[JobId]) -> bool:
    if stake.view.id in reconsidered or len(reconsidered) >= MAX_RECONSIDERED:
        return False
    reconsidered.add(stake.view.id)
    return True


def admit_to_idle(lines: Sequence[Line], board: Board) -> None:
    """Grant minimums on slots that would stay idle: nothing is under way, nobody grows, and still they are free.

    Where nodes lie so that a queue cannot have what it is entitled to, others may have it beyond what they are.
    """
    everybody = [stake for line in lines for stake in line.order]
    waits = any(stake.backs_off and stake.target < stake.view.max_tasks for stake in everybody)
    if waits or any(stake.leave or stake.claims for stake in everybody) or board.now.amounts != board.soon.amounts:
        return
    for line in lines:
        for stake in line.refused:
            if board.now.of(stake).places(stake.size, stake.low, stake.avoid) >= stake.low:
                stake.admitted, stake.share = True, stake.low
                board.seek(stake, board.now, stake.low)


def _dismiss(stake: Stake, board: Board, *, keep: int) -> None:
    if stake.num_held <= keep:
        return
    for node in emptiest_first(stake):
        while stake.num_held > keep and node in stake.held:
            board.release(stake, node)


def _lend(stake: Stake, board: Board) -> None:
    """Give up claims for now, to surplus only: `room` stays taken, so that no other minimum settles there."""
    for node, num in stake.claims.items():
        board.soon.add(stake.area, node, num * stake.size)
    stake.claims = {}
    stake.awaits = set()
    stake.num_claimed = 0


def _seat_all(sitters: Sequence[Stake], board: Board, *, wide: bool) -> None:
    """Choose the held tasks that minimums rest on: most on one node, or, if somebody needs wide room, crowded nodes."""
    room = list(board.room.amounts)
    limits = [None if limit is None else list(limit) for limit in board.room.limits]
    for stake in sitters:
        left = stake.low
        limit = limits[stake.area]
        nodes = list(stake.held)
        if len(nodes) > 1:
            nodes.sort(key=lambda node: (room[node] if wide else 0, -len(stake.held[node]), node))
        for node in nodes:
            count = min(left, len(stake.held[node]))
            stake.seats[node] = count
            room[node] -= count * stake.size
            if limit is not None:
                limit[node] -= count * stake.size
            left -= count
            if not left:
                break
    board.room = Tally(room, limits)


def _look_for_room(hall: Hall, stake: Stake, halls: Sequence[Hall]) -> None:
    """Admit a workload whose seats fall short, if there is room or it can be made; else it gives its seats up."""
    num, kind = stake.num_unseated, (stake.size, stake.avoid)
    if hall.too_many.get(kind, num + 1) > num:
        if hall.board.room.of(stake).places(stake.size, num, stake.avoid) >= num:
            _sit_down(hall, stake)
            return
        if _make_room(hall, stake):
            return
        hall.too_many[kind] = num
    _give_up(hall, stake, halls)


def _give_up(hall: Hall, stake: Stake, halls: Sequence[Hall]) -> None:
    """Refuse a workload for now: it gives its seats up, unless nobody may take from it."""
    if stake.keeps and stake.num_held:
        stake.low = stake.num_held
        hall.grant(stake)
        return
    hall.line.refused.append(stake)
    if stake.seats:
        _move_seats(hall.board, stake, -1)
        stake.seats = {}
        for other in halls:
            other.too_many.clear()


def _sit_down(hall: Hall, stake: Stake) -> None:
    """Claim places for the part of the minimum without seats: free ones, ones being vacated, any."""
    board = hall.board
    hall.grant(stake)
    _take_own_seats(board, stake)
    left = stake.num_unseated
    left -= board.seek(stake, board.now, left)
    left -= board.seek(stake, board.soon, left)
    if left:
        before = dict(stake.claims)
        board.seek(stake, board.room, left)
        if not stake.backs_off:
            for node, num in stake.claims.items():
                hall.borrowed += [(stake, node)] * (num - before.get(node, 0))


def _take_own_seats(board: Board, stake: Stake) -> None:
    """Seat further tasks that the workload has where there is room after all."""
    for node in sorted(stake.held, key=lambda node: (-len(stake.held[node]), node)):
        seated = stake.seats.get(node, 0)
        room = board.room.of(stake).amounts[node]
        count = min(stake.num_unseated, len(stake.held[node]) - seated, room // stake.size)
        if count > 0:
            stake.seats[node] = seated + count
            board.room.add(stake.area, node, -count * stake.size)


def _make_room(hall: Hall, stake: Stake) -> bool:
    """Unseat sitters behind `stake`, last first, until its minimum fits; seat it and all who still find their place.

    Return False, and leave everything as it was, if that would not be enough.
    """
    board, size, num = hall.board, stake.size, stake.num_unseated
    room: Tier = board.room.of(stake)
    if room.total + hall.num_behind < num * size:
        return False
    places = room.places(size, num, stake.avoid)
    unseated: list[Stake] = []
    while places < num and (other := _last_behind(hall, stake)) is not None:
        unseated.append(other)
        hall.num_behind -= _num_yielding(hall, other)
        for node, seats in other.seats.items():
            amount = room.amounts[node]
            board.room.add(other.area, node, seats * other.size)
            if node not in stake.avoid:
                places += room.amounts[node] // size - amount // size
    enough = places >= num
    if enough:
        _sit_down(hall, stake)
    for other in reversed(unseated):
        kept = {node: min(seats, room.amounts[node] // other.size) for node, seats in other.seats.items()}
        other.seats = {node: seats for node, seats in kept.items() if seats > 0}
        _move_seats(board, other, 1)
        if other.seats:
            hall.sitting.append(other)
            hall.num_behind += _num_yielding(hall, other)
    return enough


def _last_behind(hall: Hall, stake: Stake) -> Stake | None:
    """Remove and return the last sitter, if it comes after `stake` and may be unseated for it."""
    if not hall.sitting or hall.sitting[-1].rank <= stake.rank:
        return None
    return hall.sitting.pop() if _num_yielding(hall, hall.sitting[-1]) else None


def _num_yielding(hall: Hall, stake: Stake) -> int:
    """Return the slots under the seats of a workload that it has to yield to those before it."""
    if (hall.may_pause or stake.num_held < stake.low) and not stake.keeps:
        return sum(stake.seats.values()) * stake.size
    return 0


def _move_seats(board: Board, stake: Stake, sign: int) -> None:
    """Take the seats of a workload out of the room (1), or give them back to it (-1)."""
    for node, seats in stake.seats.items():
        board.room.add(stake.area, node, -sign * seats * stake.size)
