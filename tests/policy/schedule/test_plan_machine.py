"""Whatever happens to jobs and nodes, every plan keeps its laws and unchanged demand comes to rest."""

import random
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule
from tests.policy.schedule.oracle import ideals, place_in_order
from tests.policy.schedule.turmoil import Turmoil
from tests.policy.schedule.world import World, job, pool

from pliant.core.job import NodeId
from pliant.core.plan import NodeView, Policy, PolicyName

MAX_JOBS = 8
MAX_NODES = 4


class Cluster(Turmoil):
    """Jobs with tasks of one slot and of several, on nodes that come and go."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(())
        self.num_nodes = 0

    @initialize(
        policy=st.sampled_from(PolicyName),
        cooldown_s=st.sampled_from([0.0, 2.0]),
        nodes=st.lists(st.integers(1, 8), min_size=1, max_size=3),
    )
    def begin(self, policy: PolicyName, cooldown_s: float, nodes: list[int]) -> None:
        self.world = World(pool(*nodes), policy=Policy(name=policy, cooldown_s=cooldown_s))
        self.num_nodes = len(nodes)

    @precondition(lambda self: len(self.world.jobs) < MAX_JOBS)
    @rule(
        data=st.data(),
        priority=st.sampled_from([1, 2500, 5000, 10_000]),
        least=st.integers(1, 3),
        more=st.integers(0, 7),
    )
    def submit(self, data: Any, priority: int, least: int, more: int) -> None:
        self.num_jobs += 1
        size = data.draw(st.sampled_from(self.sizes))
        bounds = (least, least + more)
        self.world.put(job(f"train-{self.num_jobs}", self.num_jobs, priority=priority, bounds=bounds, size=size))

    @precondition(lambda self: self.world.jobs)
    @rule(data=st.data(), priority=st.sampled_from([1, 2500, 5000, 10_000]))
    def change_priority(self, data: Any, priority: int) -> None:
        job_id = self.draw_job(data)
        self.world.put(replace(self.world.jobs[job_id], priority=priority))

    @precondition(lambda self: self.world.nodes)
    @rule(data=st.data())
    def lose_slot(self, data: Any) -> None:
        node = self.world.nodes[data.draw(st.sampled_from(sorted(self.world.nodes)))]
        self.world.nodes[node.id] = replace(node, slots=node.slots[:-1])

    @precondition(lambda self: len(self.world.nodes) < MAX_NODES)
    @rule(size=st.integers(0, 8))
    def add_node(self, size: int) -> None:
        self.num_nodes += 1
        node = NodeView(id=NodeId(f"node-{self.num_nodes}"), slots=tuple(range(size)))
        self.world.nodes[node.id] = node


class ClusterOfSingleSlots(Cluster):
    """Tasks of one slot fit anywhere, so more can be said: exact shares, and nobody goes back and forth."""

    sizes: tuple[int, ...] = (1,)

    @rule()
    def settle(self) -> None:
        self.settle_and_compare()

    def teardown(self) -> None:
        self.settle_and_compare()

    def settle_and_compare(self) -> None:
        backs_off = any(view.held_until and view.held_until > self.world.now for view in self.world.jobs.values())
        made = self.world.settle(self.max_rounds)
        for job_id in self.world.jobs:
            path = [decision.grants[job_id].num_tasks for decision in made]
            assert backs_off or path in (sorted(path), sorted(path, reverse=True)), f"{job_id} goes to and fro: {path}"
        if self.world.policy.name is not PolicyName.FAIRSHARE:
            return
        sizes = {job_id: grant.num_tasks for job_id, grant in made[-1].grants.items()}
        running = sorted(
            (view for view in self.world.jobs.values() if sizes[view.id]),
            key=lambda view: place_in_order(view, PolicyName.FIFO),
        )
        num_slots = sum(len(node.slots) for node in self.world.nodes.values())
        for view, ideal in zip(running, ideals(running, num_slots), strict=True):
            assert abs(sizes[view.id] - ideal) < 1, f"{view.id} has {sizes[view.id]} and deserves {ideal}"


class ClusterWithBadNodes(Cluster):
    """Some jobs are kept off some nodes, where their tasks were lost or from which they do not reach each other."""

    @precondition(lambda self: self.world.jobs and len(self.world.nodes) > 1)
    @rule(data=st.data())
    def exclude(self, data: Any) -> None:
        view = self.world.jobs[self.draw_job(data)]
        node_id = data.draw(st.sampled_from(sorted(self.world.nodes)))
        self.world.put(replace(view, excluded=view.excluded | {node_id}))

    @precondition(lambda self: self.world.jobs and len(self.world.nodes) > 1)
    @rule(data=st.data())
    def keep_apart(self, data: Any) -> None:
        view = self.world.jobs[self.draw_job(data)]
        ends = data.draw(st.lists(st.sampled_from(sorted(self.world.nodes)), min_size=2, max_size=2, unique=True))
        self.world.put(replace(view, apart=(*view.apart, (ends[0], ends[1]))))


TestClusterWithBadNodes = ClusterWithBadNodes.TestCase
TestClusterWithBadNodes.settings = settings(
    max_examples=150, stateful_step_count=30, suppress_health_check=list(HealthCheck)
)
TestCluster = Cluster.TestCase
TestCluster.settings = settings(max_examples=150, stateful_step_count=30, suppress_health_check=list(HealthCheck))
TestClusterOfSingleSlots = ClusterOfSingleSlots.TestCase
TestClusterOfSingleSlots.settings = settings(
    max_examples=150, stateful_step_count=30, suppress_health_check=list(HealthCheck)
)


def test_larger_clusters_come_to_rest() -> None:
    random_ = random.Random(11)
    for _ in range(60):
        policy = Policy(name=random_.choice(list(PolicyName)), cooldown_s=random_.choice([0.0, 2.0]))
        world = World(pool(*random_.choices([4, 6, 8], k=random_.randint(1, 12))), policy=policy)
        for number in range(1, 25):
            low = random_.randint(1, 3)
            bounds = (low, low + random_.randint(0, 20))
            size = random_.choice([1, 1, 2, 3, 4, 8])
            priority = random_.choice([1, 10, 5000, 7000])
            world.put(job(f"train-{number}", number, priority=priority, bounds=bounds, size=size))
            if number % 8 == 0:
                world.settle(Turmoil.max_rounds)
                del world.jobs[random_.choice(sorted(world.jobs))]
