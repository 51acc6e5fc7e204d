"""Between the scheduler and the jobs: what it sees (`snapshot`), and its plan carried into a draft (`apply_plan`)."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pliant.control.draft import Draft, StartTask
from pliant.control.live import LiveJob
from pliant.control.orders import start_order
from pliant.control.transitions import job_event, leave, put_task, want
from pliant.core.event import EventKind
from pliant.core.job import NodeId, Task, TaskId
from pliant.core.lifecycle import JobEvent, JobState, TaskState
from pliant.core.plan import Grant, NodeView, Placement, Plan, Snapshot
from pliant.core.ports import Observation


def snapshot(jobs: Sequence[LiveJob], observed: Observation) -> Snapshot:
    """Return what the scheduler shall see.

    A job that has ended or is stopping wants nothing, but holds its slots until its processes are gone. Slots that are
    held by a process that nobody knows are left out: nobody can have them.
    """
    known = {task.id for live in jobs for task in live.running}
    strange = {(task.node_id, slot) for task in observed.tasks if task.task_id not in known for slot in task.slots}
    return Snapshot(
        nodes=_without(observed.nodes, strange),
        workloads=tuple(live.view() for live in jobs if live.competes or live.running),
    )


def _without(nodes: Iterable[NodeView], held: set[tuple[NodeId, int]]) -> tuple[NodeView, ...]:
    return tuple(
        replace(node, slots=tuple(slot for slot in node.slots if (node.id, slot) not in held)) for node in nodes
    )


def apply_plan(draft: Draft, plan: Plan) -> None:
    """Carry a plan into the draft; what is so already stays as it is."""
    for job_id, grant in plan.grants.items():
        live = draft.job(job_id)
        if live is not None and live.competes:
            _apply_grant(draft, live, grant, plan.reasons.get(job_id, ""))


def _apply_grant(draft: Draft, live: LiveJob, grant: Grant, reason: str) -> None:
    if reason and reason != live.job.why:
        live = draft.put(replace(live, job=replace(live.job, why=reason)))
    if grant.num_tasks != live.target:
        draft.say(
            EventKind.DECISION,
            reason,
            job_id=live.id,
            data={
                "from": live.target,
                "to": grant.num_tasks,
                "num_slots": grant.num_tasks * live.job.spec.slots_per_task,
            },
        )
        live = draft.put(replace(live, target=grant.num_tasks))
    leaving = tuple(t for t in grant.leave if t in live.tasks and live.tasks[t].state is not TaskState.LEAVING)
    starts = grant.start if live.proven else grant.start[: max(0, live.job.min_tasks - len(live.staying))]
    for placement in starts:
        live = _start(draft, live, placement)
    if starts or leaving:
        live = draft.put(replace(live, resized_at=draft.now))
    if leaving:
        leave(draft, live, leaving, reason)
    elif starts:
        want(draft, live, reason)


def _start(draft: Draft, live: LiveJob, placement: Placement) -> LiveJob:
    task = Task(
        id=TaskId(f"{live.id}.{draft.next_id(f'task:{live.id}')}"),
        job_id=live.id,
        node_id=placement.node_id,
        slots=placement.slots,
        state=TaskState.STARTING,
        started_at=draft.now,
    )
    if live.job.started_at is None:
        live = draft.put(replace(live, job=replace(live.job, started_at=draft.now)))
    if live.job.state in (JobState.PENDING, JobState.PAUSED):
        live = job_event(draft, live, JobEvent.GRANT, "")
    slots = ", ".join(str(slot) for slot in task.slots)
    draft.say(
        EventKind.TASK_STARTED,
        f"{task.id} starts on slot{'s' * (len(task.slots) != 1)} {slots} of {task.node_id}",
        job_id=live.id,
        task_id=task.id,
    )
    draft.act(StartTask(order=start_order(live.job, task, draft.settings)))
    return put_task(draft, live, task)
