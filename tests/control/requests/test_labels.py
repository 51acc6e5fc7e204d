"""Labels that people give machines: what they do to groups, that they last, and who is told."""

from pathlib import Path

import pytest
from tests.control.requests.test_machines import TwoMachines

from pliant.api.queues import HostsRequest
from pliant.core.errors import InvalidInput, NotFound
from pliant.core.event import EventKind
from pliant.core.job import NodeId
from pliant.core.machine import MAX_LABELS, MachineLabels
from pliant.core.plan import NodeView
from pliant.core.queue import Hosts, Queue, ResourceGroup


class Labelled(TwoMachines):
    """The machines a and b, of which the agent of a declares `gpu=h100` and `rack=7`."""

    def declare(self) -> None:
        self.cluster.add_node(NodeView(id=NodeId("a"), slots=(0, 1, 2, 3), labels={"gpu": "h100", "rack": "7"}))


@pytest.fixture
def two(tmp_path: Path) -> Labelled:
    world = Labelled(tmp_path)
    world.declare()
    return world


def carried(world: TwoMachines, name: str = "a") -> dict[str, str]:
    return dict(world.control.inquiries.machines.get(name, None).labels)


def test_labels_lie_over_those_that_the_agent_declares(two: Labelled) -> None:
    machines = two.control.inquiries.machines
    assert carried(two) == {"gpu": "h100", "rack": "7"}
    seen = machines.label("a", {"rack": "8", "gpu": "", "zone": "b"}, "ada", None)
    assert (dict(seen.labels), dict(seen.given_labels)) == (
        {"rack": "8", "zone": "b"},
        {"rack": "8", "gpu": "", "zone": "b"},
    )
    assert carried(two, "b") == {}
    machines.label("a", {}, "ben", None)
    assert carried(two) == {"gpu": "h100", "rack": "7"}
    assert two.said(EventKind.MACHINE_CHANGED) == [
        "a was labelled by ada: rack=8, no gpu, zone=b",
        "the labels that people gave a were taken away by ben: it carries its own",
    ]


def test_a_group_has_the_machines_that_carry_its_labels_now(two: Labelled) -> None:
    assert Hosts(labels={"rack": "7"}) == HostsRequest(labels={"rack": "7"}).noun()
    labels, ledger = two.control.inquiries.machines.labels, two.control.queries
    rack = Hosts(labels={"rack": "7"})
    assert [node.id for node in ledger.nodes() if rack.include(node)] == ["a"]
    labels.set("b", {"rack": "7"}, "ada")
    assert [node.id for node in ledger.nodes() if rack.include(node)] == ["a", "b"]
    assert [node.id for node in two.control.inquiries.machines.out_of_use.usable_now() if rack.include(node)] == [
        "a",
        "b",
    ]
    labels.set("a", {"rack": ""}, "ada")
    assert [node.id for node in ledger.nodes() if rack.include(node)] == ["b"]


def test_jobs_of_a_group_go_where_its_labels_go(two: Labelled) -> None:
    queues, labels = two.control.queues, two.control.inquiries.machines.labels
    queues.add_group(ResourceGroup(name="rack7", hosts=Hosts(labels={"rack": "7"})), "ada")
    queues.add_queue(Queue(name="seventh", resource_group="rack7"), "ada")
    labels.set("a", {"rack": ""}, "ada")
    job_id = two.submit(max_tasks=8, queue="seventh")
    assert two.places(job_id) == {}
    labels.set("b", {"rack": "7"}, "ada")
    two.settle(2.0)
    two.train(job_id)
    two.settle(2.0)
    assert two.places(job_id) == {"b": 4}
    labels.set("a", {}, "ada")
    two.settle(2.0)
    two.train(job_id)
    two.settle(2.0)
    assert two.places(job_id) == {"a": 4, "b": 4}
    labels.set("b", {}, "ada")
    two.settle(2.0)
    two.train(job_id)
    two.settle(2.0)
    assert two.places(job_id) == {"a": 4}
    assert two.said(EventKind.TASK_LOST) == []


def test_labels_survive_the_server(two: Labelled) -> None:
    two.control.inquiries.machines.label("b", {"rack": "9"}, "ada", None)
    two.restart()
    assert carried(two, "b") == {"rack": "9"}


def test_the_same_labels_again_change_nothing(two: Labelled) -> None:
    for _ in range(2):
        two.control.inquiries.machines.label("b", {"rack": "9"}, "ada", None)
    assert len(two.said(EventKind.MACHINE_CHANGED)) == 1
    kept = two.store.registry.get(MachineLabels, "b")
    assert kept is not None
    assert kept.revision == 1
    two.control.inquiries.machines.label("b", {"rack": "8"}, "ben", None)
    two.control.inquiries.machines.label("b", {}, "ben", None)
    assert two.store.registry.get(MachineLabels, "b") is None


def test_an_unknown_machine_and_too_many_labels_are_refused(two: Labelled) -> None:
    labels = two.control.inquiries.machines.labels
    with pytest.raises(NotFound, match="there is no machine 'gpu9'; there are a, b"):
        labels.set("gpu9", {"rack": "7"}, "ada")
    with pytest.raises(InvalidInput, match="21 labels are given"):
        labels.set("a", {f"x{number}": "" for number in range(MAX_LABELS + 1)}, "ada")
