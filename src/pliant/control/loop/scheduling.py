"""Between the scheduler and the jobs: what it sees (`seen_by_scheduler`), its plan in a draft (`apply_plan`).

What a job wants and how its tasks start is decided by its kind. Example: an elastic job with bounds 1..4 is granted 4
tasks and has slots for all of them; as long as no generation of it has trained it starts one, and the other three slots
stay granted to it. A fixed job of 4 starts when it has slots for all 4, and not before.
"""

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from pliant.control.jobs.draft import Draft, StartTask
from pliant.control.jobs.kind import Kind, Kinds, TaskStart
from pliant.control.jobs.live import LiveJob
from pliant.control.jobs.orders import order_form
from pliant.control.jobs.transitions import job_event, leave, put_tasks, release_leavers
from pliant.core.confinement import RunAs
from pliant.core.event import EventKind
from pliant.core.job import JobId, NodeId, Task, TaskId
from pliant.core.lifecycle import JobEvent, JobState, TaskState
from pliant.core.machine import join_exclusions
from pliant.core.plan import Grant, NodeView, Plan, QueueRules, Snapshot, without_slots
from pliant.core.ports import Observation
from pliant.core.workload import Workload

MIN_STARTS: Final = 200
"""Once so many tasks start with one decision others may wait for the next: who waits for the lock has a turn."""
_JOBS_PER_START: Final = 4
"""A job takes a decision about a quarter as long as it takes to start a task."""


def observe(draft: Draft, kinds: Kinds, observed: Observation) -> None:
    """Let the kinds take note of which processes exist now."""
    pids = {task.task_id: task.pid for task in observed.tasks if task.pid is not None}
    for live in draft.jobs():
        if live.competes:
            kinds.of(live.job).observe(draft, live, pids)


class ClosedSlots(Protocol):
    """What is out of use; see `control.requests.out_of_use`."""

    def closed(self, nodes: Sequence[NodeView]) -> frozenset[tuple[NodeId, int]]: ...

    def usable(self, nodes: Sequence[NodeView], but: Collection[tuple[NodeId, int]] = ()) -> Sequence[NodeView]: ...

    def words(self, nodes: Iterable[NodeView]) -> Mapping[NodeId, str]: ...


def seen_by_scheduler(
    jobs: Sequence[LiveJob],
    kinds: Kinds,
    view: Callable[[LiveJob], Workload],
    observed: Observation,
    held: Container[JobId],
    views: Callable[[Sequence[NodeView]], tuple[QueueRules, ...]],
    out_of_use: ClosedSlots,
) -> Snapshot:
    """Return what the scheduler shall see.

    A job that waits for others, that is on hold, whose environment is not ready, or that is `held` back by the limit of
    its array, wants nothing: it claims no slot, and nothing of what its queue is entitled to. Slots held by a process
    that belongs to no job are left out: nobody can have them. Of slots that are out of use only those are shown that
    jobs hold which cannot be paused: everybody else has to leave. Of jobs whose tasks may be replaced while nothing is
    heard of them, those on machines that are away do not count, but hold their slots; once they are heard again the
    job has more tasks than it wants, and some leave.
    """
    shown = [live for live in jobs if (live.wants_slots and live.id not in held) or live.running]
    away = frozenset(node.id for node in observed.nodes if node.away)
    workloads = tuple(_without_unheard(view(live), kinds.of(live.job), away) for live in shown)
    known = {task.id for one in workloads for task in one.tasks}  # whoever runs is shown, with all that runs
    strange = {(task.node_id, slot) for task in observed.tasks if task.task_id not in known for slot in task.slots}
    stay = {(task.node_id, slot) for one in workloads if one.pinned for task in one.tasks for slot in task.slots}
    queues = views(out_of_use.usable(observed.nodes, but=stay))
    return Snapshot(
        nodes=without_slots(observed.nodes, strange | (out_of_use.closed(observed.nodes) - stay)),
        workloads=workloads,
        queues=queues,
        excluded=_excluded(queues, views(observed.nodes), out_of_use.words(observed.nodes)),
    )


def _without_unheard(seen: Workload, kind: Kind[Any], away: Container[NodeId]) -> Workload:
    if not kind.replaces_unheard or not any(task.node_id in away for task in seen.tasks):
        return seen
    return replace(
        seen, tasks=tuple(replace(task, leaving=task.leaving or task.node_id in away) for task in seen.tasks)
    )


