"""How long `plan` takes on pools of many sizes: nothing runs yet, at rest, and after one change."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from bench.growth.pools import pending, workload
from bench.plan import apply, timed
from pliant.core.job import JobId
from pliant.core.plan import Policy, PolicyName, Snapshot
from pliant.core.slot import WHOLE_SLOT
from pliant.policy.schedule.plan import plan

_NOW: Final = 1e9
_MAX_ROUNDS: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTimes:
    """Milliseconds of processor time, the least and the median of some calls, in each situation."""

    num_nodes: int
    num_jobs: int
    num_tasks: int
    """At rest."""
    num_rounds: int
    """Decisions until the pool was at rest."""
    times: Mapping[str, tuple[float, float]]


def measure(num_nodes: int, num_runs: int, kernel_share: int = WHOLE_SLOT) -> PlanTimes:
    """Decide for a pool of so many nodes, whose kernels hold such a part of a slot."""
    policy = Policy(name=PolicyName.FAIRSHARE)
    begun = pending(num_nodes, kernel_share)
    rest, num_rounds = settle(begun, policy)
    newcomer = replace(workload(1), id=JobId("job-new"), priority=9000, submitted_at=1e8)
    shown = {
        "nothing runs yet": begun,
        "at rest": rest,
        "one job more": replace(rest, workloads=(*rest.workloads, newcomer)),
    }
    return PlanTimes(
        num_nodes=num_nodes,
        num_jobs=len(begun.workloads),
        num_tasks=sum(len(one.tasks) for one in rest.workloads),
        num_rounds=num_rounds,
        times={name: spread_of(lambda s=seen: plan(s, policy, _NOW), num_runs) for name, seen in shown.items()},  # type: ignore[misc]
    )


def settle(snapshot: Snapshot, policy: Policy) -> tuple[Snapshot, int]:
    """Return the pool at rest, fixed jobs pinned by what they hold, and the number of decisions until then."""
    for number in range(_MAX_ROUNDS):
        decision = plan(snapshot, policy, _NOW)
        if not any(grant.start or grant.leave for grant in decision.grants.values()):
            return snapshot, number
        applied = apply(snapshot, decision)
        pinned = (replace(one, pinned=one.kind == "fixed" and bool(one.tasks)) for one in applied.workloads)
        snapshot = replace(applied, workloads=tuple(pinned))
    raise RuntimeError(f"the plans did not settle within {_MAX_ROUNDS} rounds")


def spread_of(work: Callable[[], object], num_runs: int) -> tuple[float, float]:
    """Return the least and the median milliseconds of processor time of some calls."""
    taken = sorted(timed(work) for _ in range(num_runs))
    return taken[0], taken[len(taken) // 2]
