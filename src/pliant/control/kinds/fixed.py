"""Fixed jobs: ordinary `torch.distributed` scripts of one size, whose processes start, fail and end together.

They have no control link and no coordinator: what is known of a process is that it exists, how it ended, and what it
left behind. All tasks are started by one decision or none; when one fails or is lost the others are ended, and when all
are gone the job waits for its slots again, as the first in line. It completes when all its processes have ended with
exit code 0. Example: of four processes two have finished and one fails. The fourth is ended, and all four start again.
"""

# ruff: noqa: ARG002 - the parameters are the protocol's

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pliant.control.jobs.draft import Draft
from pliant.control.jobs.failure import describe_exit, fail_after_exits
from pliant.control.jobs.kind import Kind, Remembered, TaskStart, workload_of
from pliant.control.jobs.live import LiveJob
from pliant.control.jobs.transitions import (
    advanced,
    complete,
    fail,
    job_event,
    kill_late,
    leave,
    put_tasks,
    task_event,
    vacate,
)
from pliant.control.settings import Timeouts
from pliant.core.errors import Conflict, Problem
from pliant.core.event import EventKind
from pliant.core.job import Job, JobSpec, Task, TaskId
from pliant.core.lifecycle import JobEvent, JobState, TaskEvent, TaskState
from pliant.core.plan import Placement
from pliant.core.ports import Address, ExitFacts, TaskExit
from pliant.core.task_environment import FixedTask
from pliant.core.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedJob(LiveJob):
    """A fixed job, as it stands."""

    finished: frozenset[TaskId] = frozenset()
    """Those of its processes that ended with exit code 0."""
    restarting: bool = False
    """A process has failed: the job keeps its place in line until all start again."""


