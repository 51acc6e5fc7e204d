"""Why every workload has what it has: one English sentence each, of numbers, ratios and the names of others.

A sentence tells of the decision (targets, shares, order), not of how far its execution has come, with one exception: a
workload that has no task yet is told what it starts with and who makes room for the rest. Knows no times.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pliant.core.job import JobId, NodeId
from pliant.core.plan import PolicyName, QueueRules
from pliant.core.workload import Workload
from pliant.policy.schedule.candidate import Candidate
from pliant.policy.schedule.fit import misfit
from pliant.policy.schedule.pool import SlotPool
from pliant.policy.schedule.queue import QueueState

NUM_NAMED = 3
"""More names than this are cut short."""
_BY_LOAD: Final = "endpoint"
"""The kind of workload whose maximum is what its load needs at the moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    """What several sentences have in common, worked out once."""

    view: QueueRules
    deserved: int | None
    """Slots that the queue is entitled to; None if nobody else wants any."""
    others: Sequence[QueueState]
    """The other queues that want slots of the same nodes."""
    num_slots: int
    """Of the queue's group."""
    slots: Sequence[int]
    """Of these, those of every node."""
    node_ids: Sequence[NodeId]
    labels: Mapping[JobId, str]
    alone: bool
    """Nobody else wants slots."""
    sharing: Sequence[Candidate]
    """Those whose shares are in the ratio of their priorities, oldest first."""
    num_shared: int
    """Slots that they share."""
    weight: int
    """Sum of their priorities."""
    bounded: Sequence[Candidate]
    """The other admitted ones: their minimum or maximum settles their share."""
    complete: bool
    """All who were to grow found their places."""
    cooling: Sequence[Candidate]
    """Those who keep more than their share for now."""
    leaving: Mapping[NodeId, Sequence[Candidate]]
    """Who has leaving tasks on a node."""


def explain(
    queue: QueueState, *, others: Sequence[QueueState], everybody: Sequence[Candidate], pool: SlotPool, complete: bool
) -> dict[JobId, str]:
    """Return one sentence for every workload of a queue about which all is decided.

    Args:
        queue: its workloads are explained.
        others: the other queues that want slots of the same nodes.
        everybody: the workloads of all these queues.
        pool: their nodes.
        complete: whether all who were to grow found their places.
    """
    context = _context(queue, others, everybody, pool, complete)
    reasons = {}
    ahead: list[Candidate] = []
    guaranteed = 0
    between_queues = _between_queues(queue, others)
    for candidate in queue.order:
        if candidate.admitted:
            reason = _explain_granted(context, candidate, ahead)
            ahead.append(candidate)
            guaranteed += candidate.minimum * candidate.size
        else:
            reason = _waiting(context, candidate, ahead, guaranteed)
        if candidate.is_protected and candidate.num_held and candidate.admitted:
            reason += f"; nobody takes them away: queue {queue.view.name} has no preemption"
        if candidate.workload.max_tasks > 0:
            reason += between_queues
        reasons[candidate.workload.id] = reason + _kept_off(context, candidate.workload)
    return reasons


def _between_queues(queue: QueueState, others: Sequence[QueueState]) -> str:
    """Return what the queue has beside others, to follow on a sentence; nothing if nobody else wants slots."""
    if queue.deserved is None or not others:
        return ""
    queues = [queue, *others]
    shown = queues[: NUM_NAMED + 1]
    has = ", ".join(f"{queue.view.name} {queue.deserved}" for queue in shown) + ", …" * (len(queues) > len(shown))
    weights = ":".join(str(queue.view.weight) for queue in shown) + ":…" * (len(queues) > len(shown))
    return f"; queues share by weights {weights}: {has}"


def _kept_off(context: _Context, workload: Workload) -> str:
    """Return where no task of a workload is started and why, to follow on a sentence; nothing if it may be anywhere."""
    if not workload.kept_off:
        return ""
    words = []
    if lost := [node_id for node_id in context.node_ids if node_id in workload.excluded]:
        words.append(f"; kept off {' and '.join(lost)}, where its tasks were lost")
    for node_id, other in workload.apart[:NUM_NAMED]:
        one, two = sorted((node_id, other))
        words.append(
            f"; kept off {node_id} for now: {one} and {two} do not reach each other (both reach the server), so see "
            f"that no firewall is between them"
        )
    return "".join(words)


