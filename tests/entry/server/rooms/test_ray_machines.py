"""Between Ray's autoscaler and the pool: over a real control room, on a played cluster."""

import itertools
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from tests.control.requests.test_machines import TwoMachines

from pliant.cluster.ray.messages import RayNode, ScaleRay
from pliant.control.requests.autoscaling import AutoscaledPool
from pliant.control.requests.joining import Joining, JoiningRoom
from pliant.core.event import EventKind
from pliant.core.job import JobId
from pliant.core.joining import JoinedMachine
from pliant.core.queue import Hosts, Queue, ResourceGroup
from pliant.entry.server.rooms.ray_machines import GONE_S, LET_GO_GONE_S, RAY, RayMachines, resources_of
from pliant.policy.autoscale.machines import MachineKind

ANY = MachineKind(least=0, most=3, idle_s=300.0, num_slots=4)
GPU = MachineKind(name="gpu", least=0, most=2, idle_s=600.0, num_slots=4, labels={"gpu": "a100"}, num_gpus=2)


class RayPlayed(TwoMachines):
    """The server's own machine is a, and b is a node of Ray's; both have four slots."""

    def __init__(self, home: Path, *kinds: MachineKind) -> None:
        super().__init__(home)
        numbers = itertools.count(1)
        self.here = {"b"}
        self.forgotten: list[str] = []
        self.joining = Joining(
            registry=self.store.registry, now=self.clock.now, token_hex=lambda size: f"{next(numbers):0{2 * size}x}"
        )
        self.join("b")
        self.control.inquiries.machines.joining = JoiningRoom(
            joining=self.joining,
            pin=lambda: "2d" * 32,
            address=lambda: "10.0.0.1:7314",
            is_here=self.here.__contains__,
            forget=self.forgotten.append,
        )
        pool = AutoscaledPool(self.control.inquiries.machines, self.control.standing, self.control.queues)
        self.machines = RayMachines(pool, kinds)
        self.at = 0.0

    def join(self, name: str, owner: str = RAY) -> None:
        one = JoinedMachine(name=name, owner=owner, fingerprint="ab" * 32, joined_at=5.0, slots=(0, 1, 2, 3))
        self.joining.note(one)

    def look(self, *nodes: RayNode, later_s: float = 0.0) -> ScaleRay | None:
        self.at += later_s
        wish = self.machines.look(nodes, self.at)
        self.settle(0.2)
        return wish

    def wish(self, *nodes: RayNode, later_s: float = 0.0) -> tuple[int, tuple[str, ...]]:
        found = self.look(*nodes, later_s=later_s)
        assert found is not None
        assert found.num_machines.keys() == {"pliant"}
        return found.num_machines["pliant"], found.let_go

    def asked(self, *nodes: RayNode, later_s: float = 0.0) -> Mapping[str, int]:
        found = self.look(*nodes, later_s=later_s)
        assert found is not None
        return found.num_machines

    def state(self, name: str) -> str:
        return self.control.inquiries.machines.get(name, None).state

    def fill(self, num_tasks: int) -> JobId:
        job_id = self.submit(max_tasks=num_tasks)
        self.train(job_id)
        self.settle(2.0)
        return job_id


def node(name: str = "b", *, resource: str = "pliant", draining: str = "") -> RayNode:
    return RayNode(ray_id=f"id-{name}", machine=name, state="running", resource=resource, draining=draining)


@pytest.fixture
def played(tmp_path: Path) -> Iterator[RayPlayed]:
    played = RayPlayed(tmp_path, ANY)
    with closing(played.store):
        yield played


@pytest.fixture
def kinds(tmp_path: Path) -> Iterator[RayPlayed]:
    """Two kinds may be asked for."""
    played = RayPlayed(tmp_path, ANY, GPU)
    with closing(played.store):
        yield played


@pytest.fixture
def unlimited(tmp_path: Path) -> Iterator[RayPlayed]:
    """Nothing may be asked of Ray's autoscaler."""
    played = RayPlayed(tmp_path)
    with closing(played.store):
        yield played


