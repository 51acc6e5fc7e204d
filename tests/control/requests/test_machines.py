"""Machines that are drained: who leaves, who stays, and that nothing is started there."""

from pathlib import Path

import pytest
from tests.control.conftest import World

from pliant.core.access import VisibleJobs
from pliant.core.errors import NotFound
from pliant.core.event import EventKind
from pliant.core.job import JobId, NodeId
from pliant.core.lifecycle import JobState
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
def two(tmp_path: Path) -> TwoMachines:
    return TwoMachines(tmp_path)


def fixed(world: World, size: int) -> JobId:
    return world.submit(fixed=True, min_tasks=size, max_tasks=size, virtual_workers=size)


def test_elastic_jobs_leave_at_a_step_boundary_and_return(two: TwoMachines) -> None:
    job_id = two.submit(max_tasks=8)
    two.train(job_id)
    two.settle(2.0)
    assert two.places(job_id) == {"a": 4, "b": 4}
    two.control.inquiries.machines.drain("a", "ada")
    two.train(job_id)
    two.settle(2.0)
    assert two.places(job_id) == {"b": 4}
    assert two.job(job_id).state is JobState.RUNNING
    assert two.control.inquiries.machines.get("a", None).state == "drained"
    two.control.inquiries.machines.put_back("a", "ada")
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
    world.control.inquiries.machines.drain("local", "ada")
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
    two.control.inquiries.machines.drain(node, "ada")
    two.exit(two.tasks(job_id)[0].id, 1)
    two.settle(5.0)
    for task in two.tasks(job_id):
        if task.node_id == node:
            two.exit(task.id, -15)
    two.settle(5.0)
    assert two.places(job_id) == {"b" if node == "a" else "a": 4}


def test_a_machine_stays_drained_when_the_server_is_killed(world: World) -> None:
    world.control.inquiries.machines.drain("local", "ada")
    world.restart()
    job_id = world.submit()
    assert world.job(job_id).state is JobState.PENDING
    world.control.inquiries.machines.put_back("local", "ben")
    world.settle()
    assert world.job(job_id).state in (JobState.STARTING, JobState.RUNNING)
    world.restart()
    assert world.control.inquiries.machines.get("local", None).state == "in use"


def test_draining_twice_is_once_and_an_unknown_machine_is_told(world: World) -> None:
    for _ in range(2):
        world.control.inquiries.machines.drain("local", "ada")
    assert len(world.said(EventKind.MACHINE_CHANGED)) == 1
    for act in (world.control.inquiries.machines.drain, world.control.inquiries.machines.put_back):
        with pytest.raises(NotFound, match="there is no machine 'gpu9'; there are local"):
            act("gpu9", "ada")


def test_people_see_whose_slots_are_theirs_to_see(world: World) -> None:
    job_id = world.submit(max_tasks=1)
    all_slots, others = (
        world.control.inquiries.machines.get("local", one).slots for one in (None, VisibleJobs(owner="ben"))
    )
    assert (all_slots[0].job_id, all_slots[0].job_name) == (job_id, "digits")
    assert (others[0].taken, others[0].job_id, others[0].job_name) == (True, None, None)
