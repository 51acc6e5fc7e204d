"""Plans with workloads whose tasks hold a part of a slot (`plan_with_parts`).

Theory of operation
===================
1. Those that may share slots are folded into one workload of whole slots (`fold`), which is decided on beside all
   others as any workload is.
2. If it is refused, its minimums do not fit. Then those come first that hold theirs; the others are tried one after the
   other, and who does not fit asks for slots of its own, as any newcomer does.
3. What a folded workload is granted is shared out among its sharers (`share_out`).

Laws: no more than a whole slot is held or given of any slot; a slot is shared by workloads of one queue only; a
workload of whole tasks never holds a slot of which another holds a part.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pliant.core.job import JobId
from pliant.core.plan import Grant, Plan, Policy, QueueRules, Snapshot
from pliant.core.slot import WHOLE_SLOT
from pliant.core.workload import TaskView, Workload
from pliant.policy.schedule.fold import Sharer, SlotPlace, Together, backs_off, fold, key_of, place_of, trim
from pliant.policy.schedule.order import AgeKey, age, precedence
from pliant.policy.schedule.reason import NUM_NAMED, listed
from pliant.policy.schedule.share_out import rooms_of, share_out

NO_WISH: Final = "0 slots: it wants none"

Decide = Callable[[Snapshot], Plan]
"""Decides on workloads of whole slots."""


def has_parts(snapshot: Snapshot) -> bool:
    """Tell whether some workload's tasks hold a part of a slot."""
    return any(workload.slot_share < WHOLE_SLOT for workload in snapshot.workloads)


def plan_with_parts(snapshot: Snapshot, policy: Policy, now: float, decide: Decide) -> Plan:
    """Return what every workload of the snapshot shall have; `decide` plans for whole slots."""
    whole = [workload for workload in snapshot.workloads if workload.slot_share == WHOLE_SLOT]
    rules = {queue.name: queue for queue in snapshot.queues}

    def rules_of(name: str) -> QueueRules:
        return rules.get(name) or QueueRules(name=name, policy=policy.name)

    groups: dict[tuple[str, int], list[Workload]] = defaultdict(list)
    parts = [workload for workload in snapshot.workloads if workload.slot_share < WHOLE_SLOT]
    for workload in sorted(parts, key=age):  # whatever order they come in
        groups[key_of(workload, rules_of(workload.queue))].append(workload)
    found = [(rules_of(key[0]), tuple(one)) for key, one in groups.items()]
    found.sort(key=lambda group: min(_rank(group[0], workload) for workload in group[1]))
    trial = _Trial(snapshot, whole, found, decide, now)
    return _unfold(trial.settle(), whole, policy, now)


def _rank(queue: QueueRules, workload: Workload) -> tuple[tuple[int, int], AgeKey]:
    """Return who comes first (least)."""
    return precedence(queue.policy, workload, _num_held(workload)), age(workload)


def _num_held(workload: Workload) -> int:
    return sum(not task.leaving for task in workload.tasks)


@dataclass(slots=True, kw_only=True)
class _Attempt:
    """A plan for whole slots, and what was folded for it."""

    plan: Plan
    folded: Sequence[tuple[Together, Workload]]

    def refuses(self, together: Together) -> bool:
        """Tell whether a folded workload is denied its minimum."""
        workload = next(workload for one, workload in self.folded if one is together)
        return workload.min_tasks > 0 and self.plan.grants[workload.id].num_tasks == 0


@dataclass(slots=True, eq=False)
class _Trial:
    """Finds who can hold slots together. Each group of sharers is all in, at first."""

    snapshot: Snapshot
    whole: Sequence[Workload]
    groups: Sequence[tuple[QueueRules, Sequence[Workload]]]
    decide: Decide
    now: float
    out: set[JobId] = field(default_factory=set)
    """Who asks for slots of its own."""

    def settle(self) -> _Attempt:
        """Return a plan that refuses no group of which some could have what they need together."""
        attempt = self._attempt()
        for queue, workloads in self.groups:
            together = self._group_of(attempt, workloads)
            if len(workloads) > 1 and together is not None and attempt.refuses(together):
                self._admit_in_turn(queue, workloads)
                attempt = self._attempt()
        return attempt

    def _admit_in_turn(self, queue: QueueRules, workloads: Sequence[Workload]) -> None:
        order = sorted(workloads, key=lambda workload: _rank(queue, workload))
        wanting = [w for w in order if w.max_tasks > 0]
        self.out |= {workload.id for workload in wanting}
        settled = [w for w in wanting if w.min_tasks <= _num_held(w)]
        waiting = [w for w in wanting if w not in settled]
        if settled and not self._fit(settled, workloads):
            settled, waiting = [], wanting
        no_room: set[tuple[int, int]] = set()
        for workload in waiting:
            kind = workload.slot_share, workload.min_tasks
            if kind not in no_room and not self._fit([workload], workloads):
                no_room.add(kind)

    def _fit(self, more: Sequence[Workload], workloads: Sequence[Workload]) -> bool:
        """Let these in, too, if the group is not refused with them; tell whether it is not."""
        self.out -= {workload.id for workload in more}
        attempt = self._attempt()
        together = self._group_of(attempt, workloads)
        if together is None or not attempt.refuses(together):
            return True
        self.out |= {workload.id for workload in more}
        return False

    def _group_of(self, attempt: _Attempt, workloads: Sequence[Workload]) -> Together | None:
        members = {workload.id for workload in workloads} - self.out
        return next((one for one, _ in attempt.folded if one.sharers[0].workload.id in members), None)

    def _attempt(self) -> _Attempt:
        folded = [(one, fold(one, self.now)) for one in self._lay_out()]
        workloads = (*self.whole, *(workload for _, workload in folded))
        return _Attempt(plan=self.decide(replace(self.snapshot, workloads=workloads)), folded=folded)

    def _lay_out(self) -> list[Together]:
        """Return who holds slots together, each with its slots, nothing decided yet."""
        known = {SlotPlace(node.id, slot) for node in self.snapshot.nodes for slot in node.slots}
        made = []
        for queue, workloads in self.groups:
            sharers = [Sharer(workload=workload) for workload in workloads]
            members = [sharer for sharer in sharers if sharer.workload.id not in self.out]
            made += [Together(queue=queue, sharers=members)] if members else []
            made += [Together(queue=queue, sharers=[one]) for one in sharers if one.workload.id in self.out]
        _hand_out_places(made, known, self.out)
        return made