def _context(
    queue: QueueState, others: Sequence[QueueState], everybody: Sequence[Candidate], pool: SlotPool, complete: bool
) -> _Context:
    counts = Counter(candidate.workload.name for candidate in everybody)
    labels = {w.id: w.name if counts[w.name] == 1 else f"{w.name} ({w.id})" for w in (c.workload for c in everybody)}
    admitted = [candidate for candidate in queue.order if candidate.admitted]
    sharing = sorted((c for c in admitted if c.in_ratio), key=lambda c: c.age)
    return _Context(
        view=queue.view,
        deserved=queue.deserved,
        others=others,
        num_slots=pool.num_slots_of([queue.group]),
        slots=pool.slots_of(queue.group),
        node_ids=pool.node_ids,
        labels=labels,
        alone=sum(candidate.workload.max_tasks > 0 for candidate in everybody) == 1,
        sharing=sharing,
        num_shared=sum(candidate.share * candidate.size for candidate in sharing),
        weight=sum(candidate.workload.priority for candidate in sharing),
        bounded=[c for c in admitted if not c.in_ratio],
        complete=complete,
        cooling=[c for c in everybody if c.admitted and c.in_cooldown and c.excess > 0 and not complete],
        leaving=_leaving(everybody) if any(c.awaited_nodes and not c.num_held for c in queue.order) else {},
    )


def _leaving(order: Sequence[Candidate]) -> dict[NodeId, list[Candidate]]:
    leaving: dict[NodeId, list[Candidate]] = {}
    for candidate in order:
        tasks = [*candidate.leave, *(task for task in candidate.workload.tasks if task.leaving)]
        for node_id in dict.fromkeys(task.node_id for task in tasks):
            leaving.setdefault(node_id, []).append(candidate)
    return leaving


def _explain_granted(context: _Context, candidate: Candidate, ahead: Sequence[Candidate]) -> str:
    if not candidate.num_held and candidate.target > candidate.minimum:
        return _starting(context, candidate)
    if candidate.in_backoff and candidate.target < candidate.workload.max_tasks:
        head = _amount(context, max(candidate.target, candidate.minimum), candidate)
        return f"{head}: starts no new task until its back-off ends"
    head = _amount(context, candidate.target, candidate)
    if candidate.target > candidate.share:
        return f"{head}: {_above(context, candidate)}"
    if candidate.target < candidate.share:
        return f"{head}: {_below(context, candidate)}"
    if candidate.target == candidate.workload.max_tasks:
        what = "all that it needs now" if candidate.workload.kind == _BY_LOAD else "its maximum"
        return f"{head}: {what}" + "; nobody else wants slots" * context.alone
    if context.alone:
        return f"{head}: all that it can use; nobody else wants slots"
    if context.view.policy is PolicyName.FAIRSHARE:
        return f"{head}: {_fair(context, candidate)}"
    return f"{head}: {_in_turn(context, candidate, ahead)}"


def _starting(context: _Context, candidate: Candidate) -> str:
    head = _amount(context, candidate.workload.min_tasks, candidate)
    more = (candidate.target - candidate.workload.min_tasks) * candidate.size
    node_ids = [context.node_ids[node] for node in candidate.awaited_nodes]
    found = {c.rank: c for node_id in node_ids for c in context.leaving.get(node_id, ())}
    victims = [found[rank] for rank in sorted(found) if rank != candidate.rank]
    if not victims:
        return f"{head} to start with: its minimum; {more} more right after"
    names = _names(context, candidate, victims)
    return f"{head} to start with: its minimum; {more} more as {names} give{'s' * (len(victims) == 1)} {_them(more)} up"


def _above(context: _Context, candidate: Candidate) -> str:
    if candidate.in_cooldown and candidate.excess > 0 and not context.complete:
        more = candidate.excess * candidate.size
        return f"{more} more than its share until its cool-down ends: its size has just changed"
    more = (candidate.target - candidate.share) * candidate.size
    if candidate.is_protected:
        return f"{more} more than its share, since nobody else could use {_them(more)}"
    return f"{more} more than its share, as long as nobody who deserves {_them(more)} can use {_them(more)}"


def _below(context: _Context, candidate: Candidate) -> str:
    share = f"its share is {candidate.share * candidate.size}"
    if candidate.has_released:
        return f"{share}, but somebody needed a minimum on the same node; it may grow again elsewhere"
    if context.cooling:
        holds = "holds" if len(context.cooling) == 1 else "hold"
        return f"{share}; {_names(context, candidate, context.cooling)} {holds} the rest until a cool-down ends"
    return f"{share}, but no node has {candidate.size} {_slots(candidate.size)} for one more task of it"


def _fair(context: _Context, candidate: Candidate) -> str:
    if not candidate.in_ratio:
        what = "what it holds" if candidate.minimum > candidate.workload.min_tasks else "its minimum"
        return f"{what}; by priority alone it would have less"
    others = [other for other in context.sharing[: NUM_NAMED + 1] if other is not candidate]
    num_others = len(context.sharing) - 1
    if not num_others and not context.bounded:
        only = "; nobody who waits can be fitted in" * (not context.others)
        return f"all that {'its queue has' if context.others else 'it can use'}{only}"
    if not num_others:
        return f"all that {_names(context, candidate, context.bounded)} leave{'s' * (len(context.bounded) == 1)}"
    them = "them" if context.num_shared == context.num_slots else f"{context.num_shared} of them"
    if num_others > NUM_NAMED:
        own = candidate.workload.priority
        return f"shares {them} with {num_others} others by priority: its own is {own} of {context.weight}"
    ratio = ":".join(str(c.workload.priority) for c in (candidate, *others))
    return f"shares {them} with {_names(context, candidate, others)} in the ratio of priorities {ratio}"


