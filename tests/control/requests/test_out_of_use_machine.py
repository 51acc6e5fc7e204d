"""Whatever is drained and excluded, and whenever the server dies: nothing is started on a slot that is out of use."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.control.requests.test_machines import TwoMachines

from pliant.control.requests.out_of_use import OutOfUse
from pliant.core.errors import Conflict
from pliant.core.job import NodeId
from pliant.core.machine import MachineDrain
from pliant.sim.store import MemoryStore

names = st.sampled_from("ab")
slots = st.none() | st.lists(st.integers(0, 3), min_size=1, max_size=3)
Out = set[tuple[str, int | None]]


class InMemory(TwoMachines):
    """Two machines of four slots, without a disk."""

    def new_store(self) -> MemoryStore:  # type: ignore[override]
        return MemoryStore()


class OutOfUseMachine(RuleBasedStateMachine):
    """Elastic and fixed jobs on two machines, beside people who take slots out of use and bring them back."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.world = InMemory(Path(self.folder.name))
        self.out: Out = set()
        """What should be excluded: machines (with None) and slots."""
        self.drained: set[str] = set()
        self.num_seen = 0

    @property
    def out_of_use(self) -> OutOfUse:
        return self.world.control.inquiries.machines.out_of_use

    @rule(size=st.integers(1, 8), fixed=st.booleans())
    def submit(self, size: int, fixed: bool) -> None:
        bounds = {"fixed": True, "min_tasks": size, "virtual_workers": size} if fixed else {}
        self.world.submit(max_tasks=size, **bounds)

    @rule(name=names, which=slots, because=st.sampled_from(("ECC errors", "its fan")))
    def exclude(self, name: str, which: list[int] | None, because: str) -> None:
        self.out_of_use.exclude(name, which, because, "bob")
        self.out |= {(name, None)} if which is None else {(name, slot) for slot in which}
        self.world.settle(0.2)

    @rule(name=names, which=slots)
    def include(self, name: str, which: list[int] | None) -> None:
        try:
            self.out_of_use.include(name, which, "bob")
        except Conflict:
            assert (name, None) in self.out
            assert which is not None
            return
        gone = {one for one in self.out if one[0] == name and (which is None or one[1] in which)}
        self.out -= gone
        self.world.settle(0.2)

    @rule(name=names, drained=st.booleans())
    def drain(self, name: str, drained: bool) -> None:
        (self.out_of_use.drain if drained else self.out_of_use.put_back)(name, "bob")
        (self.drained.add if drained else self.drained.discard)(name)
        self.world.settle(0.2)

    @rule(number=st.integers(0, 20))
    def lose(self, number: int) -> None:
        tasks = self.world.cluster.observe().tasks
        if tasks:
            self.world.exit(tasks[number % len(tasks)].task_id, 1)
            self.world.settle(0.5)

    @rule()
    def die(self) -> None:
        self.world.restart()

    @rule()
    def wait(self) -> None:
        self.world.settle(2.0)

    @invariant()
    def nothing_is_started_there(self) -> None:
        orders = self.world.cluster.orders
        started = {(order.node_id, slot) for order in orders[self.num_seen :] for slot in order.slots}
        self.num_seen = len(orders)
        assert not {(node, slot) for node, slot in started if self.is_out(node, slot)}

    @invariant()
    def what_is_shown_is_what_was_said(self) -> None:
        for machine in self.world.control.inquiries.machines.page(None).machines:
            shown = {slot.slot for slot in machine.slots if slot.excluded is not None}
            assert shown == {slot.slot for slot in machine.slots if self.is_out(machine.name, slot.slot, drains=False)}
            assert (machine.drained_by is not None) == (machine.name in self.drained)
            kept = self.world.store.registry.get(MachineDrain, machine.name)
            assert (kept is not None) == (NodeId(machine.name) in self.out_of_use.drains)

    def is_out(self, node: str, slot: int, *, drains: bool = True) -> bool:
        """Tell whether a slot is out of use."""
        return bool({(node, None), (node, slot)} & self.out) or (drains and node in self.drained)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()


TestOutOfUse = OutOfUseMachine.TestCase
TestOutOfUse.settings = settings(max_examples=15, stateful_step_count=15, deadline=None)
