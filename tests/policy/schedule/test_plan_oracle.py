"""The whole of `plan` against the oracle: one node, any policy, any state of the jobs."""

import random

import pytest
from tests.policy.schedule import oracle
from tests.policy.schedule.world import check_plan, job, pool

from pliant.core.plan import Policy, PolicyName, Snapshot
from pliant.core.workload import Workload
from pliant.policy.schedule.plan import plan

NUM_CASES = 1500


def any_state(random_: random.Random, num_slots: int, largest: int) -> list[Workload]:
    """Return jobs of which some hold tasks (inside their bounds or not), some of them leaving."""
    jobs = []
    first = 0
    for n in range(1, random_.randint(1, 4) + 1):
        size = random_.randint(1, largest)
        low = random_.randint(1, 3)
        bounds = (low, low + random_.randint(0, 4))
        num_tasks = min(random_.randint(0, 5), (num_slots - first) // size)
        on = [(1, first + size * i) for i in range(num_tasks)]
        first += size * num_tasks
        leaving = random_.randint(0, num_tasks) if random_.random() < 0.3 else 0
        priority = random_.choice([1000, 5000, 5000, 10_000])
        jobs.append(job("j", n, priority=priority, bounds=bounds, size=size, on=on, leaving=leaving))
    random_.shuffle(jobs)
    return jobs


@pytest.mark.parametrize("largest", [1, 4])
@pytest.mark.parametrize("policy", PolicyName)
def test_on_one_node_every_target_is_what_the_oracle_says(policy: PolicyName, largest: int) -> None:
    random_ = random.Random(f"{policy} {largest}")
    for _ in range(NUM_CASES):
        num_slots = random_.randint(1, 8 * largest)
        jobs = any_state(random_, num_slots, largest)
        snapshot = Snapshot(nodes=pool(num_slots), workloads=tuple(jobs))

        decision = plan(snapshot, Policy(name=policy, cooldown_s=0.0), 0.0)

        check_plan(snapshot, decision, Policy(name=policy), 0.0)
        found = {job_id: grant.num_tasks for job_id, grant in decision.grants.items()}
        assert found == oracle.targets(jobs, num_slots, policy), snapshot
