"""Pools of any size, and the jobs that share them: one third fixed, one third elastic, one third endpoints.

Ten slots to a node, two jobs to a node, and more wanted than there is. A fixed job has 1, 2, 4 or 8 tasks, an elastic
one 1 to 16, an endpoint 1 to 4 kernels, of a slot or of half a slot each. Fixed and elastic jobs are in three queues,
endpoints in one of their own; all queues have all nodes.
"""

from typing import Final

from pliant.core.job import Job, JobId, JobSpec, NodeId
from pliant.core.lifecycle import JobState
from pliant.core.plan import NodeView, PolicyName, QueueRules, Snapshot
from pliant.core.slot import WHOLE_SLOT
from pliant.core.workload import Workload

SLOTS_PER_NODE: Final = 10
JOBS_PER_NODE: Final = 2
_FIXED_SIZES: Final = (1, 2, 4, 8)
_MOST_ELASTIC: Final = 16
_MOST_KERNELS: Final = 4
_QUEUES: Final = (
    QueueRules(name="research", weight=3),
    QueueRules(name="urgent", policy=PolicyName.PRIORITY),
    QueueRules(name="nightly", policy=PolicyName.FIFO, preemption=False),
    QueueRules(name="serving", weight=2),
)


def nodes_of(num_nodes: int) -> tuple[NodeView, ...]:
    """Return the nodes of a pool."""
    slots = tuple(range(SLOTS_PER_NODE))
    return tuple(NodeView(id=NodeId(f"node-{n}"), slots=slots, num_cpus=SLOTS_PER_NODE) for n in range(num_nodes))


def pending(num_nodes: int, kernel_share: int = WHOLE_SLOT) -> Snapshot:
    """Return a pool in which nothing runs yet, and all jobs wait; a kernel holds such a part of a slot."""
    workloads = tuple(workload(n, kernel_share) for n in range(JOBS_PER_NODE * num_nodes))
    return Snapshot(nodes=nodes_of(num_nodes), workloads=workloads, queues=_QUEUES)


def workload(number: int, kernel_share: int = WHOLE_SLOT) -> Workload:
    """Return one of the mix, as the scheduler sees it."""
    kind = ("fixed", "elastic", "endpoint")[number % 3]
    fixed = _FIXED_SIZES[number // 3 % len(_FIXED_SIZES)]
    least, most = {"fixed": (fixed, fixed), "elastic": (1, _MOST_ELASTIC), "endpoint": (1, _MOST_KERNELS)}[kind]
    return Workload(
        id=JobId(f"job-{number}"),
        kind=kind,
        name=f"{kind}-{number}",
        priority=1000 * (1 + number % 5),
        min_tasks=least,
        max_tasks=most,
        slots_per_task=1,
        slot_share=kernel_share if kind == "endpoint" else WHOLE_SLOT,
        submitted_at=float(number),
        queue="serving" if kind == "endpoint" else _QUEUES[number // 3 % 3].name,
    )


def pending_job(number: int) -> Job:
    """Return a fixed or an elastic job that waits in the default queue, as the store holds it."""
    fixed = _FIXED_SIZES[number // 2 % len(_FIXED_SIZES)]
    least, most = (1, _MOST_ELASTIC) if number % 2 else (fixed, fixed)
    spec = JobSpec(
        name=f"train-{number}",
        script="train.py",
        min_tasks=least,
        max_tasks=most,
        virtual_workers=_MOST_ELASTIC,
        fixed=number % 2 == 0,
    )
    return Job(
        id=JobId(f"job-{number}"),
        spec=spec,
        owner="ada",
        state=JobState.PENDING,
        priority=1000 * (1 + number % 5),
        min_tasks=least,
        max_tasks=most,
        submitted_at=0.0,
    )
