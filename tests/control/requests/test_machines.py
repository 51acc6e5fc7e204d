"""Machines that are drained, slots that are excluded: who leaves, who stays, and that nothing is started there."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.control.conftest import World

from pliant.core.access import VisibleJobs
from pliant.core.errors import Conflict, InvalidInput, NotFound
from pliant.core.event import EventKind
from pliant.core.job import JobId, NodeId
from pliant.core.lifecycle import JobState
from pliant.core.machine import DeviceFacts, MachineFacts, MeasuredMachine
from pliant.core.plan import NodeView
from pliant.sim.cluster import SimCluster, SimTimes
from pliant.sim.tasks import SimTasks
from pliant.sim.training import SimWork


class TwoMachines(World):
    """A server over the machines a and b, with four slots each."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, 1)
        nodes = [NodeView(id=NodeId(name), slots=(0, 1, 2, 3)) for name in "ab"]
        self.cluster = SimCluster(self.clock, nodes, SimTimes(drain_s=None))
        self.links = SimTasks(self.clock, self.cluster, lambda _: SimWork(virtual_workers=self.virtual_workers))
        self.control = self._control()
        self.links.connect(self.control)
        self.control.start()

    def places(self, job_id: JobId) -> dict[str, int]:
        """Return how many tasks of a job are on each machine."""
        nodes = [task.node_id for task in self.tasks(job_id)]
        return {node: nodes.count(node) for node in sorted(set(nodes))}


@pytest.fixture
def two(tmp_path: Path) -> Iterator[TwoMachines]:
    two = TwoMachines(tmp_path)
    with closing(two.store):
        yield two


def fixed(world: World, size: int) -> JobId:
    return world.submit(fixed=True, min_tasks=size, max_tasks=size, virtual_workers=size)


def test_elastic_jobs_leave_at_a_step_boundary_and_return(two: TwoMachines) -> None:
    job_id = two.submit(max_tasks=8)
    two.train(job_id)
    two.settle(2.0)
    assert two.places(job_id) == {"a": 4, "b": 4}
    two.control.inquiries.machines.out_of_use.drain("a", "ada")
    two.train(job_id)
    two.settle(2.0)
    assert two.places(job_id) == {"b": 4}
    assert two.job(job_id).state is JobState.RUNNING
    assert two.control.inquiries.machines.get("a", None).state == "drained"
    two.control.inquiries.machines.out_of_use.put_back("a", "ada")
    two.train(job_id)
    two.settle(2.0)
    assert two.places(job_id) == {"a": 4, "b": 4}
    assert two.said(EventKind.MACHINE_CHANGED) == [
        "a was drained by ada: nothing is started there any more",
        "a was returned by ada: tasks are started there again",
    ]
    assert two.said(EventKind.TASK_LOST) == []


def test_fixed_jobs_stay_until_they_end_and_nobody_takes_their_slots(world: World) -> None:
    stays, leaves = fixed(world, 3), world.submit(max_tasks=8)
    world.train(leaves)
    world.settle(2.0)
    assert (len(world.tasks(stays)), len(world.tasks(leaves))) == (3, 5)
    world.control.inquiries.machines.out_of_use.drain("local", "ada")
    newcomer = world.submit()
    world.settle(2.0)
    assert (len(world.tasks(stays)), world.job(leaves).state) == (3, JobState.PAUSED)
    assert world.job(newcomer).state is JobState.PENDING
    assert world.control.inquiries.machines.get("local", None).state == "draining"
    for task in world.tasks(stays):
        world.exit(task.id, 0)
    world.settle(2.0)
    assert world.job(stays).state is JobState.COMPLETED
    found = world.control.inquiries.machines.get("local", None)
    assert (found.state, found.num_taken, found.drained_by) == ("drained", 0, "ada")
    assert world.tasks(newcomer) == ()


def test_a_fixed_job_that_fails_starts_again_elsewhere_only(two: TwoMachines) -> None:
    job_id = fixed(two, 4)
    (node,) = two.places(job_id)
    two.control.inquiries.machines.out_of_use.drain(node, "ada")
    two.exit(two.tasks(job_id)[0].id, 1)
    two.settle(5.0)
    for task in two.tasks(job_id):
        if task.node_id == node:
            two.exit(task.id, -15)
    two.settle(5.0)
    assert two.places(job_id) == {"b" if node == "a" else "a": 4}


def test_a_machine_stays_drained_when_the_server_is_killed(world: World) -> None:
    world.control.inquiries.machines.out_of_use.drain("local", "ada")
    world.restart()
    job_id = world.submit()
    assert world.job(job_id).state is JobState.PENDING
    world.control.inquiries.machines.out_of_use.put_back("local", "ben")
    world.settle()
    assert world.job(job_id).state in (JobState.STARTING, JobState.RUNNING)
    world.restart()
    assert world.control.inquiries.machines.get("local", None).state == "in use"


def test_draining_twice_is_once_and_an_unknown_machine_is_told(world: World) -> None:
    for _ in range(2):
        world.control.inquiries.machines.out_of_use.drain("local", "ada")
    assert len(world.said(EventKind.MACHINE_CHANGED)) == 1
    out_of_use = world.control.inquiries.machines.out_of_use
    for act in (out_of_use.drain, out_of_use.put_back):
        with pytest.raises(NotFound, match="there is no machine 'gpu9'; there are local"):
            act("gpu9", "ada")


def test_people_see_whose_slots_are_theirs_to_see(world: World) -> None:
    job_id = world.submit(max_tasks=1)
    all_slots, others = (
        world.control.inquiries.machines.get("local", one).slots for one in (None, VisibleJobs(owner="ben"))
    )
    assert (all_slots[0].job_id, all_slots[0].job_name) == (job_id, "digits")
    assert (others[0].taken, others[0].job_id, others[0].job_name) == (True, None, None)