class Fixed(Kind[FixedJob]):
    """Scripts that cannot go on with another number of processes."""

    name = "fixed"

    def claims(self, spec: JobSpec) -> bool:
        return spec.fixed

    def begin(self, job: Job, now: float) -> FixedJob:
        return FixedJob(job=job, adopted_at=now)

    def view(self, live: FixedJob) -> Workload:
        pinned = live.restarting or bool(live.running)
        return workload_of(self, live, num_done=len(live.finished), pinned=pinned)

    def size(self, spec: JobSpec) -> str:
        return f"fixed at {spec.max_tasks}"

    def problems(self, spec: JobSpec) -> tuple[Problem, ...]:
        if spec.min_tasks < spec.max_tasks:
            message = f"{spec.min_tasks} is below max_tasks {spec.max_tasks} of a fixed job; give it the same"
            return (Problem(field="min_tasks", message=message),)
        return super().problems(spec)

    def check_resize(self, live: FixedJob, min_tasks: int, max_tasks: int) -> None:
        job = live.job
        raise Conflict(
            f"{job.id} is fixed at {job.max_tasks}: its script cannot go on with another number of processes; stop it "
            f"and submit it again with another --fixed"
        )

    def starts(self, draft: Draft, live: FixedJob, placements: Sequence[Placement]) -> tuple[TaskStart, ...]:
        """Return all processes in order of rank; none unless all of them can start and none is left."""
        if live.running or len(placements) < live.job.max_tasks:
            return ()
        nodes = list(dict.fromkeys(placement.node_id for placement in placements))
        ordered = sorted(placements, key=lambda placement: nodes.index(placement.node_id))
        try:
            meeting = draft.free_address(ordered[0].node_id)
        except OSError as error:  # nobody else is held up by it
            if live.held_until is None:  # it is said once, and tried again and again
                words = f"{live.label}: {ordered[0].node_id} has no port at which its processes could meet: {error}"
                draft.say(EventKind.WARNING, words, job_id=live.id)
            draft.put(replace(live, held_until=draft.now + draft.settings.timeouts.backoff_s))
            return ()
        return tuple(
            TaskStart(
                placement=placement,
                env=_environment(live.job, assigned).to_env(),
                is_elastic=False,
                sees=assigned.node_slots,
                note=f"as rank {assigned.rank} of {assigned.size}",
            )
            for placement, assigned in zip(ordered, assign_ranks(ordered, meeting), strict=True)
        )

    def leavers(self, live: FixedJob, task_ids: tuple[TaskId, ...]) -> tuple[TaskId, ...]:
        """Return all of them: if one has to leave, because its slot is gone, nobody can go on."""
        return tuple(task.id for task in live.staying) if task_ids else ()

    def regroup(self, draft: Draft, live: FixedJob, cause: str) -> FixedJob:
        return draft.put(replace(live, restarting=False)) if live.staying else live

    def observe(self, draft: Draft, live: FixedJob, pids: Mapping[TaskId, int]) -> None:
        """Take note of which processes exist; the job runs when all of them do."""
        began = []
        for task in live.tasks.values():
            if task.state is TaskState.STARTING and task.id in pids:
                ready = advanced(draft, replace(task, pid=pids[task.id]), TaskEvent.READY)
                began.append(advanced(draft, ready, TaskEvent.JOIN))
        if began:
            live = put_tasks(draft, live, began)
        if live.job.state is JobState.STARTING and (running := live.running):  # others have nothing to wait for
            whole = all(task.state is TaskState.TRAINING for task in running)
            live = job_event(draft, live, JobEvent.TRAIN, "") if whole else live

    def take_exit(self, draft: Draft, live: FixedJob, task: Task, ended: TaskExit) -> None:
        if live.over or task.state is TaskState.LEAVING:
            _leave(draft, live, task)
        elif ended.error and task.started_at >= live.adopted_at:
            live = task_event(draft, live, task.id, TaskEvent.LOSE, ended.error)
            fail(draft, live, f"{task.id} could not be started: {ended.error}")
        elif ended.error:
            self.lose_vanished(draft, live, task, f"was not started: {ended.error}")
        elif ended.went_with_its_machine:
            self.lose_vanished(draft, live, task, ended.cause)
        elif ended.exit_code == 0:
            _finish(draft, live, task)
        else:
            self._fail_process(draft, live, task, ended.exit_code, ended.facts)

    def lose_vanished(self, draft: Draft, live: FixedJob, task: Task, how: str) -> None:
        """Lose a process for which nobody is to blame; all start again."""
        if live.over or task.state is TaskState.LEAVING:
            _leave(draft, live, task)
            return
        live = task_event(draft, live, task.id, TaskEvent.LOSE, how)
        draft.say(EventKind.TASK_LOST, f"{task.id} of {live.label} {how}", job_id=live.id, task_id=task.id)
        self._end_all(draft, live, f"{task.id} {how}; all its processes start again")

    def kill_late(self, draft: Draft, live: FixedJob, task: Task) -> FixedJob:
        return kill_late(draft, live, task.id)

    def restore(self, live: FixedJob, past: Remembered, timeouts: Timeouts) -> FixedJob:
        """Return the job with the processes that had finished; those that live say nothing, and nothing is awaited."""
        return replace(live, finished=finished_before(live.job, past.tasks))

    def _fail_process(self, draft: Draft, live: FixedJob, task: Task, exit_code: int | None, facts: ExitFacts) -> None:
        how, spec = live.killed.get(task.id) or describe_exit(exit_code), live.job.spec
        live = task_event(draft, live, task.id, TaskEvent.LOSE, how)
        number = live.job.num_restarts + 1
        last = number > spec.max_restarts
        what = "no restart is left" if last else f"all processes start again (restart {number} of {spec.max_restarts})"
        draft.say(
            EventKind.TASK_LOST,
            f"{task.id} of {live.label} {how}; {what}",
            job_id=live.id,
            task_id=task.id,
            data={"exit_code": exit_code, "restart": None if last else number},
        )
        if last:
            times = f" after {spec.max_restarts} restart{'s' * (spec.max_restarts != 1)}" if spec.max_restarts else ""
            reason = f"{task.id} {how}{times}, and no restart is left"
            fail_after_exits(draft, live, task, reason, facts=facts, first_raised=True)
            return
        live = draft.put(replace(live, job=replace(live.job, num_restarts=number), restarting=exit_code is not None))
        self._end_all(draft, live, f"restart {number} of {spec.max_restarts}: {task.id} {how}")

    def _end_all(self, draft: Draft, live: FixedJob, cause: str) -> None:
        live = draft.put(replace(live, finished=frozenset(), target=live.job.max_tasks))
        if not live.running:
            vacate(draft, live, cause)
        elif live.staying:
            leave(draft, self, live, tuple(task.id for task in live.staying), cause)


