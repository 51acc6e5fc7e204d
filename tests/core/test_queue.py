"""Which slots of which hosts a resource group has."""

import pytest

from pliant.core.job import NodeId
from pliant.core.plan import NodeView
from pliant.core.queue import Hosts, ResourceGroup

NODES = (
    NodeView(id=NodeId("big"), slots=tuple(range(8)), labels={"kind": "gpu", "rack": "1"}, num_gpus=8, num_cpus=64),
    NodeView(id=NodeId("small"), slots=tuple(range(2)), labels={"kind": "gpu"}, num_gpus=2, num_cpus=16),
    NodeView(id=NodeId("plain"), slots=tuple(range(16)), num_cpus=16),
)


@pytest.mark.parametrize(
    ("hosts", "slots", "found"),
    [
        (Hosts(), None, {"big": 8, "small": 2, "plain": 16}),
        (Hosts(), 4, {"big": 4, "small": 2, "plain": 4}),
        (Hosts(), "ngpus", {"big": 8, "small": 2}),
        (Hosts(), "min(ngpus, 4) // 2", {"big": 2, "small": 1}),
        (Hosts(), "ncpus // 8", {"big": 8, "small": 2, "plain": 2}),
        (Hosts(), "-ngpus", {}),
        (Hosts(), 0, {}),
        (Hosts(names=("plain", "gone")), None, {"plain": 16}),
        (Hosts(names=()), None, {}),
        (Hosts(labels={"kind": "gpu"}), None, {"big": 8, "small": 2}),
        (Hosts(labels={"kind": "gpu", "rack": "1"}), "ngpus - 1", {"big": 7}),
    ],
)
def test_a_group_has_its_slots_of_the_hosts_it_chooses(
    hosts: Hosts, slots: int | str | None, found: dict[str, int]
) -> None:
    group = ResourceGroup(name="g", hosts=hosts, slots_per_host=slots)

    assert group.slots_of(NODES) == found


@pytest.mark.parametrize(
    ("hosts", "slots", "nodes", "why"),
    [
        (Hosts(), "ngpus", NODES, ""),
        (Hosts(names=("plain",)), "ngpus", NODES, "`ngpus`, which is 0 here: plain has 16 slots, 0 GPUs and 16 CPUs"),
        (Hosts(), 0, NODES[:1], "slots per host are `0`, which is 0 here: big has 8 slots, 8 GPUs and 64 CPUs"),
        (Hosts(names=("a", "b")), None, NODES, "no host here is called a or b; there are big, small, plain"),
        (Hosts(labels={"rack": "7"}), None, NODES[:1], "no host here carries rack=7; there is big"),
        (Hosts(), None, (), "there are no hosts yet"),
    ],
)
def test_a_group_without_slots_says_why(
    hosts: Hosts, slots: int | str | None, nodes: tuple[NodeView, ...], why: str
) -> None:
    said = ResourceGroup(name="g", hosts=hosts, slots_per_host=slots).lack(nodes)

    assert said.endswith(why)
    assert bool(said) == bool(why)


def test_only_all_slots_of_all_hosts_are_the_whole_pool() -> None:
    assert ResourceGroup(name="all").is_whole_pool
    assert not ResourceGroup(name="g", slots_per_host=4).is_whole_pool
    assert not ResourceGroup(name="g", hosts=Hosts(names=())).is_whole_pool