def test_jobs_leave_a_slot_that_is_excluded_and_return_when_it_is_included(two: TwoMachines) -> None:
    job_id, out_of_use = two.submit(max_tasks=8), two.control.inquiries.machines.out_of_use
    two.train(job_id)
    two.settle(2.0)
    out_of_use.exclude("a", [3], "ECC errors", "bob")
    two.train(job_id)
    two.settle(2.0)
    assert two.places(job_id) == {"a": 3, "b": 4}
    assert 3 not in [slot for task in two.tasks(job_id) if task.node_id == "a" for slot in task.slots]
    assert two.job(job_id).state is JobState.RUNNING
    assert two.job(job_id).why.endswith("; 1 slot of a is excluded: ECC errors")
    machine = two.control.inquiries.machines.get("a", None)
    assert (machine.state, machine.num_excluded) == ("in use", 1)
    assert [slot.slot for slot in machine.slots if slot.excluded is not None] == [3]
    out_of_use.include("a", [3], "bob")
    two.train(job_id)
    two.settle(2.0)
    assert two.places(job_id) == {"a": 4, "b": 4}
    assert "excluded" not in two.job(job_id).why
    assert two.said(EventKind.MACHINE_CHANGED) == [
        "slot 3 of a was excluded by bob: ECC errors",
        "slot 3 of a was included again by bob: tasks are started there again",
    ]
    assert two.said(EventKind.TASK_LOST) == []


def test_slots_that_are_excluded_do_not_count(two: TwoMachines) -> None:
    out_of_use = two.control.inquiries.machines.out_of_use
    out_of_use.exclude("a", [0, 2], "ECC errors", "bob")
    out_of_use.exclude("b", None, "its fan", "bob")
    waits = fixed(two, 4)
    two.settle(2.0)
    assert two.tasks(waits) == ()
    assert two.job(waits).why.endswith("; 2 slots of a are excluded: ECC errors; b is excluded: its fan")
    assert two.control.queues.misfit("default", 3, 1) != ()
    assert two.control.queues.misfit("default", 2, 1) == ()
    records = two.store.slot_history(0.0, 1e9, max_steps=100)
    assert records is not None
    assert records.spans[-1].num_slots == 2
    assert two.control.inquiries.machines.get("b", None).state == "excluded"
    out_of_use.include("b", None, "bob")
    two.settle(2.0)
    assert two.places(waits) == {"b": 4}


def test_a_fixed_job_stays_on_an_excluded_slot_and_leaves_all_others_to_others(world: World) -> None:
    stays, other = fixed(world, 2), world.submit(max_tasks=8)
    world.train(other)
    world.settle(2.0)
    slots = {slot for task in world.tasks(stays) for slot in task.slots}
    world.control.inquiries.machines.out_of_use.exclude("local", [min(slots)], "ECC errors", "bob")
    world.train(other)
    world.settle(2.0)
    assert {slot for task in world.tasks(stays) for slot in task.slots} == slots
    assert len(world.tasks(other)) == 6
    for task in world.tasks(stays):
        world.exit(task.id, 0)
    world.settle(2.0)
    world.train(other)
    world.settle(2.0)
    assert {slot for task in world.tasks(other) for slot in task.slots} == set(range(8)) - {min(slots)}


def test_what_is_excluded_survives_the_server_with_who_when_and_why(world: World) -> None:
    out_of_use = world.control.inquiries.machines.out_of_use
    out_of_use.exclude("local", [1, 2], "ECC errors", "bob")
    out_of_use.exclude("local", [2], "its fan", "ada")
    world.restart()
    slots = world.control.inquiries.machines.get("local", None).slots
    found = {slot.slot: (slot.excluded.by, slot.excluded.because) for slot in slots if slot.excluded is not None}
    assert found == {1: ("bob", "ECC errors"), 2: ("ada", "its fan")}
    world.control.inquiries.machines.out_of_use.include("local", None, "ada")
    world.restart()
    assert world.control.inquiries.machines.get("local", None).num_excluded == 0


def test_excluding_twice_is_once_and_what_is_not_there_is_told(world: World) -> None:
    out_of_use = world.control.inquiries.machines.out_of_use
    for _ in range(2):
        out_of_use.exclude("local", None, "its fan", "bob")
        out_of_use.exclude("local", [1], "ECC errors", "bob")
    assert len(world.said(EventKind.MACHINE_CHANGED)) == 2
    with pytest.raises(InvalidInput, match="local has no slot 8; it has 0 to 7"):
        out_of_use.exclude("local", [0, 8], "ECC errors", "bob")
    with pytest.raises(Conflict, match="local is excluded as a whole"):
        out_of_use.include("local", [1], "bob")
    with pytest.raises(NotFound, match="there is no machine 'gpu9'"):
        out_of_use.exclude("gpu9", None, "its fan", "bob")
    out_of_use.include("local", None, "bob")
    out_of_use.include("local", [3], "bob")
    assert world.said(EventKind.MACHINE_CHANGED)[2:] == [
        "local was included again by bob: tasks are started there again"
    ]


def test_a_machine_shows_what_it_tells_of_itself_and_how_old_that_is(world: World) -> None:
    assert world.control.inquiries.machines.get("local", None).facts is None
    facts = MachineFacts(load=1.5, devices=(DeviceFacts(slot=0, model="NVIDIA H200"),))
    world.cluster.machines[NodeId("local")] = MeasuredMachine(facts=facts, age_s=4.0)
    found = world.control.inquiries.machines.get("local", None).facts
    assert found is not None
    assert (found.load, found.devices, found.age_s) == (1.5, facts.devices, 4.0)
    assert found.measured_at == world.clock.now() - 4.0
