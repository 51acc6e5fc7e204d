"""Why every workload has what it has: one English sentence each, of numbers, ratios and the names of others.

A sentence tells of the decision (targets, shares, order), not of how far its execution has come, with one exception: a
workload that has no task yet is told what it starts with and who makes room for the rest. Knows no times.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pliant.core.job import JobId, NodeId
from pliant.core.plan import PolicyName, QueueView
from pliant.policy.schedule.place import Stake

NUM_NAMED = 3
"""More names than this are cut short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """Another queue that wants the same slots."""

    name: str
    weight: int
    deserved: int | None
    """Slots that it is entitled to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A finished decision, as far as one queue goes."""

    queue: QueueView
    num_slots: int
    """Of its group."""
    order: Sequence[Stake]
    """Its workloads."""
    everybody: Sequence[Stake]
    """Its workloads and those of the queues that it shares nodes with."""
    node_ids: Sequence[NodeId]
    complete: bool
    """All who were to grow found their places."""
    deserved: int | None
    """Slots that the queue is entitled to; None if nobody else wants any."""
    rivals: Sequence[Rival]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """What several sentences have in common, worked out once."""

    outcome: Outcome
    labels: Mapping[JobId, str]
    alone: bool
    """Nobody else wants slots."""
    sharing: Sequence[Stake]
    """Those whose shares are in the ratio of their priorities, oldest first."""
    num_shared: int
    """Slots that they share."""
    weight: int
    """Sum of their priorities."""
    bounded: Sequence[Stake]
    """The other admitted ones: their minimum or maximum settles their share."""
    cooling: Sequence[Stake]
    """Those who keep more than their share for now."""
    leaving: Mapping[NodeId, Sequence[Stake]]
    """Who has leaving tasks on a node."""


def explain(outcome: Outcome) -> dict[JobId, str]:
    """Return one sentence for every workload."""
    scene = _scene(outcome)
    reasons = {}
    ahead: list[Stake] = []
    guaranteed = 0
    beside = _beside(outcome)
    for stake in outcome.order:
        if stake.admitted:
            reason = _granted(scene, stake, ahead)
            ahead.append(stake)
            guaranteed += stake.low * stake.size
        else:
            reason = _waiting(scene, stake, ahead, guaranteed)
        if stake.keeps and stake.num_held and stake.admitted:
            reason += f"; nobody takes them away: queue {outcome.queue.name} has no preemption"
        if stake.view.max_tasks > 0:
            reason += beside
        if stake.avoid:
            reason += f"; kept off {_avoided(scene, stake)}, where its tasks were lost"
        reasons[stake.view.id] = reason
    return reasons


def _beside(outcome: Outcome) -> str:
    """Return what the queue has beside others, to follow on a sentence; nothing if nobody else wants slots."""
    if outcome.deserved is None or not outcome.rivals:
        return ""
    queues = [Rival(name=outcome.queue.name, weight=outcome.queue.weight, deserved=outcome.deserved), *outcome.rivals]
    shown = queues[: NUM_NAMED + 1]
    has = ", ".join(f"{queue.name} {queue.deserved}" for queue in shown) + ", …" * (len(queues) > len(shown))
    weights = ":".join(str(queue.weight) for queue in shown) + ":…" * (len(queues) > len(shown))
    return f"; queues share by weights {weights}: {has}"


def _avoided(scene: _Scene, stake: Stake) -> str:
    return " and ".join(scene.outcome.node_ids[node] for node in sorted(stake.avoid))


def _scene(outcome: Outcome) -> _Scene:
    everybody = outcome.everybody
    counts = Counter(stake.view.name for stake in everybody)
    labels = {s.view.id: s.view.name if counts[s.view.name] == 1 else f"{s.view.name} ({s.view.id})" for s in everybody}
    admitted = [stake for stake in outcome.order if stake.admitted]
    sharing = sorted((s for s in admitted if s.free_share), key=lambda s: s.age)
    return _Scene(
        outcome=outcome,
        labels=labels,
        alone=sum(stake.view.max_tasks > 0 for stake in everybody) == 1,
        sharing=sharing,
        num_shared=sum(stake.share * stake.size for stake in sharing),
        weight=sum(stake.view.priority for stake in sharing),
        bounded=[s for s in admitted if not s.free_share],
        cooling=[s for s in everybody if s.admitted and s.cools_down and s.excess > 0 and not outcome.complete],
        leaving=_leaving(everybody) if any(s.awaits and not s.num_held for s in outcome.order) else {},
    )


