"""Which machines of a training do not reach each other, who is left out for that, and until when. Pure.

Theory of operation. Every member of a generation talks to every other one, so a training can only be on machines that
all reach each other. Two that do not, though both reach the server, are a *broken path*. Members are left out so that
no two machines of a broken path remain, and that as many members remain as can (`leave_out`). The path is remembered
for the job: until its time is over no task of it is started where that would join the two again (`avoided`). Then it is
tried again; if it fails again, the time is twice as long. Example, a training with two tasks on each of gpu1 to gpu4:

       0 s   a firewall comes between gpu3 and gpu4
       8 s   both ends say so, and all leave gpu4; its path to gpu3 is avoided until 28 s
      28 s   a task is started on gpu4 again, and does not reach gpu3
      36 s   it leaves; the path is avoided for 40 s

Laws: of those that remain all reach each other; nobody who was left out could have remained beside them; one who holds
a state remains if anybody does; the same members and paths give the same answer.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

from pliant.core.job import NodeId, TaskId

FIRST_S: Final = 20.0
"""So long a path is avoided when it is found broken for the first time."""
MOST_S: Final = 300.0
FORGET_S: Final = 600.0
"""A path that was not found broken for so long since it was tried again is like a new one."""
MAX_KEPT: Final = 256
MAX_EXACT: Final = 12
"""With broken paths between more machines than these, not all choices are compared."""

Ends = tuple[NodeId, NodeId]
"""Two machines, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathMember:
    """A task of the training. Those come first that are to remain rather: by rank, then those that wait to join."""

    id: TaskId
    node_id: NodeId
    holds_state: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenPath:
    """Two machines that do not reach each other."""

    ends: Ends
    left_out: NodeId
    """The one of them that the training did without."""
    wait_s: float
    until: float
    """It is avoided until then."""
    is_over: bool = False
    """That time is over: it is tried again."""

    @property
    def other(self) -> NodeId:
        """The one that was not left out."""
        return self.ends[0] if self.left_out == self.ends[1] else self.ends[1]


def ends_of(one: NodeId, other: NodeId) -> Ends:
    """Return the ends of a path, whoever is named first."""
    return (one, other) if one < other else (other, one)


# who remains


def leave_out(
    members: Sequence[PathMember], broken: Collection[Ends], suspected: Collection[Ends] = ()
) -> frozenset[TaskId]:
    """Return who has to leave so that all others reach each other: all members of some machines.

    As few as can be; of equal choices the one that keeps more who hold a state, then whoever comes first. Among more
    than `MAX_EXACT` machines with broken paths those are left out first that have most of them.

    Args:
        members: all of the training.
        broken: paths that do not lead from machine to machine.
        suspected: those that perhaps do not, either. Nobody leaves for their sake alone; but if one machine does not
            reach two others, and this is certain only of the first one, it is better left out than that one.
    """
    present = dict.fromkeys(member.node_id for member in members)
    certain, every = _within(present, broken), _within(present, {*broken, *suspected})
    if not certain:
        return frozenset()
    affected = [node for node in present if node in every]
    find = _best if len(affected) <= MAX_EXACT else _greedy
    kept = find(affected, every, _Scale(members, affected))
    for node in affected:
        if kept.isdisjoint(certain.get(node, ())):
            kept |= {node}
    return frozenset(member.id for member in members if member.node_id in every and member.node_id not in kept)


Neighbours = Mapping[NodeId, Set[NodeId]]
"""Machines, each with those that it does not reach."""


def _within(present: Collection[NodeId], paths: Iterable[Ends]) -> Neighbours:
    found: dict[NodeId, set[NodeId]] = {}
    for one, other in paths:
        if one in present and other in present and one != other:
            found.setdefault(one, set()).add(other)
            found.setdefault(other, set()).add(one)
    return found


Weight = tuple[bool, int, int, tuple[bool, ...]]


class _Scale:
    """How much a choice of machines is worth: a state above all, then members, then states, then who comes first."""

    def __init__(self, members: Sequence[PathMember], affected: Sequence[NodeId]) -> None:
        self._order = affected
        self._num = Counter(member.node_id for member in members)
        self.states = Counter(member.node_id for member in members if member.holds_state)
        self.has_state_elsewhere = bool(self.states.keys() - set(affected))

    def __call__(self, kept: Collection[NodeId]) -> Weight:
        states = sum(self.states[node] for node in kept)
        first = tuple(node in kept for node in self._order)
        return (self.has_state_elsewhere or states > 0, sum(self._num[node] for node in kept), states, first)


def _best(affected: Sequence[NodeId], apart: Neighbours, weigh: _Scale) -> frozenset[NodeId]:
    """Compare all choices."""
    choices = (frozenset(some) for num in range(1, len(affected) + 1) for some in combinations(affected, num))
    return max((kept for kept in choices if all(kept.isdisjoint(apart[node]) for node in kept)), key=weigh)


def _greedy(affected: Sequence[NodeId], apart: Neighbours, weigh: _Scale) -> frozenset[NodeId]:
    """Begin with the machine that must remain for its state, if there is one; then take those with fewest paths."""
    order = sorted(affected, key=lambda node: len(apart[node]))  # stable: of equal ones the first
    ahead = [] if weigh.has_state_elsewhere else [node for node in order if weigh.states[node]][:1]
    kept: set[NodeId] = set()
    for node in (*ahead, *order):
        if kept.isdisjoint(apart[node]):
            kept.add(node)
    return frozenset(kept)


# what is remembered


def remember(
    known: Sequence[BrokenPath], found: Collection[Ends], left_out: Collection[NodeId], now: float
) -> tuple[BrokenPath, ...]:
    """Return the paths with those that were found broken now; who is left out of each, or was last, is kept with it."""
    before = {path.ends: path for path in known if not path.is_over or now - path.until < FORGET_S}
    for ends in sorted(found):
        last = before.pop(ends, None)
        wait_s = FIRST_S if last is None else min(MOST_S, 2 * last.wait_s if last.is_over else last.wait_s)
        out = next((node for node in reversed(ends) if node in left_out), ends[1])
        before[ends] = BrokenPath(ends=ends, left_out=out, wait_s=wait_s, until=now + wait_s)
    return tuple(before.values())[-MAX_KEPT:]


def try_again(known: Sequence[BrokenPath], now: float) -> tuple[BrokenPath, ...]:
    """Return the paths; those whose time is over are not avoided any more."""
    return tuple(replace(path, is_over=True) if path.until <= now else path for path in known)


def next_trial(known: Sequence[BrokenPath]) -> float | None:
    """Return when the next path is tried again; None if none is avoided."""
    return min((path.until for path in known if not path.is_over), default=None)


def avoided(known: Sequence[BrokenPath], held: Collection[NodeId]) -> Mapping[NodeId, NodeId]:
    """Return the machines where no task is to be started, each with one that it does not reach.

    Those that a machine where the training is does not reach; of a path with neither end there, the one that was left
    out last, so that a training that begins anew does not begin on both.
    """
    paths = [path for path in known if not path.is_over]
    found: dict[NodeId, NodeId] = {}
    for path in paths:
        both = (path.ends, path.ends[::-1])
        found |= {other: one for one, other in both if one in held and other not in held}
    for path in paths:
        if not any(node in held or node in found for node in path.ends):
            found[path.left_out] = path.other
    return found