def _leave(draft: Draft, live: FixedJob, task: Task) -> None:
    live = task_event(draft, live, task.id, TaskEvent.EXIT)
    why = task.reason or "its job is over"
    draft.say(EventKind.TASK_LEFT, f"{task.id} was ended: {why}", job_id=live.id, task_id=task.id)
    if not live.running and not live.over:
        vacate(draft, draft.put(replace(live, finished=frozenset())), task.reason)


def _finish(draft: Draft, live: FixedJob, task: Task) -> None:
    live = task_event(draft, live, task.id, TaskEvent.EXIT)
    live = draft.put(replace(live, finished=live.finished | {task.id}, target=max(0, live.target - 1)))
    draft.say(EventKind.TASK_LEFT, f"{task.id} has finished", job_id=live.id, task_id=task.id)
    if not live.running:
        all_of_them = "its process" if len(live.finished) == 1 else f"all {len(live.finished)} processes"
        complete(draft, live, f"{all_of_them} ended with exit code 0")


def finished_before(job: Job, tasks: Sequence[Task]) -> frozenset[TaskId]:
    """Return which processes of the present attempt had finished when the server went away.

    Args:
        job: a fixed job.
        tasks: all it ever had, oldest first. An attempt starts all processes, so the newest ones are the present one.
    """
    newest = tasks[-job.max_tasks :]
    ended = [task for task in newest if task.ended]
    over = len(ended) == len(newest) or any(task.exit_code != 0 for task in ended)
    if over or any(task.state is TaskState.LEAVING for task in newest):
        return frozenset()
    return frozenset(task.id for task in ended)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankAssignment:
    """The place of one process among all of a fixed job; they were ordered together."""

    rank: int
    size: int
    local_rank: int
    """Among those of its node."""
    local_size: int
    node_rank: int
    """Its node's number."""
    num_nodes: int
    meeting: Address
    """Where the process of rank 0 will listen."""
    node_slots: tuple[int, ...]
    """Slots of all of the job's processes on its node, by local rank: scripts choose their device by that."""


def assign_ranks(placements: Sequence[Placement], meeting: Address) -> tuple[RankAssignment, ...]:
    """Return the place of every process; those of a node have consecutive ranks, as torchrun gives them."""
    nodes = list(dict.fromkeys(placement.node_id for placement in placements))
    found = []
    for rank, placement in enumerate(placements):
        beside = [other for other in placements if other.node_id == placement.node_id]
        firsts = [other.slots[0] for other in beside]
        found.append(
            RankAssignment(
                rank=rank,
                size=len(placements),
                local_rank=beside.index(placement),
                local_size=len(beside),
                node_rank=nodes.index(placement.node_id),
                num_nodes=len(nodes),
                meeting=meeting,
                node_slots=(*firsts, *(slot for other in beside for slot in other.slots[1:])),
            )
        )
    return tuple(found)


def _environment(job: Job, assigned: RankAssignment) -> FixedTask:
    return FixedTask(
        master_address=assigned.meeting.host,
        master_port=assigned.meeting.port,
        rank=assigned.rank,
        size=assigned.size,
        local_rank=assigned.local_rank,
        local_size=assigned.local_size,
        node_rank=assigned.node_rank,
        num_nodes=assigned.num_nodes,
        num_restarts=job.num_restarts,
        max_restarts=job.spec.max_restarts,
        run_id=job.id,
    )