def _in_turn(context: _Context, candidate: Candidate, ahead: Sequence[Candidate]) -> str:
    minimum = candidate.target == candidate.minimum
    if not ahead:
        return "the first in order, beside the minimums of the others"
    if minimum:
        return f"its minimum; {_names(context, candidate, ahead)} {_come(ahead)} before it"
    return f"all that {_names(context, candidate, ahead)} leave{'s' * (len(ahead) == 1)}, who {_come(ahead)} before it"


def _waiting(context: _Context, candidate: Candidate, ahead: Sequence[Candidate], guaranteed: int) -> str:
    workload = candidate.workload
    if workload.max_tasks <= 0:
        return "0 slots: it wants none"
    if candidate.in_backoff:
        return "waits: starts no new task until its back-off ends"
    total = context.num_slots
    need = workload.min_tasks * candidate.size
    if never := misfit(workload.min_tasks, candidate.size, context.view, context.slots):
        return f"waits: {never}"
    if context.others and context.deserved is not None and guaranteed + need > context.deserved:
        return _explain_over_deserved(context, candidate, ahead, guaranteed)
    if guaranteed >= total:
        whose = f"all {total} slots are held by minimums of jobs ahead of it"
        return f"waits: {whose} ({_list_names(context, candidate, ahead)})"
    if guaranteed + need > total:
        held = f"minimums of jobs ahead of it hold {guaranteed} of {total}"
        return f"waits: its minimum needs {need} {_slots(need)}, and {held} ({_list_names(context, candidate, ahead)})"
    each = f"{candidate.size} {_slots(candidate.size)} on one node"
    times = "" if workload.min_tasks == 1 else f"{workload.min_tasks} times "
    beside = f" beside the minimums of jobs ahead of it ({_list_names(context, candidate, ahead)})" if ahead else ""
    beside += " and of other queues" * bool(context.others)
    return f"waits: its minimum needs {times}{each}, and the nodes do not have that free{beside}"


def _explain_over_deserved(context: _Context, candidate: Candidate, ahead: Sequence[Candidate], guaranteed: int) -> str:
    need = candidate.workload.min_tasks * candidate.size
    deserves = f"deserves {context.deserved} of {context.num_slots} beside other queues"
    held = f", of which minimums of jobs ahead of it hold {guaranteed} ({_list_names(context, candidate, ahead)})"
    whose = f"queue {context.view.name} {deserves}{held * bool(ahead)}"
    return f"waits: its minimum needs {need} {_slots(need)}, and {whose}"


def _amount(context: _Context, num_tasks: int, candidate: Candidate) -> str:
    return f"{num_tasks * candidate.size} of {context.num_slots} {_slots(context.num_slots)}"


def _slots(num: int) -> str:
    return "slot" if num == 1 else "slots"


def _them(num: int) -> str:
    return "it" if num == 1 else "them"


def _come(candidates: Sequence[Candidate]) -> str:
    return "comes" if len(candidates) == 1 else "come"


def _names(context: _Context, candidate: Candidate, candidates: Sequence[Candidate]) -> str:
    """Return `a`, `a and b`, `a, b and c`, or `a, b and 7 others`."""
    if len(candidates) > NUM_NAMED:
        named = _names_of(context, candidate, candidates[: NUM_NAMED - 1])
        return f"{', '.join(named)} and {len(candidates) - NUM_NAMED + 1} others"
    return listed(_names_of(context, candidate, candidates))


def listed(names: Sequence[str]) -> str:
    """Return `a`, `a and b`, or `a, b and c`."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def _list_names(context: _Context, candidate: Candidate, candidates: Sequence[Candidate]) -> str:
    """Return `a, b, c, …` for a bracket."""
    named = _names_of(context, candidate, candidates[:NUM_NAMED])
    return ", ".join(named + ["…"] * (len(candidates) > NUM_NAMED))


def _names_of(context: _Context, candidate: Candidate, others: Sequence[Candidate]) -> list[str]:
    """Return what one workload is told of others: their names if they have the same owner, else only whose they are."""
    strange = Counter(other.workload.owner for other in others if other.workload.owner != candidate.workload.owner)
    words = {owner: f"a job of {owner}" if num == 1 else f"{num} jobs of {owner}" for owner, num in strange.items()}
    return list(dict.fromkeys(words.get(other.workload.owner) or context.labels[other.workload.id] for other in others))