_Holding = tuple[Together, Sharer, TaskView]
"""Who holds a part of a slot, and the task that does."""


def _hand_out_places(groups: Sequence[Together], known: Container[SlotPlace], out: Container[JobId]) -> None:
    """Give every slot that is held to one of those who hold some of it; tasks of others leave it."""
    held: dict[SlotPlace, list[_Holding]] = defaultdict(list)
    for together in groups:
        for sharer in together.sharers:
            for task in sharer.workload.tasks:
                if place_of(task) in known:
                    held[place_of(task)].append((together, sharer, task))
                elif not task.leaving:
                    sharer.leave.append(task)
    owners = {place: _sort_out(entries, out) for place, entries in held.items()}
    load = {place: sum(sharer.size for _, sharer, _ in entries) for place, entries in held.items()}
    for together in groups:
        for sharer in together.sharers:
            trim(sharer, load)
        together.places = _places_of(together, [place for place in held if owners[place] is together])
        own = [entry for place in together.places for entry in held[place]]
        together.rooms = rooms_of((sharer, task) for _, sharer, task in own)


def _sort_out(entries: Sequence[_Holding], out: Container[JobId]) -> Together:
    """Find whose a slot is, and which of its tasks stay."""
    staying = [entry for entry in entries if not entry[2].leaving]
    first = [together for together, sharer, _ in staying if sharer.workload.id not in out]
    owner = first[0] if first else entries[0][0]
    for together, sharer, task in staying:
        may_stay = together is owner and sharer.workload.id not in out
        (sharer.stay if may_stay else sharer.leave).append(task)
    return owner


def _places_of(together: Together, places: Iterable[SlotPlace]) -> Mapping[SlotPlace, list[tuple[Sharer, TaskView]]]:
    found: dict[SlotPlace, list[tuple[Sharer, TaskView]]] = {place: [] for place in places}
    for sharer in together.sharers:
        for task in sharer.stay:
            found[place_of(task)].append((sharer, task))
    return found


def _unfold(attempt: _Attempt, whole: Sequence[Workload], policy: Policy, now: float) -> Plan:
    """Return the plan for the workloads themselves."""
    made = attempt.plan
    grants = {workload.id: made.grants[workload.id] for workload in whole}
    reasons = {workload.id: made.reasons[workload.id] for workload in whole}
    instants = [] if made.wake_at is None else [made.wake_at]
    for together, folded in attempt.folded:
        granted = made.grants[folded.id]
        workloads = [sharer.workload for sharer in together.sharers]
        instants += [w.held_until for w in workloads if w.held_until is not None and w.held_until > now]
        if not granted.num_tasks:
            grants.update((one.workload.id, _nothing(one)) for one in together.sharers)
            reasons.update((one.id, _refusal(one, made.reasons[folded.id], now)) for one in workloads)
            continue
        shared = share_out(together, granted, now=now, cooldown_s=policy.cooldown_s)
        if shared.held_back:
            ends = [w.resized_at + policy.cooldown_s for w in workloads if w.resized_at is not None]
            instants += [at for at in ends if at > now]
        wanting = [sharer for sharer in together.sharers if sharer.workload.max_tasks]
        for sharer, grant in zip(together.sharers, shared.grants, strict=True):
            grants[grant.workload_id] = grant
            reasons[grant.workload_id] = _reason(sharer, grant, wanting, made.reasons[folded.id])
    return Plan(grants=grants, reasons=reasons, wake_at=min(instants, default=None), deserved=made.deserved)


def _nothing(sharer: Sharer) -> Grant:
    leave = tuple(task.id for task in (*sharer.leave, *sharer.stay))
    return Grant(workload_id=sharer.workload.id, num_tasks=0, leave=leave)


def _refusal(workload: Workload, why: str, now: float) -> str:
    if workload.max_tasks and backs_off(workload, now):
        return "waits: starts no new task until its back-off ends"
    return why if workload.max_tasks else NO_WISH


def _reason(sharer: Sharer, grant: Grant, wanting: Sequence[Sharer], why: str) -> str:
    """Return what a sharer has, and why all those that share slots have what they have; `wanting` are these."""
    if not sharer.workload.max_tasks:
        return NO_WISH
    part = f"{sharer.size / WHOLE_SLOT:g} of a slot"
    own = f"{grant.num_tasks} times {part}" if grant.num_tasks != 1 else part
    wanted = f" of the {sharer.workload.max_tasks} that it wants" * (grant.num_tasks < sharer.workload.max_tasks)
    num_others = len(wanting) - 1
    if not num_others:
        return f"{own}{wanted}, on {why}"
    others = [one.workload for one in wanting[: NUM_NAMED + 1] if one is not sharer][:NUM_NAMED]
    names = [one.name if one.owner == sharer.workload.owner else f"one of {one.owner}" for one in others]
    if num_others > NUM_NAMED:
        names.append(f"{num_others - NUM_NAMED} more")
    return f"{own}{wanted}, together with {listed(names)} on {why}"
