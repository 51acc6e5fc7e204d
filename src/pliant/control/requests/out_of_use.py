"""What is out of use: machines that are drained, slots that are excluded. Kept in the registry, held for the scheduler.

The scheduler is not shown slots that are out of use, but for those of jobs that cannot be paused without losing their
work. So elastic jobs leave at their next step boundary, as they leave a slot that is gone; fixed jobs stay until they
end; and nothing is started there. Example: on a machine with 4 slots an elastic job has 3 and a fixed one 1. It is
drained: the scheduler sees 1 slot there, the fixed job's. The elastic job gives up its 3 and goes on elsewhere, or is
paused. The fixed job ends, and the machine is empty.

Groups and queues go on counting slots of a drained machine as theirs: it comes back soon. They do not count slots that
are excluded.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from pliant.control.jobs.ledger import Ledger
from pliant.core.errors import Conflict, InvalidInput, NotFound
from pliant.core.event import EventKind
from pliant.core.job import NodeId
from pliant.core.joining import JoinedMachine
from pliant.core.machine import MachineDrain, SlotExclusion, exclusion_name, exclusion_words
from pliant.core.plan import NodeView, without_slots
from pliant.core.ports import Clock, Store
from pliant.core.registry import Registry, iterate_nouns
from pliant.policy.schedule.order import natural

Slot = tuple[NodeId, int]
_NUM_NAMED: Final = 10


class OutOfUse:
    """Drains and exclusions. Safe to call from any thread."""

    def __init__(
        self,
        *,
        registry: Registry,
        ledger: Ledger,
        nodes: Callable[[], Sequence[NodeView]],
        now: Callable[[], float],
    ) -> None:
        self._registry = registry
        self._ledger = ledger
        self._nodes = nodes
        self._now = now
        self.drains: Mapping[NodeId, MachineDrain] = {}
        self.exclusions: Mapping[NodeId, tuple[SlotExclusion, ...]] = {}
        """By machine, that of the whole machine first, then by slot; never empty. Both are replaced, never changed."""

    def load(self) -> None:
        """Take up what the registry holds; call before the first decision."""
        with self._ledger.lock:
            self.drains = {NodeId(kept.noun.name): kept.noun for kept in iterate_nouns(self._registry, MachineDrain)}
            self._load_exclusions()

    def _load_exclusions(self) -> None:
        found: dict[NodeId, list[SlotExclusion]] = {}
        for kept in iterate_nouns(self._registry, SlotExclusion):
            found.setdefault(NodeId(kept.noun.machine), []).append(kept.noun)
        self.exclusions = {
            node_id: tuple(sorted(every, key=lambda one: -1 if one.slot is None else one.slot))
            for node_id, every in found.items()
        }

    # What is out of use

    def machines(self) -> tuple[NodeId, ...]:
        """Return the machines that are here, those of which something is out of use, and all that have joined.

        In natural order.
        """
        here = {node.id for node in self._nodes()}
        joined = {NodeId(kept.noun.name) for kept in iterate_nouns(self._registry, JoinedMachine)}
        return tuple(sorted(here | joined | self.drains.keys() | self.exclusions.keys(), key=natural))

    def excluded(self, nodes: Iterable[NodeView]) -> frozenset[Slot]:
        """Return the slots of these hosts that are excluded."""
        of_some = (node for node in nodes if node.id in self.exclusions) if self.exclusions else ()
        return frozenset((node.id, slot) for node in of_some for slot in self._excluded_of(node))

    def closed(self, nodes: Sequence[NodeView]) -> frozenset[Slot]:
        """Return the slots of these hosts on which nothing is started."""
        drained = frozenset((node.id, slot) for node in nodes if node.id in self.drains for slot in node.slots)
        return drained | self.excluded(nodes)

    def usable(self, nodes: Sequence[NodeView], but: Collection[Slot] = ()) -> tuple[NodeView, ...]:
        """Return these hosts with the slots that count: those that are not excluded, and those named."""
        return without_slots(nodes, self.excluded(nodes) - set(but))

    def usable_now(self) -> tuple[NodeView, ...]:
        """Return the hosts that there are now with the slots that count."""
        return self.usable(self._nodes())

    def open_now(self) -> tuple[NodeView, ...]:
        """Return the hosts that there are now with the slots on which tasks are started."""
        nodes = self._nodes()
        return without_slots(nodes, self.closed(nodes))

    def words(self, nodes: Iterable[NodeView]) -> Mapping[NodeId, str]:
        """Return what is excluded of each of these hosts, in words; of most nothing."""
        every = {node.id: self.exclusions[node.id] for node in nodes if node.id in self.exclusions}
        return {node_id: exclusion_words(node_id, exclusions) for node_id, exclusions in every.items()}

    def _excluded_of(self, node: NodeView) -> Iterable[int]:
        exclusions = self.exclusions.get(node.id, ())
        if any(one.slot is None for one in exclusions):
            return node.slots
        return {slot for one in exclusions if (slot := one.slot) is not None and slot in node.slots}

    # Changes

    def drain(self, name: str, who: str, because: str = "") -> None:
        """Let tasks leave a machine, and start none there, until it is returned; one that is drained stays so.

        Args:
            name: of the machine.
            who: drains it.
            because: why, for people; empty: nobody says.

        Raises:
            NotFound: there is none of that name.
        """
        with self._ledger.lock:
            node_id = self.require(name)
            if node_id not in self.drains:
                drain = MachineDrain(name=name, owner=who, at=self._now())
                self._registry.add(drain, at=drain.at)
                self.drains = {**self.drains, node_id: drain}
                why = f" ({because})" if because else ""
                note_machine_change(
                    self._ledger, f"{name} was drained by {who}{why}: nothing is started there any more", name, who
                )

    def put_back(self, name: str, who: str) -> None:
        """Let tasks be started on a machine again, also if it is not here now; what is excluded stays so.

        Raises:
            NotFound: there is none of that name.
        """
        with self._ledger.lock:
            if self.require(name) in self.drains:
                self._registry.remove(MachineDrain, name)
                self.drains = {node: drain for node, drain in self.drains.items() if node != name}
                note_machine_change(
                    self._ledger, f"{name} was returned by {who}: tasks are started there again", name, who
                )

    def exclude(self, name: str, slots: Sequence[int] | None, because: str, who: str) -> None:
        """Let tasks leave slots of a machine, or all of it, and start none there, until they are included again.

        Of slots that are excluded already the reason changes.

        Args:
            name: of the machine.
            slots: which; None: the whole machine.
            because: why, for people.
            who: excludes them.

        Raises:
            NotFound: there is no machine of that name.
            InvalidInput: it has no such slot now.
        """
        with self._ledger.lock:
            node_id = self.require(name)
            wanted = (None,) if slots is None else self._require_slots(node_id, slots)
            known = {one.slot: one for one in self.exclusions.get(node_id, ())}
            now = self._now()
            changed = [slot for slot in wanted if slot not in known or known[slot].because != because]
            for slot in changed:
                noun = SlotExclusion(
                    name=exclusion_name(name, slot), owner=who, at=now, machine=name, slot=slot, because=because
                )
                (self._registry.replace if slot in known else self._registry.add)(noun, at=now)
            if changed:
                self._load_exclusions()
                note_machine_change(self._ledger, f"{_what(name, changed)} excluded by {who}: {because}", name, who)

    def include(self, name: str, slots: Sequence[int] | None, who: str) -> None:
        """Let tasks be started again on slots of a machine, or on all of it; what is not excluded stays as it is.

        Raises:
            NotFound: there is no machine of that name.
            Conflict: single slots are asked for, and the machine is excluded as a whole.
        """
        with self._ledger.lock:
            exclusions = self.exclusions.get(self.require(name), ())
            if slots is not None and any(one.slot is None for one in exclusions):
                raise Conflict(f"{name} is excluded as a whole, not by slots; include all of it")
            gone = [one for one in exclusions if slots is None or one.slot in slots]
            for one in gone:
                self._registry.remove(SlotExclusion, one.name)
            if gone:
                self._load_exclusions()
                what = _what(name, None if slots is None else [one.slot for one in gone])
                note_machine_change(
                    self._ledger, f"{what} included again by {who}: tasks are started there again", name, who
                )

    def forget(self, name: str) -> None:
        """Forget what is out of use of a machine that is removed. The caller holds the lock, and tells of it."""
        node_id = NodeId(name)
        if node_id in self.drains:
            self._registry.remove(MachineDrain, name)
            self.drains = {node: drain for node, drain in self.drains.items() if node != name}
        for one in self.exclusions.get(node_id, ()):
            self._registry.remove(SlotExclusion, one.name)
        self._load_exclusions()

    def require(self, name: str) -> NodeId:
        """Return the id of a machine, which need not be here.

        Raises:
            NotFound: there is none of that name.
        """
        every = self.machines()
        if name not in every:
            raise NotFound(f"there is no machine {name!r:.80}; there are {', '.join(every[:_NUM_NAMED]) or 'none'}")
        return NodeId(name)

    def _require_slots(self, node_id: NodeId, slots: Sequence[int]) -> tuple[int, ...]:
        there = next((node.slots for node in self._nodes() if node.id == node_id), ())
        strange = [slot for slot in slots if slot not in there]
        if strange:
            has = f"it has {there[0]} to {there[-1]}" if there else "it is not here now: exclude all of it, or none"
            raise InvalidInput.at("slots", f"{node_id} has no slot {strange[0]}; {has}")
        return tuple(sorted(set(slots)))


def out_of_use_of(store: Store, clock: Clock, ledger: Ledger) -> OutOfUse:
    """Return that of a control room; nothing is loaded yet. Decisions do not see slots that are out of use."""
    out_of_use = OutOfUse(registry=store.registry, ledger=ledger, nodes=lambda: ledger.observe().nodes, now=clock.now)
    ledger.nodes = out_of_use.open_now
    return out_of_use


def note_machine_change(ledger: Ledger, message: str, name: str, who: str) -> None:
    """Say what somebody changed of a machine, and let it be decided anew. The caller holds the lock."""
    draft = ledger.draft()
    draft.say(EventKind.MACHINE_CHANGED, message, data={"name": name, "who": who})
    ledger.dirty = True
    ledger.commit(draft)


def _what(machine: str, slots: Sequence[int | None] | None) -> str:
    """Return slots of a machine, or the machine, and the verb that fits."""
    numbers = [str(slot) for slot in slots or () if slot is not None]
    if not numbers:
        return f"{machine} was"
    if len(numbers) == 1:
        return f"slot {numbers[0]} of {machine} was"
    return f"slots {', '.join(numbers[:-1])} and {numbers[-1]} of {machine} were"
