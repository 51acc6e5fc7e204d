"""Whatever happens to workloads that hold parts of slots, beside others: plans keep their laws and come to rest."""

from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule
from tests.policy.schedule.parts_world import PartsWorld, part
from tests.policy.schedule.test_plan_machine import MAX_JOBS, Cluster
from tests.policy.schedule.world import World, pool

from pliant.core.plan import Policy, PolicyName


class Parts(Cluster):
    """Endpoints whose kernels hold parts of slots, and trainings."""

    max_rounds = 40

    def __init__(self) -> None:
        super().__init__()
        self.world: World = PartsWorld(())

    @initialize(
        policy=st.sampled_from(PolicyName),
        cooldown_s=st.sampled_from([0.0, 2.0]),
        nodes=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    )
    def begin(self, policy: PolicyName, cooldown_s: float, nodes: list[int]) -> None:
        self.world = PartsWorld(pool(*nodes), policy=Policy(name=policy, cooldown_s=cooldown_s))
        self.num_nodes = len(nodes)

    @precondition(lambda self: len(self.world.jobs) < MAX_JOBS)
    @rule(
        share=st.sampled_from([100, 250, 333, 400, 500, 600, 900]),
        priority=st.sampled_from([1, 5000, 10_000]),
        least=st.integers(1, 3),
        more=st.integers(0, 6),
    )
    def deploy(self, share: int, priority: int, least: int, more: int) -> None:
        self.num_jobs += 1
        name, bounds = f"serve-{self.num_jobs}", (least, least + more)
        self.world.put(part(name, self.num_jobs, share, bounds, priority=priority))

    @precondition(lambda self: self.world.jobs)
    @rule(data=st.data())
    def want_nothing(self, data: Any) -> None:
        job_id = self.draw_job(data)
        self.world.put(replace(self.world.jobs[job_id], min_tasks=0, max_tasks=0))


TestParts = Parts.TestCase
TestParts.settings = settings(max_examples=150, stateful_step_count=30, suppress_health_check=list(HealthCheck))
