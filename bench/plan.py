"""What one decision of the scheduler costs with 2,000 jobs on 2,048 slots, against filling slot by slot.

The claim: a median under 100 ms in every shape, at a cold start as well as with thousands of live tasks. The reference
hands out slots one by one, each time to the job with the least slots per unit of priority, and looks at every job to
find it. It knows no nodes, processes, reasons or cool-downs; it is run on the same demands in turns with `plan`.
"""

import argparse
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench._report import finish, processor
from pliant.core.job import JobId, NodeId, TaskId
from pliant.core.plan import NodeView, Plan, Policy, PolicyName, QueueRules, Snapshot
from pliant.core.workload import TaskView, Workload
from pliant.policy.schedule.plan import plan

NUM_NODES = 256
SLOTS_PER_NODE = 8
NUM_JOBS = 2000
LIMIT_MS = 100.0
NODES = tuple(NodeView(id=NodeId(f"node-{n}"), slots=tuple(range(SLOTS_PER_NODE))) for n in range(NUM_NODES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One situation to decide in."""

    name: str
    snapshot: Snapshot
    policy: PolicyName = PolicyName.FAIRSHARE


def job(n: int, *, most: int, size: int = 1, least: int = 1) -> Workload:
    """Return a pending job; priorities repeat in five steps."""
    return Workload(
        id=JobId(f"job-{n}"),
        name=f"train-{n}",
        priority=1000 * (1 + n % 5),
        min_tasks=least,
        max_tasks=most,
        slots_per_task=size,
        submitted_at=float(n // 3),
    )


def apply(snapshot: Snapshot, decision: Plan) -> Snapshot:
    """Return the snapshot after the plan was carried out and those told to leave are gone."""
    workloads = []
    for view in snapshot.workloads:
        grant = decision.grants[view.id]
        staying = [task for task in view.tasks if task.id not in grant.leave]
        number = max((int(task.id.rpartition(".")[2]) for task in view.tasks), default=0)
        started = [
            TaskView(id=TaskId(f"{view.id}.{number + i}"), node_id=at.node_id, slots=at.slots)
            for i, at in enumerate(grant.start, 1)
        ]
        workloads.append(replace(view, tasks=(*staying, *started)))
    return replace(snapshot, workloads=tuple(workloads))


def settled(snapshot: Snapshot, policy: PolicyName) -> Snapshot:
    """Return the snapshot in which nothing is left to do."""
    for _ in range(50):
        decision = plan(snapshot, Policy(name=policy), 1e6)
        if not any(grant.start or grant.leave for grant in decision.grants.values()):
            return snapshot
        snapshot = apply(snapshot, decision)
    raise RuntimeError("the plans did not settle within 50 rounds")


def shapes() -> list[Shape]:
    """Return the situations to measure."""
    singles = Snapshot(nodes=NODES, workloads=tuple(job(n, most=8) for n in range(NUM_JOBS)))
    wide = [job(n, most=64) for n in range(64)]
    few = settled(Snapshot(nodes=NODES, workloads=tuple(wide)), PolicyName.FAIRSHARE)
    late = tuple(job(n, most=8) for n in range(64, NUM_JOBS))
    mixed = Snapshot(
        nodes=NODES, workloads=tuple(job(n, most=8, size=(1, 1, 2, 4)[n % 4], least=1 + n % 2) for n in range(NUM_JOBS))
    )
    made = [
        Shape(name="all pending", snapshot=singles),
        Shape(name="all running, at rest", snapshot=settled(singles, PolicyName.FAIRSHARE)),
        Shape(name="64 jobs hold all slots, 1,936 arrive", snapshot=replace(few, workloads=few.workloads + late)),
        Shape(name="1, 2 and 4 slots per task, all pending", snapshot=mixed),
        Shape(name="1, 2 and 4 slots per task, at rest", snapshot=settled(mixed, PolicyName.FAIRSHARE)),
    ]
    for policy in (PolicyName.PRIORITY, PolicyName.FIFO):
        made.append(Shape(name=f"{policy}: all pending", snapshot=singles, policy=policy))
        made.append(Shape(name=f"{policy}: at rest", snapshot=settled(singles, policy), policy=policy))
    arrivals = replace(few, workloads=few.workloads + tuple(replace(late_job, priority=9000) for late_job in late))
    made.append(Shape(name="priority: 1,936 overtake 64", snapshot=arrivals, policy=PolicyName.PRIORITY))
    half = settled(replace(singles, workloads=singles.workloads[:1000]), PolicyName.PRIORITY)
    wide_arrivals = tuple(
        replace(job(n, most=40, size=1 + n % 8, least=1 + n % 29), priority=9000 + n % 7) for n in range(1000, NUM_JOBS)
    )
    overtaken = replace(half, workloads=half.workloads + wide_arrivals)
    made.append(
        Shape(name="priority: 1,000 of any width overtake 1,000", snapshot=overtaken, policy=PolicyName.PRIORITY)
    )
    queued = in_queues(singles)
    made.append(Shape(name="10 queues over 4 groups: all pending", snapshot=queued))
    made.append(Shape(name="10 queues over 4 groups: at rest", snapshot=settled(queued, PolicyName.FAIRSHARE)))
    return made


def in_queues(snapshot: Snapshot) -> Snapshot:
    """Return the jobs in ten queues over groups that overlap: all, half of the nodes, half of the slots of each."""
    half = {node.id: SLOTS_PER_NODE for node in NODES[: NUM_NODES // 2]}
    groups = {
        "all": None,
        "half": half,
        "rest": {node.id: SLOTS_PER_NODE for node in NODES if node.id not in half},
        "some": {node.id: SLOTS_PER_NODE // 2 for node in NODES},
    }
    names = list(groups)
    queues = tuple(
        QueueRules(name=f"queue-{n}", group=names[n % 4], slots=groups[names[n % 4]], weight=1 + n % 3)
        for n in range(10)
    )
    workloads = (replace(view, queue=f"queue-{n % 10}") for n, view in enumerate(snapshot.workloads))
    return replace(snapshot, workloads=tuple(workloads), queues=queues)


def fill_slot_by_slot(workloads: Sequence[Workload], num_slots: int) -> dict[JobId, int]:
    """Return slots per job: each next task to the job with the least slots per priority, found by looking at all."""
    slots = {view.id: 0 for view in workloads}
    while num_slots > 0:
        best = None
        for view in workloads:
            held = slots[view.id]
            if held < view.max_tasks * view.slots_per_task and view.slots_per_task <= num_slots:
                key = (held / view.priority, view.submitted_at)
                if best is None or key < best[0]:
                    best = (key, view)
        if best is None:
            break
        slots[best[1].id] += best[1].slots_per_task
        num_slots -= best[1].slots_per_task
    return slots


def timed(work: Callable[[], object]) -> float:
    """Return the milliseconds of processor time that one call takes; other work on the machine does not count."""
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def report(num_runs: int) -> tuple[str, float]:
    """Return the report as Markdown and the worst of the medians in milliseconds."""
    rows = []
    medians = []
    for shape in shapes():
        policy = Policy(name=shape.policy)
        runs = [timed(lambda s=shape, p=policy: plan(s.snapshot, p, 1e6)) for _ in range(num_runs + 1)][1:]  # type: ignore[misc]
        naive = timed(lambda s=shape: fill_slot_by_slot(s.snapshot.workloads, NUM_NODES * SLOTS_PER_NODE))  # type: ignore[misc]
        median = statistics.median(runs)
        medians.append(median)
        num_tasks = sum(len(view.tasks) for view in shape.snapshot.workloads)
        rows.append(
            f"| {shape.name} | {len(shape.snapshot.workloads)} | {num_tasks} | {median:.1f} | {max(runs):.1f} "
            f"| {naive:.0f} | {naive / median:.0f} |"
        )
        print(rows[-1], flush=True)
    head = (
        f"# What one decision costs\n\n`python -m bench.plan --runs {num_runs}`, Python {platform.python_version()}, "
        f"{platform.platform()}, {processor()}. {NUM_NODES} nodes of {SLOTS_PER_NODE} slots. Milliseconds of processor "
        f"time per call of `plan`, median and worst of {num_runs} runs. Naive: filling slot by slot, one run of it "
        "beside them; the ratio is naive to median.\n\n"
        "| shape | jobs | live tasks | median ms | worst ms | naive ms | ratio |\n|---|---|---|---|---|---|---|\n"
    )
    verdict = f"\n\nThe slowest median is {max(medians):.1f} ms; the limit is {LIMIT_MS:.0f} ms.\n"
    return head + "\n".join(rows) + verdict, max(medians)


def main() -> int:
    """Measure, write the report, and fail if the limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the report here as well")
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    text, worst = report(options.runs)
    finish(text, (), options.out)
    return 0 if worst < LIMIT_MS else 1


if __name__ == "__main__":
    sys.exit(main())
