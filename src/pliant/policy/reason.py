"""Why every workload has what it has: one English sentence each, of numbers, ratios and the names of others.

A sentence tells of the decision (targets, shares, order), not of how far its execution has come, with one exception: a
workload that has no task yet is told what it starts with and who makes room for the rest. Knows no times.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pliant.core.job import JobId, NodeId
from pliant.core.plan import PolicyName
from pliant.policy.place import Stake

NUM_NAMED = 3
"""More names than this are cut short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A finished decision."""

    policy: PolicyName
    num_slots: int
    order: Sequence[Stake]
    node_ids: Sequence[NodeId]
    complete: bool
    """All who were to grow found their places."""


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
    for stake in outcome.order:
        if stake.admitted:
            reasons[stake.view.id] = _granted(scene, stake, ahead)
            ahead.append(stake)
            guaranteed += stake.view.min_tasks * stake.size
        else:
            reasons[stake.view.id] = _waiting(scene, stake, ahead, guaranteed)
    return reasons


def _scene(outcome: Outcome) -> _Scene:
    order = outcome.order
    counts = Counter(stake.view.name for stake in order)
    labels = {s.view.id: s.view.name if counts[s.view.name] == 1 else f"{s.view.name} ({s.view.id})" for s in order}
    admitted = [stake for stake in order if stake.admitted]
    sharing = sorted((s for s in admitted if s.free_share), key=lambda s: s.age)
    return _Scene(
        outcome=outcome,
        labels=labels,
        alone=sum(stake.view.max_tasks > 0 for stake in order) == 1,
        sharing=sharing,
        num_shared=sum(stake.share * stake.size for stake in sharing),
        weight=sum(stake.view.priority for stake in sharing),
        bounded=[s for s in admitted if not s.free_share],
        cooling=[s for s in admitted if s.cools_down and s.excess > 0 and not outcome.complete],
        leaving=_leaving(order) if any(s.awaits and not s.num_held for s in order) else {},
    )


def _leaving(order: Sequence[Stake]) -> dict[NodeId, list[Stake]]:
    leaving: dict[NodeId, list[Stake]] = {}
    for stake in order:
        tasks = [*stake.leave, *(task for task in stake.view.tasks if task.leaving)]
        for node_id in dict.fromkeys(task.node_id for task in tasks):
            leaving.setdefault(node_id, []).append(stake)
    return leaving


def _granted(scene: _Scene, stake: Stake, ahead: Sequence[Stake]) -> str:
    if not stake.num_held and stake.target > stake.view.min_tasks:
        return _starting(scene, stake)
    if stake.backs_off and stake.target < stake.view.max_tasks:
        head = _amount(scene, max(stake.target, stake.view.min_tasks), stake)
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
    if scene.outcome.policy is PolicyName.FAIRSHARE:
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
    return f"{head} to start with: its minimum; {more} more as {_names(scene, givers)} {give} {_them(more)} up"


def _above(scene: _Scene, stake: Stake) -> str:
    if stake.cools_down and stake.excess > 0 and not scene.outcome.complete:
        more = stake.excess * stake.size
        return f"{more} more than its share until its cool-down ends: its size has just changed"
    more = (stake.target - stake.share) * stake.size
    return f"{more} more than its share, as long as nobody who deserves {_them(more)} can use {_them(more)}"


def _below(scene: _Scene, stake: Stake) -> str:
    share = f"its share is {stake.share * stake.size}"
    if stake.gave:
        return f"{share}, but somebody needed a minimum on the same node; it may grow again elsewhere"
    if scene.cooling:
        holds = "holds" if len(scene.cooling) == 1 else "hold"
        return f"{share}; {_names(scene, scene.cooling)} {holds} the rest until a cool-down ends"
    return f"{share}, but no node has {stake.size} {_slots(stake.size)} for one more task of it"


def _fair(scene: _Scene, stake: Stake) -> str:
    if not stake.free_share:
        return "its minimum; by priority alone it would have less"
    others = [other for other in scene.sharing[: NUM_NAMED + 1] if other is not stake]
    num_others = len(scene.sharing) - 1
    if not num_others and not scene.bounded:
        return "all that it can use; nobody who waits can be fitted in"
    if not num_others:
        return f"all that {_names(scene, scene.bounded)} leave{'s' * (len(scene.bounded) == 1)}"
    them = "them" if scene.num_shared == scene.outcome.num_slots else f"{scene.num_shared} of them"
    if num_others > NUM_NAMED:
        return f"shares {them} with {num_others} others by priority: its own is {stake.view.priority} of {scene.weight}"
    ratio = ":".join(str(s.view.priority) for s in (stake, *others))
    return f"shares {them} with {_names(scene, others)} in the ratio of priorities {ratio}"


def _in_turn(scene: _Scene, stake: Stake, ahead: Sequence[Stake]) -> str:
    minimum = stake.target == stake.view.min_tasks
    if not ahead:
        return "the first in order, beside the minimums of the others"
    if minimum:
        return f"its minimum; {_names(scene, ahead)} {_come(ahead)} before it"
    return f"all that {_names(scene, ahead)} leave{'s' * (len(ahead) == 1)}, who {_come(ahead)} before it"


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
        return f"waits: its minimum needs {need} {_slots(need)} and there are only {total}"
    if guaranteed >= total:
        whose = f"all {total} slots are held by minimums of jobs ahead of it"
        return f"waits: {whose} ({_listed(scene, ahead)})"
    if guaranteed + need > total:
        held = f"minimums of jobs ahead of it hold {guaranteed} of {total}"
        return f"waits: its minimum needs {need} {_slots(need)}, and {held} ({_listed(scene, ahead)})"
    each = f"{stake.size} {_slots(stake.size)} on one node"
    times = "" if view.min_tasks == 1 else f"{view.min_tasks} times "
    beside = f" beside the minimums of jobs ahead of it ({_listed(scene, ahead)})" if ahead else ""
    return f"waits: its minimum needs {times}{each}, and the nodes do not have that free{beside}"


def _amount(scene: _Scene, num_tasks: int, stake: Stake) -> str:
    return f"{num_tasks * stake.size} of {scene.outcome.num_slots} {_slots(scene.outcome.num_slots)}"


def _slots(num: int) -> str:
    return "slot" if num == 1 else "slots"


def _them(num: int) -> str:
    return "it" if num == 1 else "them"


def _come(stakes: Sequence[Stake]) -> str:
    return "comes" if len(stakes) == 1 else "come"


def _names(scene: _Scene, stakes: Sequence[Stake]) -> str:
    """Return `a`, `a and b`, `a, b and c`, or `a, b and 7 others`."""
    if len(stakes) > NUM_NAMED:
        named = [scene.labels[stake.view.id] for stake in stakes[: NUM_NAMED - 1]]
        return f"{', '.join(named)} and {len(stakes) - NUM_NAMED + 1} others"
    named = [scene.labels[stake.view.id] for stake in stakes]
    return f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else named[0]


def _listed(scene: _Scene, stakes: Sequence[Stake]) -> str:
    """Return `a, b, c, …` for a bracket."""
    named = [scene.labels[stake.view.id] for stake in stakes[:NUM_NAMED]]
    return ", ".join(named + ["…"] * (len(stakes) > NUM_NAMED))
