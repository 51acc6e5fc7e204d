"""The minimums of one queue, granted in its order (`serve`); what happens between queues is `admit`'s.

`admit` tells how it works. Invariant: a refusal leaves the pool as it was, but for the guarantee that is dropped.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from pliant.policy.schedule.candidate import Candidate
from pliant.policy.schedule.place import reserve_places
from pliant.policy.schedule.pool import SlotPool
from pliant.policy.schedule.queue import QueueState

Kind = tuple[str, int, frozenset[int]]
"""What two candidates have in common that look for the same places: queue, slots per task, nodes excluded."""


@dataclass(slots=True, kw_only=True)
class QueuePass:
    """How far the service of one queue has come."""

    pool: SlotPool
    queue: QueueState
    no_room: dict[Kind, int]
    """So many tasks of a kind found no places, and later ones find no more. Emptied when a guarantee is dropped."""
    preemptible: list[Candidate]
    """Who has guaranteed tasks, in order. Whoever is preempted is taken from the end."""
    num_preemptible: int = 0
    """Guaranteed slots of those whose turn has not come, as far as they may be preempted."""
    num_granted: int = 0
    """Slots of the minimums that are granted."""
    occupied: list[tuple[Candidate, int]] = field(default_factory=list)
    """Reservations (workload, node) on slots that somebody's surplus still holds."""

    def can_afford(self, candidate: Candidate) -> bool:
        """Tell whether a minimum fits into what the queue is entitled to; what nobody may take always does."""
        kept = candidate.is_protected and candidate.num_held > 0
        return kept or self.num_granted + candidate.minimum_slots <= self.limit(candidate)

    def limit(self, candidate: Candidate) -> float:
        """Return up to how many slots of minimums a workload may be granted its own.

        What a queue is left only because of what its workloads hold is not for others of it.
        """
        limit = self.queue.budget if candidate.num_held else self.queue.newcomers
        return math.inf if limit is None else limit

    def grant(self, candidate: Candidate) -> None:
        """Note that a minimum is granted."""
        candidate.admitted = True
        self.num_granted += candidate.minimum_slots

    def num_yielding(self, candidate: Candidate) -> int:
        """Return the guaranteed slots that a workload has to yield to those before it in the order.

        Who holds its whole minimum yields only where the policy may pause it.
        """
        if not candidate.guaranteed or candidate.is_protected:
            return 0
        if candidate.num_held >= candidate.minimum and not self.queue.may_pause:
            return 0
        return sum(candidate.guaranteed.values()) * candidate.size


def begin(queue: QueueState, pool: SlotPool, no_room: dict[Kind, int]) -> QueuePass:
    """Return the pass of a queue that has not been served; what its workloads hold is guaranteed already."""
    holding = [candidate for candidate in queue.order if candidate.num_held and candidate.workload.max_tasks > 0]
    begun = QueuePass(pool=pool, queue=queue, no_room=no_room, preemptible=holding)
    begun.num_preemptible = sum(map(begun.num_yielding, holding))
    return begun


def serve(queue_pass: QueuePass) -> None:
    """Grant the minimums of a queue, in its order."""
    for candidate in queue_pass.queue.order:
        if candidate.workload.max_tasks <= 0:
            continue
        queue_pass.num_preemptible -= queue_pass.num_yielding(candidate)
        if not queue_pass.can_afford(candidate):
            _refuse(queue_pass, candidate)
        elif not candidate.num_missing:
            queue_pass.grant(candidate)
        elif not (candidate.in_backoff and not candidate.num_held):
            _find_room(queue_pass, candidate)


def _find_room(queue_pass: QueuePass, candidate: Candidate) -> None:
    """Admit a workload that lacks a part of its minimum, if there is room or it can be made; else refuse it."""
    num = candidate.num_missing
    kind = queue_pass.queue.view.name, candidate.size, candidate.excluded_nodes
    if queue_pass.no_room.get(kind, num + 1) > num:
        if has_room(queue_pass.pool, candidate):
            reserve_minimum(queue_pass, candidate)
            return
        if _preempt_for(queue_pass, candidate):
            return
        queue_pass.no_room[kind] = num
    _refuse(queue_pass, candidate)


def has_room(pool: SlotPool, candidate: Candidate) -> bool:
    """Tell whether the missing part of a minimum fits beside what is granted."""
    num = candidate.num_missing
    grantable = pool.grantable.of(candidate.group)
    return grantable.num_places(candidate.size, num, candidate.excluded_nodes) >= num