def _excluded(
    queues: Iterable[QueueRules], whole: Iterable[QueueRules], words: Mapping[NodeId, str]
) -> Mapping[str, str]:
    """Return, by queue, what of its hosts is excluded, if it has fewer slots for that than it would have."""
    if not words:
        return {}
    found = {}
    for now, otherwise in zip(queues, whole, strict=True):
        every, left = otherwise.slots, now.slots or {}
        lost = [said for host, said in words.items() if every is None or left.get(host, 0) < every.get(host, 0)]
        if lost:
            found[now.name] = join_exclusions(lost)
    return found


UserOf = Callable[[LiveJob], RunAs | None]
"""Which user of the operating system a job's processes run as; None for the server's own."""


def apply_plan(draft: Draft, kinds: Kinds, plan: Plan, user_of: UserOf) -> bool:
    """Carry a plan into the draft; what is so already stays as it is. Return whether all of it is carried out.

    Once very many tasks start no other job starts any: that is for the next plan, which comes to the same targets. The
    more jobs a plan is for the more may start with it, so that the plans do not take more time than the starts.
    """
    num_started, is_whole = 0, True
    enough = max(MIN_STARTS, len(plan.grants) // _JOBS_PER_START)
    for job_id, grant in plan.grants.items():
        live = draft.job(job_id)
        if live is not None and live.competes:
            live = _note_decision(draft, live, grant, plan.reasons.get(job_id, ""))
            if grant.start and num_started >= enough:
                is_whole = False
            elif grant.start or grant.leave:
                num_started += _apply_grant(draft, kinds, live, grant, user_of(live))
    return is_whole


def _note_decision(draft: Draft, live: LiveJob, grant: Grant, reason: str) -> LiveJob:
    if live.on_hold:
        reason = live.job.why  # the scheduler knows only that it wants nothing
    if reason and reason != live.job.why:
        live = draft.put(replace(live, job=replace(live.job, why=reason)))
    if grant.num_tasks == live.target:
        return live
    slots = live.job.spec.num_slots_for
    data = {
        "from": live.target,
        "to": grant.num_tasks,
        "from_slots": slots(live.target),
        "num_slots": slots(grant.num_tasks),
    }
    draft.say(EventKind.DECISION, reason, job_id=live.id, data=data)
    return draft.put(replace(live, target=grant.num_tasks))


def _apply_grant(draft: Draft, kinds: Kinds, live: LiveJob, grant: Grant, user: RunAs | None) -> int:
    """Carry out what a job is granted; return how many of its tasks start."""
    kind, reason = kinds.of(live.job), live.job.why
    leave_now = tuple(t for t in grant.leave if t in live.tasks and live.tasks[t].state is not TaskState.LEAVING)
    leaving = kind.leavers(live, leave_now)
    starts = kind.starts(draft, live, grant.start) if grant.start and not live.unprepared else ()
    if starts:
        live = _start(draft, live, starts, user)
    if starts or leaving:
        live = draft.put(replace(live, resized_at=draft.now))
    if leaving:
        live = draft.put(live.give_up(live.tasks[task_id] for task_id in leaving))
        leave(draft, kind, live, leaving, reason)
    elif starts:
        release_leavers(draft, kind.regroup(draft, live, reason))
    return len(starts)


def _start(draft: Draft, live: LiveJob, starts: Sequence[TaskStart], user: RunAs | None) -> LiveJob:
    """Order processes of a job, all at once: what that costs grows with their number, and not with its square."""
    if live.job.started_at is None:
        live = draft.put(replace(live, job=replace(live.job, started_at=draft.now)))
    if live.job.state in (JobState.PENDING, JobState.PAUSED):
        live = job_event(draft, live, JobEvent.GRANT, "")
    first = draft.next_id(f"task:{live.id}", len(starts))
    orders = order_form(live.job, draft.settings, python=live.python, user=user)
    tasks = []
    for number, start in enumerate(starts, first):
        task = Task(
            id=TaskId(f"{live.id}.{number}"),
            job_id=live.id,
            node_id=start.placement.node_id,
            slots=start.placement.slots,
            state=TaskState.STARTING,
            started_at=draft.now,
        )
        slots = ", ".join(str(slot) for slot in task.slots)
        draft.say(
            EventKind.TASK_STARTED,
            f"{task.id} starts on slot{'s' * (len(task.slots) != 1)} {slots} of {task.node_id}"
            + " (given back)" * live.has_given_up(task)
            + (f" {start.note}" if start.note else ""),
            job_id=live.id,
            task_id=task.id,
        )
        draft.act(StartTask(order=orders(task, start)))
        tasks.append(task)
    return put_tasks(draft, live, tasks)
