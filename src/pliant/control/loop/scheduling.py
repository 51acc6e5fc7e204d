"""Between the scheduler and the jobs: what it sees (`snapshot`), and its plan carried into a draft (`apply_plan`)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from pliant.control.jobs import fixed
from pliant.control.jobs.draft import Draft, StartTask
from pliant.control.jobs.live import LiveJob
from pliant.control.jobs.orders import Seat, start_order, with_run_as
from pliant.control.jobs.transitions import job_event, leave, put_task, want
from pliant.core.event import EventKind
from pliant.core.job import NodeId, Task, TaskId
from pliant.core.lifecycle import JobEvent, JobState, TaskState
from pliant.core.plan import Grant, NodeView, Placement, Plan, QueueView, Snapshot
from pliant.core.ports import Observation


def snapshot(jobs: Sequence[LiveJob], observed: Observation, queues: tuple[QueueView, ...] = ()) -> Snapshot:
    """Return what the scheduler shall see.

    A job that has ended or is stopping wants nothing, but holds its slots until its processes are gone. One whose
    environment is not ready wants nothing before it is. Slots that are
    held by a process that nobody knows are left out: nobody can have them.
    """
    known = {task.id for live in jobs for task in live.running}
    strange = {(task.node_id, slot) for task in observed.tasks if task.task_id not in known for slot in task.slots}
    return Snapshot(
        nodes=_without(observed.nodes, strange),
        workloads=tuple(live.view() for live in jobs if (live.competes and not live.unprepared) or live.running),
        queues=queues,
    )


def _without(nodes: Iterable[NodeView], held: set[tuple[NodeId, int]]) -> tuple[NodeView, ...]:
    return tuple(
        replace(node, slots=tuple(slot for slot in node.slots if (node.id, slot) not in held)) for node in nodes
    )


RunAs = Callable[[LiveJob], str | None]
"""Which user of the operating system a job's processes run as; None for the server's own."""


def apply_plan(draft: Draft, plan: Plan, run_as: RunAs) -> None:
    """Carry a plan into the draft; what is so already stays as it is."""
    for job_id, grant in plan.grants.items():
        live = draft.job(job_id)
        if live is not None and live.competes:
            _apply_grant(draft, live, grant, plan.reasons.get(job_id, ""), run_as(live))


def _apply_grant(draft: Draft, live: LiveJob, grant: Grant, reason: str, user: str | None) -> None:
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
    if live.job.spec.fixed:
        _apply_fixed(draft, live, grant, leaving, reason, user)
        return
    starts = grant.start if live.proven else grant.start[: max(0, live.job.min_tasks - len(live.staying))]
    starts = () if live.unprepared else starts
    for placement in starts:
        live = _start(draft, live, placement, user)
    if starts or leaving:
        live = draft.put(replace(live, resized_at=draft.now))
    if leaving:
        leave(draft, live, leaving, reason)
    elif starts:
        want(draft, live, reason)


def _apply_fixed(
    draft: Draft, live: LiveJob, grant: Grant, leaving: tuple[TaskId, ...], reason: str, user: str | None
) -> None:
    """Start all processes or none; if one has to leave, because its slot is gone, all do."""
    placements = fixed.startable(live, grant.start)
    if leaving:
        leave(draft, live, tuple(task.id for task in live.staying), reason)
    elif placements and not live.unprepared:
        meeting = draft.free_address(placements[0].node_id)
        for placement, seat in zip(placements, fixed.seats(placements, meeting), strict=True):
            live = _start(draft, live, placement, user, seat)
        draft.put(replace(live, resized_at=draft.now, restarting=False))


def _start(draft: Draft, live: LiveJob, placement: Placement, user: str | None, seat: Seat | None = None) -> LiveJob:
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
        f"{task.id} starts on slot{'s' * (len(task.slots) != 1)} {slots} of {task.node_id}"
        + (f" as rank {seat.rank} of {seat.size}" if seat else ""),
        job_id=live.id,
        task_id=task.id,
    )
    order = start_order(live.job, task, draft.settings, seat, python=live.python)
    draft.act(StartTask(order=order if user is None else with_run_as(order, live.job, draft.settings, user)))
    return put_task(draft, live, task)
