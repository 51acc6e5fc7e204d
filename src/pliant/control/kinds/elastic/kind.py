"""The kind `elastic`: what its tasks get, and who of its parts decides what."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pliant.control.jobs.draft import Draft
from pliant.control.jobs.kind import Kind, Remembered, TaskStart, problems_of_bounds, workload_of
from pliant.control.jobs.orders import job_token
from pliant.control.jobs.transitions import kill, kill_late, release_leavers
from pliant.control.kinds.elastic import exits, messages, reach, stall
from pliant.control.kinds.elastic.coordination import coordinate, regroup
from pliant.control.kinds.elastic.imports import can_train_elastically
from pliant.control.kinds.elastic.job import ElasticJob
from pliant.control.kinds.elastic.own_logging import note_own_logging
from pliant.control.settings import ControlSettings, Timeouts
from pliant.core.errors import InvalidInput
from pliant.core.job import Job, JobSpec, Task
from pliant.core.lifecycle import GENERATION_LIFECYCLE, GenerationState, TaskState, is_final
from pliant.core.link import FromTask
from pliant.core.plan import Placement
from pliant.core.ports import TaskExit
from pliant.core.task_environment import ElasticTask
from pliant.core.workload import Workload
from pliant.policy.elastic.membership import GenerationView, Gone, Membership, Tick, restore
from pliant.policy.elastic.paths import next_trial


class Elastic(Kind[ElasticJob]):
    """Trainings that go on with any number of tasks between their bounds."""

    name = "elastic"
    speaks = True

    def claims(self, spec: JobSpec) -> bool:
        return not spec.fixed

    def begin(self, job: Job, now: float) -> ElasticJob:
        return ElasticJob(job=job, membership=Membership(job_id=job.id), adopted_at=now)

    def notes(self, spec: JobSpec, code: Path) -> tuple[str, ...]:
        """Say so if nothing in the code can train elastically, or if every task would log to a tracker."""
        if can_train_elastically(code / spec.script, code, spec.args):
            return note_own_logging(code / spec.script, num_tasks=spec.max_tasks, is_tracked=spec.tracking)
        whole = "each task runs all of it" if spec.min_tasks > 1 else "one task runs all of it"
        return (
            f"{spec.script} cannot train elastically: no code of it imports pliant.train, fabric_model or pyedt. So "
            f"{whole}, from the beginning after every pause, and for {spec.start_timeout_s:g} s, its start timeout, at "
            f"most; submit a plain script with `--fixed 1`",
        )

    def check_resize(self, live: ElasticJob, min_tasks: int, max_tasks: int) -> None:
        known = [v for v in (live.job.spec.virtual_workers, live.virtual_workers) if v is not None]
        if problems := problems_of_bounds(min_tasks, max_tasks, min(known, default=None)):
            raise InvalidInput(*problems)

    def view(self, live: ElasticJob) -> Workload:
        return replace(workload_of(self, live), apart=reach.apart(live))

    def starts(self, draft: Draft, live: ElasticJob, placements: Sequence[Placement]) -> tuple[TaskStart, ...]:
        """Return as many as there are slots for; no more than the minimum before it is proven that the job trains."""
        if not live.proven:
            placements = placements[: max(0, live.job.min_tasks - len(live.staying))]
        env = _environment(live.job, draft.settings).to_env()
        return tuple(TaskStart(placement=placement, env=env) for placement in placements)

    def regroup(self, draft: Draft, live: ElasticJob, cause: str) -> ElasticJob:
        return regroup(draft, live, cause)

    def receive(self, draft: Draft, live: ElasticJob, task: Task, message: FromTask, number: int) -> None:
        messages.receive(draft, live, task, message, number)

    def take_exit(self, draft: Draft, live: ElasticJob, task: Task, ended: TaskExit) -> None:
        exits.take_exit(draft, live, task, ended)

    def lose_vanished(self, draft: Draft, live: ElasticJob, task: Task, how: str) -> None:
        exits.lose_vanished(draft, live, task, how)

    def fence(self, draft: Draft, live: ElasticJob, task: Task, how: str) -> None:
        exits.fence(draft, live, task, how, blame=True)

    def kill_late(self, draft: Draft, live: ElasticJob, task: Task) -> ElasticJob:
        """Kill a process that was to be gone, or that has not said hello to a new server in time."""
        if task.id in live.raised:
            return kill(draft, live, task.id, "raised, did not end in time and was killed by Pliant")
        done = live.over or task.state is TaskState.LEAVING or task.id in live.finished
        if done or task.id in live.killed:
            return kill_late(draft, live, task.id)
        silent_s = draft.now - live.adopted_at - live.slept_s
        return exits.fence(
            draft, live, task, f"said nothing for {silent_s:.0f} s after the server came back", blame=False
        )

    def pass_time(self, draft: Draft, live: ElasticJob) -> None:
        """Fail if a script never began to train; let the coordinator know the time."""
        late = [task for task in live.running if (at := _start_deadline(live, task)) is not None and at <= draft.now]
        if late:
            exits.fail_unstarted(draft, live, late[0])
            return
        if live.recovers_until is not None and live.recovers_until <= draft.now:
            live = draft.put(replace(live, recovers_until=None))
        live = stall.pass_time(draft, reach.pass_time(draft, live))
        wake_at = live.membership.wake_at
        if not live.over and wake_at is not None and wake_at <= draft.now:
            release_leavers(draft, coordinate(draft, live, Tick()))

    def next_deadline(self, live: ElasticJob) -> float | None:
        instants = [at for task in live.running if (at := _start_deadline(live, task)) is not None]
        others = (live.membership.wake_at, live.recovers_until, stall.next_deadline(live), next_trial(live.paths))
        instants += [at for at in others if at is not None]
        return min(instants, default=None)

    def ask_stacks(self, draft: Draft, live: ElasticJob) -> ElasticJob:
        return stall.ask(draft, live)

    def remark(self, live: ElasticJob, now: float) -> str:
        return stall.remark(live, now)

    def restore(self, live: ElasticJob, past: Remembered, timeouts: Timeouts) -> ElasticJob:
        """Return the job with its membership; its tasks are expected to say hello, those that were ready sooner."""
        limits = {TaskState.WARM: timeouts.return_s, TaskState.TRAINING: timeouts.return_s}
        generations = {g.number: g for g in past.generations if not is_final(GENERATION_LIFECYCLE, g.state)}
        groups = {
            g.state: GenerationView(number=g.number, members=g.members, cause=g.cause) for g in generations.values()
        }
        staying, progress = frozenset(task.id for task in live.staying), live.job.progress
        return replace(
            live,
            membership=restore(
                live.id,
                number=max((g.number for g in past.generations), default=0),
                active=groups.get(GenerationState.ACTIVE),
                forming=groups.get(GenerationState.FORMING),
                wanted=staying,
                leaving=frozenset(live.tasks) - staying,
            ),
            generations=generations,
            trained=any(g.switched_at is not None for g in past.generations),
            step=max((g.step or 0 for g in past.generations), default=0),
            virtual_workers=None if progress is None else progress.virtual_workers,
            kill_at={
                task.id: live.adopted_at + limits.get(task.state, timeouts.silent_s) for task in live.tasks.values()
            },
        )

    def resume(self, draft: Draft, live: ElasticJob) -> None:
        """Let the coordinator know who is there still."""
        alive = {task.id for task in live.running}
        for task_id in live.membership.tasks.keys() - alive:
            live = coordinate(draft, live, Gone(task_id=task_id))
        if alive:
            release_leavers(draft, regroup(draft, live, "the server is back"))


def _start_deadline(live: ElasticJob, task: Task) -> float | None:
    if task.state is not TaskState.STARTING or not live.competes:
        return None
    return max(task.started_at, live.adopted_at) + live.slept_s + live.job.spec.start_timeout_s


def _environment(job: Job, settings: ControlSettings) -> ElasticTask:
    certificate, server_file = settings.trust.certificate, settings.server_file
    return ElasticTask(
        url=settings.url,
        job_name=job.spec.name,
        token=job_token(settings.secret, job.id),
        lease_s=settings.timeouts.lease_s,
        virtual_workers=job.spec.virtual_workers,
        balance=job.spec.balance,
        max_tasks=job.spec.max_tasks,
        mode=job.spec.mode,
        checkpoint_freq=job.spec.checkpoint_freq,
        checkpoint_every_s=job.spec.checkpoint_every_s,
        certificate=None if certificate is None else str(certificate),
        server_name=settings.trust.server_name,
        server_file=None if server_file is None else str(server_file),
        metrics_every=job.spec.metrics_every,
        histograms_every=job.spec.histograms_every,
        tracking=job.spec.tracking,
        audit=job.spec.audit,
        resume_from=job.spec.resume_from,
        own_numbers=job.spec.own_numbers,
        keep_every=None if job.spec.trial is None else job.spec.trial.keep_every or None,
    )