def _leaving(order: Sequence[Stake]) -> dict[NodeId, list[Stake]]:
    leaving: dict[NodeId, list[Stake]] = {}
    for stake in order:
        tasks = [*stake.leave, *(task for task in stake.view.tasks if task.leaving)]
        for node_id in dict.fromkeys(task.node_id for task in tasks):
            leaving.setdefault(node_id, []).append(stake)
    return leaving


def _granted(scene: _Scene, stake: Stake, ahead: Sequence[Stake]) -> str:
    if not stake.num_held and stake.target > stake.low:
        return _starting(scene, stake)
    if stake.backs_off and stake.target < stake.view.max_tasks:
        head = _amount(scene, max(stake.target, stake.low), stake)
        return f"{head}: starts no new task until its back-off ends"
    head = _amount(scene, stake.target, stake)
    if stake.target > stake.share:
        return f"{head}: {_above(scene, stake)}"
    if stake.target < stake.share:
        return f"{head}: {_below(scene, stake)}"
    if stake.target == stake.view.max_tasks:
        return f"{head}: its maximum" + "; nobody else wants slots" * scene.alone
    if scene.alone:
        return f"{head}: all that it can use; nobody else wants slots"
    if scene.outcome.queue.policy is PolicyName.FAIRSHARE:
        return f"{head}: {_fair(scene, stake)}"
    return f"{head}: {_in_turn(scene, stake, ahead)}"


def _starting(scene: _Scene, stake: Stake) -> str:
    head = _amount(scene, stake.view.min_tasks, stake)
    more = (stake.target - stake.view.min_tasks) * stake.size
    found = {s.rank: s for node in stake.awaits for s in scene.leaving.get(scene.outcome.node_ids[node], ())}
    givers = [found[rank] for rank in sorted(found) if rank != stake.rank]
    if not givers:
        return f"{head} to start with: its minimum; {more} more right after"
    give = "gives" if len(givers) == 1 else "give"
    return f"{head} to start with: its minimum; {more} more as {_names(scene, stake, givers)} {give} {_them(more)} up"


def _above(scene: _Scene, stake: Stake) -> str:
    if stake.cools_down and stake.excess > 0 and not scene.outcome.complete:
        more = stake.excess * stake.size
        return f"{more} more than its share until its cool-down ends: its size has just changed"
    more = (stake.target - stake.share) * stake.size
    if stake.keeps:
        return f"{more} more than its share, since nobody else could use {_them(more)}"
    return f"{more} more than its share, as long as nobody who deserves {_them(more)} can use {_them(more)}"


def _below(scene: _Scene, stake: Stake) -> str:
    share = f"its share is {stake.share * stake.size}"
    if stake.gave:
        return f"{share}, but somebody needed a minimum on the same node; it may grow again elsewhere"
    if scene.cooling:
        holds = "holds" if len(scene.cooling) == 1 else "hold"
        return f"{share}; {_names(scene, stake, scene.cooling)} {holds} the rest until a cool-down ends"
    return f"{share}, but no node has {stake.size} {_slots(stake.size)} for one more task of it"


def _fair(scene: _Scene, stake: Stake) -> str:
    if not stake.free_share:
        what = "what it holds" if stake.low > stake.view.min_tasks else "its minimum"
        return f"{what}; by priority alone it would have less"
    others = [other for other in scene.sharing[: NUM_NAMED + 1] if other is not stake]
    num_others = len(scene.sharing) - 1
    if not num_others and not scene.bounded:
        only = "; nobody who waits can be fitted in" * (not scene.outcome.rivals)
        return f"all that {'its queue has' if scene.outcome.rivals else 'it can use'}{only}"
    if not num_others:
        return f"all that {_names(scene, stake, scene.bounded)} leave{'s' * (len(scene.bounded) == 1)}"
    them = "them" if scene.num_shared == scene.outcome.num_slots else f"{scene.num_shared} of them"
    if num_others > NUM_NAMED:
        return f"shares {them} with {num_others} others by priority: its own is {stake.view.priority} of {scene.weight}"
    ratio = ":".join(str(s.view.priority) for s in (stake, *others))
    return f"shares {them} with {_names(scene, stake, others)} in the ratio of priorities {ratio}"


