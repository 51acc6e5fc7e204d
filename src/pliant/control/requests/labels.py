"""The labels that people give machines, kept in the registry and laid over those that their agents declare.

Groups choose their machines by labels, so a label that is given moves jobs as a queue that is changed does. Decisions
and pages see the labels that a machine carries, since all of them read the hosts from the ledger (`Ledger.observe`).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from pliant.control.jobs.ledger import Ledger
from pliant.control.requests.out_of_use import OutOfUse, note_machine_change
from pliant.core.errors import InvalidInput
from pliant.core.job import NodeId
from pliant.core.machine import MAX_LABELS, MachineLabels
from pliant.core.plan import NodeView
from pliant.core.ports import Clock, Store
from pliant.core.registry import Registry, iterate_nouns


class GivenLabels:
    """What people say of machines. Safe to call from any thread."""

    def __init__(
        self, *, registry: Registry, ledger: Ledger, require: Callable[[str], NodeId], now: Callable[[], float]
    ) -> None:
        self._registry = registry
        self._ledger = ledger
        self._require = require
        self._now = now
        self.given: Mapping[NodeId, MachineLabels] = {}
        """By machine; replaced, never changed."""
        self._laid: tuple[tuple[NodeView, ...], Mapping[NodeId, MachineLabels], tuple[NodeView, ...]] = (), {}, ()
        """What was laid over which machines last, and what came of it."""

    def load(self) -> None:
        """Take up what the registry holds; call before the first decision."""
        with self._ledger.lock:
            self.given = {NodeId(kept.noun.name): kept.noun for kept in iterate_nouns(self._registry, MachineLabels)}

    def of(self, name: str) -> Mapping[str, str]:
        """Return the labels that people gave a machine; an empty value takes away a declared one."""
        given = self.given.get(NodeId(name))
        return {} if given is None else given.labels

    def laid_over(self, nodes: tuple[NodeView, ...]) -> tuple[NodeView, ...]:
        """Return these machines with the labels that they carry."""
        given = self.given
        if not given:
            return nodes
        of_nodes, of_given, found = self._laid
        if nodes is not of_nodes or given is not of_given:
            found = tuple(
                replace(node, labels=given[node.id].over(node.labels)) if node.id in given else node for node in nodes
            )
            self._laid = nodes, given, found
        return found

    def set(self, name: str, labels: Mapping[str, str], who: str) -> None:
        """Give a machine these labels, in place of all that people gave it before; without any, it has its own.

        Raises:
            NotFound: there is no machine of that name.
            InvalidInput: they are too many.
        """
        if len(labels) > MAX_LABELS:
            raise InvalidInput.at("labels", f"{len(labels)} labels are given; a machine takes {MAX_LABELS} at most")
        with self._ledger.lock:
            node_id = self._require(name)
            if dict(labels) == dict(self.of(name)):
                return
            self._keep(node_id, MachineLabels(name=name, owner=who, labels=dict(labels)))
            note_machine_change(self._ledger, _words(name, labels, who), name, who)

    def forget(self, name: str) -> None:
        """Forget the labels of a machine that is removed. The caller holds the lock, and tells of it."""
        self._keep(NodeId(name), MachineLabels(name=name, owner="", labels={}))

    def _keep(self, node_id: NodeId, noun: MachineLabels) -> None:
        rest = {node: one for node, one in self.given.items() if node != node_id}
        if noun.labels:
            (self._registry.replace if node_id in self.given else self._registry.add)(noun, at=self._now())
            rest[node_id] = noun
        elif node_id in self.given:
            self._registry.remove(MachineLabels, noun.name)
        self.given = rest


def labels_of(store: Store, clock: Clock, ledger: Ledger, out_of_use: OutOfUse) -> GivenLabels:
    """Return those of a control room; nothing is loaded yet. From now on decisions and pages see them."""
    labels = GivenLabels(registry=store.registry, ledger=ledger, require=out_of_use.require, now=clock.now)
    ledger.labelled = labels.laid_over
    return labels


def _words(name: str, labels: Mapping[str, str], who: str) -> str:
    """Return what was done in a sentence."""
    if not labels:
        return f"the labels that people gave {name} were taken away by {who}: it carries its own"
    said = [f"{label}={value}" if value else f"no {label}" for label, value in labels.items()]
    return f"{name} was labelled by {who}: {', '.join(said)}"
