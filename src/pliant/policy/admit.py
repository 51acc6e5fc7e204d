"""Pass 1: who gets its minimum, and on which nodes (`admit`).

At first everybody who has tasks *sits*: its minimum rests on tasks that it has, as far as they go. In order, those
whose seats fall short look for room. If there is none, sitters that come later are unseated, last first; those that
turn out not to be in the way sit down again. Unless the policy may pause, only those are unseated who lack a part of
their minimum. Surplus is no obstacle here: room is what minimums leave, whoever holds it now.

Invariant: on every node, seats and claims together never exceed the slots. Knows nothing of shares.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pliant.policy.place import Board, Stake, Tier, emptiest_first


@dataclass(slots=True, kw_only=True)
class Hall:
    """Who sits, and what is known not to fit."""

    board: Board
    may_pause: bool
    sitting: list[Stake]
    """In order; those who lose all their seats are dropped from its end."""
    num_behind: int = 0
    """Slots under seats that may still be taken from sitters whose turn has not come."""
    borrowed: list[tuple[Stake, int]] = field(default_factory=list)
    """Claims on slots that somebody else's surplus still holds."""
    too_many: dict[int, int] = field(default_factory=dict)
    """By slots per task: so many tasks found no room; later in the order there is no more."""


def admit(order: Sequence[Stake], board: Board, *, may_pause: bool) -> list[tuple[Stake, int]]:
    """Grant minimums in order; return the claims (workload, node) for which somebody's surplus has to go.

    Who is not admitted keeps nothing: all its tasks are told to leave.
    """
    for stake in order:
        _dismiss(stake, board, keep=stake.view.max_tasks)
    wanting = [stake for stake in order if stake.view.max_tasks > 0]
    sitters = [stake for stake in wanting if stake.num_held]
    _seat_all(sitters, board, wide=any(s.size > 1 for s in wanting if s.num_held < s.view.min_tasks))
    hall = Hall(board=board, may_pause=may_pause, sitting=sitters)
    hall.num_behind = sum(_num_yielding(hall, stake) for stake in sitters)
    for stake in wanting:
        hall.num_behind -= _num_yielding(hall, stake)
        if not stake.num_unseated:
            stake.admitted = True
        elif not (stake.backs_off and not stake.num_held):
            _look_for_room(hall, stake)
    for stake in order:
        if not stake.admitted:
            _dismiss(stake, board, keep=0)
        elif stake.backs_off:
            _lend(stake, board)
    return hall.borrowed


def _dismiss(stake: Stake, board: Board, *, keep: int) -> None:
    if stake.num_held <= keep:
        return
    for node in emptiest_first(stake):
        while stake.num_held > keep and node in stake.held:
            board.release(stake, node)


def _lend(stake: Stake, board: Board) -> None:
    """Give up claims for now, to surplus only: `room` stays taken, so that no other minimum settles there."""
    for node, num in stake.claims.items():
        board.soon.put(node, board.soon.amounts[node] + num * stake.size)
    stake.claims = {}
    stake.awaits = set()
    stake.num_claimed = 0


def _seat_all(sitters: Sequence[Stake], board: Board, *, wide: bool) -> None:
    """Choose the held tasks that minimums rest on: most on one node, or, if somebody needs wide room, crowded nodes."""
    room = list(board.room.amounts)
    for stake in sitters:
        left = stake.view.min_tasks
        nodes = list(stake.held)
        if len(nodes) > 1:
            nodes.sort(key=lambda node: (room[node] if wide else 0, -len(stake.held[node]), node))
        for node in nodes:
            count = min(left, len(stake.held[node]))
            stake.seats[node] = count
            room[node] -= count * stake.size
            left -= count
            if not left:
                break
    board.room = Tier(room)


def _look_for_room(hall: Hall, stake: Stake) -> None:
    """Admit a workload whose seats fall short, if there is room or it can be made; else it gives its seats up."""
    num = stake.num_unseated
    if hall.too_many.get(stake.size, num + 1) > num:
        if hall.board.room.places(stake.size, num) >= num:
            _sit_down(hall, stake)
            return
        if _make_room(hall, stake):
            return
        hall.too_many[stake.size] = num
    if stake.seats:
        _move_seats(hall.board.room, stake, -1)
        stake.seats = {}
        hall.too_many.clear()


def _sit_down(hall: Hall, stake: Stake) -> None:
    """Claim places for the part of the minimum without seats: free ones, ones being vacated, any."""
    board = hall.board
    stake.admitted = True
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
        room = board.room.amounts[node]
        count = min(stake.num_unseated, len(stake.held[node]) - seated, room // stake.size)
        if count > 0:
            stake.seats[node] = seated + count
            board.room.put(node, room - count * stake.size)


def _make_room(hall: Hall, stake: Stake) -> bool:
    """Unseat sitters behind `stake`, last first, until its minimum fits; seat it and all who still find their place.

    Return False, and leave everything as it was, if that would not be enough.
    """
    room, size, num = hall.board.room, stake.size, stake.num_unseated
    if room.total + hall.num_behind < num * size:
        return False
    places = room.places(size, num)
    unseated: list[Stake] = []
    while places < num and (other := _last_behind(hall, stake)) is not None:
        unseated.append(other)
        hall.num_behind -= _num_yielding(hall, other)
        for node, seats in other.seats.items():
            amount = room.amounts[node]
            room.put(node, amount + seats * other.size)
            places += room.amounts[node] // size - amount // size
    enough = places >= num
    if enough:
        _sit_down(hall, stake)
    for other in reversed(unseated):
        kept = {node: min(seats, room.amounts[node] // other.size) for node, seats in other.seats.items()}
        other.seats = {node: seats for node, seats in kept.items() if seats}
        _move_seats(room, other, 1)
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
    if hall.may_pause or stake.num_held < stake.view.min_tasks:
        return sum(stake.seats.values()) * stake.size
    return 0


def _move_seats(room: Tier, stake: Stake, sign: int) -> None:
    """Take the seats of a workload out of the room (1), or give them back to it (-1)."""
    for node, seats in stake.seats.items():
        room.put(node, room.amounts[node] - sign * seats * stake.size)