def test_what_waits_brings_machines_and_what_is_idle_is_drained_and_let_go(played: RayPlayed) -> None:
    assert played.wish(node()) == (1, ()), "idle since a moment"
    jobs = [played.fill(8)]
    assert played.places(jobs[0]) == {"a": 4, "b": 4}
    assert played.wish(node()) == (1, ())
    jobs.append(played.fill(4))
    assert played.wish(node()) == (2, ()), "so much could grow onto another one"
    jobs.append(played.fill(8))
    assert played.wish(node()) == (3, ()), "the most"
    for job_id in jobs:
        played.control.requests.stop(job_id, "ada", now=True)
    played.settle(5.0)
    assert played.wish(node(), later_s=1.0) == (1, ())
    assert played.wish(node(), later_s=299.0) == (1, ())
    assert played.wish(node(), later_s=1.0) == (0, ("id-b",))
    assert played.state("b") == "drained"
    assert played.said(EventKind.MACHINE_CHANGED) == [
        "b was drained by Ray's autoscaler (it was idle for 5 min 00 s): nothing is started there any more"
    ]
    played.submit(max_tasks=8)
    played.settle(1.0)
    assert played.wish(node(), later_s=1.0) == (1, ()), "it is wanted again before it went"
    assert played.state("b") == "in use"


def test_a_machine_with_a_task_is_never_let_go(played: RayPlayed) -> None:
    played.control.inquiries.machines.out_of_use.drain("a", "ada")
    played.fill(2)
    for _ in range(3):
        assert played.wish(node(), later_s=1000.0) == (1, ())
    assert played.state("b") == "in use"


def test_what_people_have_drained_stays_so(played: RayPlayed) -> None:
    played.control.inquiries.machines.out_of_use.drain("b", "ada")
    played.look(node())
    assert played.wish(node(), later_s=301.0) == (0, ("id-b",)), "it may go all the same"
    played.fill(8)
    assert played.wish(node(), later_s=1.0) == (1, ("id-b",)), "another one comes for it"
    assert played.control.inquiries.machines.get("b", None).drained_by == "ada"


def test_without_limits_nothing_is_asked_but_what_ray_drains_is_drained(unlimited: RayPlayed) -> None:
    job_id = unlimited.fill(8)
    assert unlimited.look(node(), later_s=1000.0) is None
    assert unlimited.look(node(draining="Ray drains it")) is None
    unlimited.train(job_id)
    unlimited.settle(2.0)
    assert (unlimited.places(job_id), unlimited.state("b")) == ({"a": 4}, "drained")
    assert "b was drained by Ray's autoscaler (Ray drains it)" in unlimited.said(EventKind.MACHINE_CHANGED)[0]
    unlimited.look(node())
    assert unlimited.state("b") == "in use", "its node has started anew"


def test_what_ray_drains_counts_for_nothing_and_another_one_comes(played: RayPlayed) -> None:
    played.fill(8)
    assert played.wish(node()) == (1, ())
    assert played.wish(node(draining="Ray drains it")) == (1, ())
    assert played.wish(node(draining="Ray drains it"), node("c")) == (1, ())


def test_a_node_that_the_autoscaler_was_not_asked_for_is_neither_counted_nor_let_go(played: RayPlayed) -> None:
    played.look(node(resource=""))
    assert played.wish(node(resource=""), later_s=1000.0) == (0, ())
    assert played.state("b") == "in use"


def test_a_node_that_calls_itself_as_somebody_elses_machine_does_nothing_to_that(played: RayPlayed) -> None:
    played.join("a", "ada")
    played.here.add("a")
    played.look(node("a", draining="Ray drains it"), node("local", draining="Ray drains it"), node("../b"))
    assert played.wish(node("a"), later_s=1000.0) == (0, ())
    assert played.state("a") == "in use"


def test_what_is_said_of_a_drain_is_one_line(played: RayPlayed) -> None:
    played.look(node(draining="it\n\x1b[2J" + 2000 * "x"))
    (message,) = played.said(EventKind.MACHINE_CHANGED)
    assert message.isprintable()
    assert len(message) < 1200