def _in_turn(scene: _Scene, stake: Stake, ahead: Sequence[Stake]) -> str:
    minimum = stake.target == stake.low
    if not ahead:
        return "the first in order, beside the minimums of the others"
    if minimum:
        return f"its minimum; {_names(scene, stake, ahead)} {_come(ahead)} before it"
    return f"all that {_names(scene, stake, ahead)} leave{'s' * (len(ahead) == 1)}, who {_come(ahead)} before it"


def _waiting(scene: _Scene, stake: Stake, ahead: Sequence[Stake], guaranteed: int) -> str:
    view = stake.view
    if view.max_tasks <= 0:
        return "0 slots: it wants none"
    if stake.backs_off:
        return "waits: starts no new task until its back-off ends"
    total = scene.outcome.num_slots
    need = view.min_tasks * stake.size
    if total == 0:
        return "waits: there are no slots"
    if need > total:
        limited = f"group {scene.outcome.queue.group} has only {total}"
        only = f"there are only {total}" if scene.outcome.queue.slots is None else limited
        return f"waits: its minimum needs {need} {_slots(need)} and {only}"
    if scene.outcome.rivals and scene.outcome.deserved is not None and guaranteed + need > scene.outcome.deserved:
        return _over_deserved(scene, stake, scene.outcome.deserved, ahead, guaranteed)
    if guaranteed >= total:
        whose = f"all {total} slots are held by minimums of jobs ahead of it"
        return f"waits: {whose} ({_listed(scene, stake, ahead)})"
    if guaranteed + need > total:
        held = f"minimums of jobs ahead of it hold {guaranteed} of {total}"
        return f"waits: its minimum needs {need} {_slots(need)}, and {held} ({_listed(scene, stake, ahead)})"
    each = f"{stake.size} {_slots(stake.size)} on one node"
    times = "" if view.min_tasks == 1 else f"{view.min_tasks} times "
    beside = f" beside the minimums of jobs ahead of it ({_listed(scene, stake, ahead)})" if ahead else ""
    beside += " and of other queues" * bool(scene.outcome.rivals)
    return f"waits: its minimum needs {times}{each}, and the nodes do not have that free{beside}"


def _over_deserved(scene: _Scene, stake: Stake, deserved: int, ahead: Sequence[Stake], guaranteed: int) -> str:
    need = stake.view.min_tasks * stake.size
    queue = f"queue {scene.outcome.queue.name} deserves {deserved} of {scene.outcome.num_slots} beside other queues"
    held = f", of which minimums of jobs ahead of it hold {guaranteed} ({_listed(scene, stake, ahead)})" * bool(ahead)
    return f"waits: its minimum needs {need} {_slots(need)}, and {queue}{held}"


def _amount(scene: _Scene, num_tasks: int, stake: Stake) -> str:
    return f"{num_tasks * stake.size} of {scene.outcome.num_slots} {_slots(scene.outcome.num_slots)}"


def _slots(num: int) -> str:
    return "slot" if num == 1 else "slots"


def _them(num: int) -> str:
    return "it" if num == 1 else "them"


def _come(stakes: Sequence[Stake]) -> str:
    return "comes" if len(stakes) == 1 else "come"


def _names(scene: _Scene, stake: Stake, stakes: Sequence[Stake]) -> str:
    """Return `a`, `a and b`, `a, b and c`, or `a, b and 7 others`."""
    if len(stakes) > NUM_NAMED:
        named = _told(scene, stake, stakes[: NUM_NAMED - 1])
        return f"{', '.join(named)} and {len(stakes) - NUM_NAMED + 1} others"
    named = _told(scene, stake, stakes)
    return f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else named[0]


def _listed(scene: _Scene, stake: Stake, stakes: Sequence[Stake]) -> str:
    """Return `a, b, c, …` for a bracket."""
    named = _told(scene, stake, stakes[:NUM_NAMED])
    return ", ".join(named + ["…"] * (len(stakes) > NUM_NAMED))


def _told(scene: _Scene, stake: Stake, others: Sequence[Stake]) -> list[str]:
    """Return what one workload is told of others: their names if they have the same owner, else only whose they are."""
    strange = Counter(other.view.owner for other in others if other.view.owner != stake.view.owner)
    words = {owner: f"a job of {owner}" if num == 1 else f"{num} jobs of {owner}" for owner, num in strange.items()}
    return list(dict.fromkeys(words.get(other.view.owner) or scene.labels[other.view.id] for other in others))
