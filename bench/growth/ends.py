"""What machines are told when one job of many has ended: the adapters of all of them, with nobody at the other end.

Every machine has tasks of two jobs, and every job of one machine. What is said waits in the machines' outboxes, so its
bytes can be counted.
"""

from dataclasses import dataclass

from bench.growth.pools import JOBS_PER_NODE, nodes_of
from bench.plan import timed
from pliant.cluster.joined.nodes import ClusterOfNodes
from pliant.cluster.node import KnownNode
from pliant.core.job import JobId, TaskId
from pliant.core.ports import StartOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class EndCost:
    """What the end of one job costs."""

    num_nodes: int
    num_jobs: int
    milliseconds: float
    """Of processor time, the least of some."""


def measure(num_nodes: int, num_runs: int) -> EndCost:
    """Let one job after the other end."""
    nodes = nodes_of(num_nodes)
    cluster = ClusterOfNodes(None, [KnownNode(node=node) for node in nodes])
    jobs: dict[JobId, None] = {}
    cluster.retain(jobs)
    for number in range(JOBS_PER_NODE * num_nodes):
        job_id, node = JobId(f"job-{number}"), nodes[number % num_nodes]
        slots = (number // num_nodes,)
        order = StartOrder(
            task_id=TaskId(f"{job_id}.1"), node_id=node.id, slots=slots, argv=(), env={}, cwd="/", log_dir="/nowhere"
        )
        jobs[job_id] = None
        cluster.start(order)
    taken = []
    for _ in range(num_runs):
        jobs.popitem()
        taken.append(timed(lambda: cluster.retain(jobs)))
    return EndCost(num_nodes=num_nodes, num_jobs=JOBS_PER_NODE * num_nodes, milliseconds=min(taken))