def test_a_node_that_never_joins_is_let_go_as_well(played: RayPlayed) -> None:
    assert played.wish(node(), node("c")) == (2, ())
    assert played.wish(node(), node("c"), later_s=300.0) == (0, ("id-b", "id-c"))


def test_what_ray_has_taken_away_is_taken_out_of_the_pool(played: RayPlayed) -> None:
    for name, owner in (("gone", RAY), ("adas", "ada")):
        played.join(name, owner)
    played.look(node())
    played.look(node(), later_s=300.0)
    assert played.state("b") == "drained"
    played.look(later_s=10.0)
    assert played.forgotten == []
    played.look(later_s=LET_GO_GONE_S)
    assert played.forgotten == ["b"], "it was let go"
    played.look(later_s=GONE_S)
    assert played.forgotten == ["b", "gone"]
    assert [one.name for one in played.joining.all()] == ["adas"]


def test_what_may_still_have_tasks_is_not_taken_out(played: RayPlayed) -> None:
    played.fill(8)
    played.here.clear()
    played.look(node())
    for _ in range(3):
        played.look(later_s=GONE_S)
    assert played.forgotten == []


def test_jobs_of_a_queue_over_some_machines_bring_only_those_that_it_would_have(played: RayPlayed) -> None:
    add_queue(played, "home", ResourceGroup(name="home", owner="ada", hosts=Hosts(names=("a",))))
    add_queue(played, "three", ResourceGroup(name="three", owner="ada", slots_per_host=3))
    played.submit(max_tasks=8, queue="home")
    played.settle(2.0)
    assert played.wish() == (0, ()), "a new one is not called so"
    played.submit(max_tasks=8, queue="three")
    played.settle(2.0)
    assert played.wish(node()) == (3, ()), "three slots of each"


def test_of_several_kinds_those_come_that_the_queue_would_have(kinds: RayPlayed) -> None:
    add_queue(kinds, "a100", ResourceGroup(name="a100", owner="ada", hosts=Hosts(labels={"gpu": "a100"})))
    add_queue(kinds, "gpus", ResourceGroup(name="gpus", owner="ada", slots_per_host="ngpus"))
    kinds.submit(max_tasks=1, queue="a100")
    kinds.settle(2.0)
    assert kinds.asked() == {"pliant": 0, "pliant_gpu": 1}
    kinds.submit(max_tasks=3, queue="gpus")
    kinds.settle(2.0)
    assert kinds.asked() == {"pliant": 0, "pliant_gpu": 2}, "as many slots of a machine as it has GPUs"
    for _ in range(2):
        kinds.submit(max_tasks=8)
    kinds.settle(2.0)
    assert kinds.asked() == {"pliant": 2, "pliant_gpu": 2}, "what may run anywhere is on the first kind"


def test_a_machine_is_of_the_kind_of_its_node_and_idle_for_as_long_as_that_may_be(kinds: RayPlayed) -> None:
    kinds.join("c")
    nodes = node(), node("c", resource="pliant_gpu"), node("d", resource="pliant_tpu")
    assert kinds.asked(*nodes) == {"pliant": 1, "pliant_gpu": 1}
    assert kinds.asked(*nodes, later_s=300.0) == {"pliant": 0, "pliant_gpu": 1}
    assert kinds.asked(*nodes, later_s=300.0) == {"pliant": 0, "pliant_gpu": 0}
    assert kinds.look(*nodes) == ScaleRay(num_machines={"pliant": 0, "pliant_gpu": 0}, let_go=("id-b", "id-c"))


def test_agents_on_nodes_of_a_kind_are_started_with_its_labels() -> None:
    assert resources_of((ANY, GPU)) == {"pliant": (), "pliant_gpu": ("--label=gpu=a100",)}


def add_queue(played: RayPlayed, name: str, group: ResourceGroup) -> None:
    played.control.queues.add_group(group, "ada")
    played.control.queues.add_queue(Queue(name=name, owner="ada", resource_group=group.name), "ada")