def _refuse(queue_pass: QueuePass, candidate: Candidate) -> None:
    """Refuse a workload for now: what it holds guarantees nothing any more, unless nobody may take from it."""
    if candidate.is_protected and candidate.num_held:
        candidate.minimum = candidate.num_held
        queue_pass.grant(candidate)
        return
    queue_pass.queue.refused.append(candidate)
    if candidate.guaranteed:
        _return_guarantee(queue_pass.pool, candidate)
        candidate.guaranteed = {}
        queue_pass.no_room.clear()


def _return_guarantee(pool: SlotPool, candidate: Candidate) -> None:
    for node, num in candidate.guaranteed.items():
        pool.grantable.add(candidate.group, node, num * candidate.size)


def reserve_minimum(queue_pass: QueuePass, candidate: Candidate) -> None:
    """Grant a minimum, and reserve what it lacks: where it is idle, where it is being vacated, then anywhere.

    There is room for it.
    """
    pool = queue_pass.pool
    queue_pass.grant(candidate)
    _guarantee_more(pool, candidate)
    left = candidate.num_missing
    left -= reserve_places(pool, candidate, pool.idle, left)
    left -= reserve_places(pool, candidate, pool.future_idle, left)
    if left:
        before = dict(candidate.reservations)
        reserve_places(pool, candidate, pool.grantable, left)
        if not candidate.in_backoff:
            for node, num in candidate.reservations.items():
                queue_pass.occupied += [(candidate, node)] * (num - before.get(node, 0))


def _guarantee_more(pool: SlotPool, candidate: Candidate) -> None:
    """Count a minimum on further tasks that the workload has, where there is room after all."""
    for node in sorted(candidate.held, key=lambda node: (-len(candidate.held[node]), node)):
        already = candidate.guaranteed.get(node, 0)
        room = pool.grantable.of(candidate.group).amounts[node] // candidate.size
        count = min(candidate.num_missing, len(candidate.held[node]) - already, room)
        if count > 0:
            candidate.guaranteed[node] = already + count
            pool.grantable.add(candidate.group, node, -count * candidate.size)


def _preempt_for(queue_pass: QueuePass, candidate: Candidate) -> bool:
    """Drop guarantees behind a workload, last first, until its minimum fits; then restore those that still do.

    Return False, and leave everything as it was, if that would not be enough.
    """
    size, num = candidate.size, candidate.num_missing
    grantable = queue_pass.pool.grantable.of(candidate.group)
    if grantable.total + queue_pass.num_preemptible < num * size:
        return False
    places = grantable.num_places(size, num, candidate.excluded_nodes)
    preempted: list[Candidate] = []
    while places < num and (other := _pop_last_behind(queue_pass, candidate)) is not None:
        preempted.append(other)
        before = {node: grantable.amounts[node] // size for node in other.guaranteed}
        _return_guarantee(queue_pass.pool, other)
        places += sum(
            grantable.amounts[node] // size - num_before
            for node, num_before in before.items()
            if node not in candidate.excluded_nodes
        )
    enough = places >= num
    if enough:
        reserve_minimum(queue_pass, candidate)
    for other in reversed(preempted):
        _restore_guarantee(queue_pass, other, grantable.amounts)
    return enough


def _pop_last_behind(queue_pass: QueuePass, candidate: Candidate) -> Candidate | None:
    """Remove and return the last workload with a guarantee, if it comes after `candidate` and has to yield to it."""
    if not queue_pass.preemptible or queue_pass.preemptible[-1].rank <= candidate.rank:
        return None
    num = queue_pass.num_yielding(queue_pass.preemptible[-1])
    queue_pass.num_preemptible -= num
    return queue_pass.preemptible.pop() if num else None


def _restore_guarantee(queue_pass: QueuePass, candidate: Candidate, room: Sequence[int]) -> None:
    """Guarantee again what was preempted, as far as there is room for it."""
    kept = {node: min(num, room[node] // candidate.size) for node, num in candidate.guaranteed.items()}
    candidate.guaranteed = {node: num for node, num in kept.items() if num > 0}
    for node, num in candidate.guaranteed.items():
        queue_pass.pool.grantable.add(candidate.group, node, -num * candidate.size)
    if candidate.guaranteed:
        queue_pass.preemptible.append(candidate)
        queue_pass.num_preemptible += queue_pass.num_yielding(candidate)
