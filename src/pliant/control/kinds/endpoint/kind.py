"""The kind of a version of an endpoint: its tasks are kernels, each by itself, and it wants as many as the load needs.

A kernel has no control link. It speaks to the gateway, and the gateway says when it is ready, how much there is to do,
and when it hangs (`kernels`). A kernel that is asked to leave gets a SIGTERM: it takes nothing more, hands back what it
has not begun, answers the rest, and ends. Example: `digits` has three kernels and the load needs one; the scheduler
takes two slots, two kernels drain, and the slots are free when they have exited.
"""

# ruff: noqa: ARG002 - the parameters are the protocol's

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from pliant.control.jobs.draft import Draft
from pliant.control.jobs.kind import Kind, Remembered, TaskStart, workload_of
from pliant.control.jobs.orders import job_token
from pliant.control.jobs.transitions import kill, kill_late, put_task
from pliant.control.kinds.endpoint import exits
from pliant.control.kinds.endpoint.drain import drain_leavers, wait_for_successors_until
from pliant.control.kinds.endpoint.job import EndpointJob
from pliant.control.kinds.endpoint.scaling import evaluate
from pliant.control.settings import Timeouts
from pliant.core.errors import Conflict, Problem
from pliant.core.job import Job, JobSpec, Task, TaskId
from pliant.core.lifecycle import JobState, TaskState
from pliant.core.plan import Placement
from pliant.core.ports import TaskExit
from pliant.core.serving_profile import EndpointPart, problems_of_profile
from pliant.core.task_environment import ServingTask
from pliant.core.workload import Workload

GATEWAY_SOCKET: Final = "gateway"
"""The name of the socket where kernels connect, in the folder of `server.json`."""


class Serving(Kind[EndpointJob]):
    """A version of an endpoint."""

    name = "endpoint"
    replaces_unheard = True  # what it answers reaches nobody, and it decides nothing

    def claims(self, spec: JobSpec) -> bool:
        return spec.endpoint is not None

    def begin(self, job: Job, now: float) -> EndpointJob:
        profile = part_of(job.spec).profile
        first = max(1, profile.kernel_min)  # one loads the model and shows that it can be
        return EndpointJob(
            job=job, adopted_at=now, profile=profile, wanted=first, demand="its model is loaded", decide_at=None
        )

    def view(self, live: EndpointJob) -> Workload:
        """Return a workload that wants what the load needs; its minimum is what it was promised, as far as needed."""
        seen = workload_of(self, live)
        if not live.competes:
            return seen
        profile = live.bounded
        wanted = min(live.wanted, profile.kernel_max)
        return replace(seen, min_tasks=min(wanted, max(1, profile.kernel_min)), max_tasks=wanted)

    def size(self, spec: JobSpec) -> str:
        profile = part_of(spec).profile
        return f"{profile.kernel_min} to {profile.kernel_max} kernels"

    def problems(self, spec: JobSpec) -> tuple[Problem, ...]:
        return problems_of_profile(part_of(spec).profile)

    def check_resize(self, live: EndpointJob, min_tasks: int, max_tasks: int) -> None:
        name = part_of(live.job.spec).name
        raise Conflict(f"{live.id} serves the endpoint {name}; change that: `pliant endpoints set {name} --max N`")

    def starts(self, draft: Draft, live: EndpointJob, placements: Sequence[Placement]) -> tuple[TaskStart, ...]:
        """Return the kernels that there are slots for; no more than the minimum before the model was ever loaded."""
        num = len(placements) if live.proven else max(1, live.profile.kernel_min) - len(live.staying)
        env = _environment(draft, live.job).to_env()
        return tuple(
            TaskStart(placement=placement, env=env, is_elastic=False, note="and loads the model")
            for placement in placements[: max(0, num)]
        )

    def regroup(self, draft: Draft, live: EndpointJob, cause: str) -> EndpointJob:
        """Have those drain that were asked to leave."""
        return drain_leavers(draft, live)

    def observe(self, draft: Draft, live: EndpointJob, pids: Mapping[TaskId, int]) -> None:
        for task in live.running:
            if task.pid is None and task.id in pids:
                live = put_task(draft, live, replace(task, pid=pids[task.id]))

    def take_exit(self, draft: Draft, live: EndpointJob, task: Task, ended: TaskExit) -> None:
        exits.take_exit(draft, live, task, ended)
        left = draft.job(live.id)
        if isinstance(left, EndpointJob):
            drain_leavers(draft, left)

    def lose_vanished(self, draft: Draft, live: EndpointJob, task: Task, how: str) -> None:
        """Lose a kernel; that says nothing of its model."""
        live = draft.put(replace(live, killed={**live.killed, task.id: how}))
        self.take_exit(draft, live, task, TaskExit(task_id=task.id, exit_code=None, cause=how))

    def kill_late(self, draft: Draft, live: EndpointJob, task: Task) -> EndpointJob:
        return kill_late(draft, live, task.id)

    def pass_time(self, draft: Draft, live: EndpointJob) -> None:
        """Evaluate demand if that is due, and end kernels that have loaded for too long."""
        if live.decide_at is not None and live.decide_at <= draft.now:
            live = evaluate(draft, live)
        for task, at in _load_deadlines(live):
            if at <= draft.now and task.id not in live.killed:
                limit = f"{live.job.spec.start_timeout_s:g} s"
                live = kill(draft, live, task.id, f"had not loaded its model after {limit}, was killed by Pliant")
        drain_leavers(draft, live)

    def next_deadline(self, live: EndpointJob) -> float | None:
        instants = [at for task, at in _load_deadlines(live) if task.id not in live.killed]
        if live.decide_at is not None:
            instants.append(live.decide_at)
        instants += wait_for_successors_until(live)
        return min(instants, default=None)

    def remark(self, live: EndpointJob, now: float) -> str:
        return live.demand

    def restore(self, live: EndpointJob, past: Remembered, timeouts: Timeouts) -> EndpointJob:
        """Return the job as if the load needed what it has, until the gateway reports."""
        has_served = live.job.state in (JobState.RUNNING, JobState.PAUSED)
        wanted = max(live.profile.kernel_min, len(live.staying), 0 if has_served else 1)
        demand = "the server has just started, and has heard of no load yet"
        return replace(
            live,
            has_served=has_served,
            has_answered=has_served,
            wanted=wanted,
            demand=demand,
            decide_at=live.adopted_at,
        )


def part_of(spec: JobSpec) -> EndpointPart:
    """Return what a job of this kind knows of its endpoint."""
    assert spec.endpoint is not None, "only jobs with an endpoint are of this kind"
    return spec.endpoint


def _load_deadlines(live: EndpointJob) -> list[tuple[Task, float]]:
    limit_s = live.job.spec.start_timeout_s
    return [
        (task, max(task.started_at, live.adopted_at) + live.slept_s + limit_s)
        for task in live.running
        if task.state is TaskState.STARTING
    ]


def _environment(draft: Draft, job: Job) -> ServingTask:
    settings, part = draft.settings, part_of(job.spec)
    folder = "" if settings.server_file is None else str(settings.server_file.parent / GATEWAY_SOCKET)
    return ServingTask(
        runner=part.runner,
        file=job.spec.script,
        endpoint=part.name,
        version=part.version,
        folder=str(settings.folders(job.id).code),
        gateway=folder,
        token=job_token(settings.secret, job.id),
        weights=part.weights,
    )
