"""What each message of an elastic training's task means. Who trains with whom is decided elsewhere (`coordination`).

A message may come twice; most of them change nothing the second time. News, which only become events, are recognised by
their number: it is written with the event, so that the next server does not repeat it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, assert_never

from pliant.control.jobs.draft import Draft
from pliant.control.jobs.transitions import (
    complete,
    dismiss_unknown,
    kill_later,
    put_task,
    release_leavers,
    task_event,
)
from pliant.control.kinds.elastic.claims import take_claim
from pliant.control.kinds.elastic.coordination import coordinate, leave
from pliant.control.kinds.elastic.exits import take_failure
from pliant.control.kinds.elastic.job import ElasticJob
from pliant.control.kinds.elastic.reach import take_unreachable
from pliant.control.kinds.elastic.stall import begin_watch, take_sign, take_stacks, take_step
from pliant.core.event import EventKind
from pliant.core.job import Metric, Task
from pliant.core.job_params import merged
from pliant.core.lifecycle import TaskEvent, TaskState
from pliant.core.link import (
    Claimed,
    EpochFinished,
    Failed,
    Finished,
    FromTask,
    Hello,
    Histograms,
    Leaving,
    Left,
    Lost,
    Note,
    Params,
    Point,
    Pulse,
    Ready,
    Report,
    Saved,
    SaveFailed,
    Stacks,
    Switched,
    Unreachable,
)
from pliant.core.size import size
from pliant.core.tensor_histogram import JobHistograms, sound
from pliant.policy.elastic.membership import TaskMessage

_SHOWN_NAME: Final = 60
News = EpochFinished | Saved | SaveFailed | Note | Stacks
"""What becomes an event each time that it is said."""


def receive(draft: Draft, live: ElasticJob, task: Task, message: FromTask, number: int) -> None:
    """Take in one message of a live task; one that was fenced is lost already, and is sent away if it says hello."""
    if task.id not in live.fenced:
        _receive(draft, live, task, message, number)
    elif isinstance(message, Hello):
        dismiss_unknown(draft, live.id, task.id)


def _receive(draft: Draft, live: ElasticJob, task: Task, message: FromTask, number: int) -> None:
    match message:
        case Hello():
            _greet(draft, live, task, message)
        case Ready():
            _note_ready(draft, live, task, message)
        case Switched() | Lost():
            _note_standing(draft, _advance(draft, live, message.step), task, message)
        case Left():
            _leave(draft, live, task, message)
        case Leaving():
            if task.state is not TaskState.LEAVING:
                leave(draft, live, task, f"{task.id} was asked to go: {message.reason}")
        case Finished():
            _finish(draft, live, task, message)
        case Failed():
            take_failure(draft, live, task, message)
        case EpochFinished() | Saved() | SaveFailed() | Note() | Stacks():
            _take_news(draft, live, task, message, number)
        case _:
            _take_report(draft, live, task, message)


def _greet(draft: Draft, live: ElasticJob, task: Task, hello: Hello) -> None:
    if hello.generation is not None and hello.generation > live.membership.number:
        dismiss_unknown(draft, live.id, task.id)
        if task.state is not TaskState.LEAVING:
            cause = f"it says it trains in generation {hello.generation}, never announced"
            live = leave(draft, live, task, cause)
        kill_later(draft, live, task.id, draft.now + draft.settings.timeouts.leave_s)
        return
    if task.state is not TaskState.LEAVING and task.id in live.kill_at:
        expected = {task_id: at for task_id, at in live.kill_at.items() if task_id != task.id}
        live = draft.put(replace(live, kill_at=expected))
    if task.pid != hello.pid:
        live = put_task(draft, live, replace(task, pid=hello.pid))
    if hello.ready and task.state is TaskState.STARTING:
        live = task_event(draft, live, task.id, TaskEvent.READY)
    live = _advance(draft, live, hello.step or 0)
    if hello.ready:
        live = begin_watch(draft, live)
    release_leavers(draft, coordinate(draft, live, TaskMessage(task_id=task.id, message=hello)))


def _note_ready(draft: Draft, live: ElasticJob, task: Task, ready: Ready) -> None:
    if task.state is TaskState.STARTING:
        took = draft.now - task.started_at
        draft.say(
            EventKind.TASK_READY,
            f"{task.id} is ready to train, {took:.1f} s after its start",
            job_id=live.id,
            task_id=task.id,
        )
    live = begin_watch(draft, task_event(draft, live, task.id, TaskEvent.READY))
    live = _bound(draft, live, ready.virtual_workers)
    release_leavers(draft, coordinate(draft, live, TaskMessage(task_id=task.id, message=ready)))


def _bound(draft: Draft, live: ElasticJob, virtual_workers: int) -> ElasticJob:
    """Keep the job's limits within the V that its script really uses."""
    live = draft.put(replace(live, virtual_workers=virtual_workers))
    job = live.job
    if job.max_tasks <= virtual_workers:
        return live
    message = (
        f"the script cuts its global batch into {virtual_workers} parts, so max_tasks {job.max_tasks} is lowered "
        f"to {virtual_workers}; submit again with `--virtual-workers {job.max_tasks}` for more parts"
    )
    draft.say(EventKind.JOB_CHANGED, f"{live.label}: {message}", job_id=live.id, data={"max_tasks": virtual_workers})
    job = replace(job, max_tasks=virtual_workers, min_tasks=min(job.min_tasks, virtual_workers), why=message)
    return draft.put(replace(live, job=job))


def _advance(draft: Draft, live: ElasticJob, step: int) -> ElasticJob:
    return draft.put(replace(live, step=step)) if step > live.step else live


def _note_standing(draft: Draft, live: ElasticJob, task: Task, message: Switched | Lost) -> None:
    if isinstance(message, Switched) and message.leader:
        live = take_sign(draft, live)
    release_leavers(draft, coordinate(draft, live, TaskMessage(task_id=task.id, message=message)))


def _leave(draft: Draft, live: ElasticJob, task: Task, left: Left) -> None:
    live = _advance(draft, live, left.step)
    live = task_event(draft, live, task.id, TaskEvent.LEAVE)
    live = kill_later(draft, live, task.id, draft.now + draft.settings.timeouts.leave_s)
    coordinate(draft, live, TaskMessage(task_id=task.id, message=left))


def _finish(draft: Draft, live: ElasticJob, task: Task, message: Finished) -> None:
    new, known = message.progress, live.job.progress
    newer = new is not None and (known is None or new.step > known.step)
    job = replace(live.job, digest=live.job.digest or message.digest, progress=new if newer else known)
    live = draft.put(replace(live, job=job, finished=live.finished | {task.id}))
    if not live.over and finished_by_leader(live):
        complete(draft, live, live.describe_end())


def finished_by_leader(live: ElasticJob) -> bool:
    """Tell whether the leader has said that training is over, or others when there is no leader any more."""
    leader = live.membership.active[0] if live.membership.active else None
    alive = {task.id for task in live.running}
    return bool(live.finished) and (leader in live.finished or leader not in alive)


def _take_report(
    draft: Draft, live: ElasticJob, task: Task, message: Report | Histograms | Params | Claimed | Unreachable | Pulse
) -> None:
    match message:
        case Pulse():
            pass  # it has renewed the task's lease, and that is all
        case Claimed():
            take_claim(draft, live, task, message)
        case Unreachable():
            take_unreachable(draft, live, task, message)
        case Report():
            _note_progress(draft, live, message)
        case Params():
            _note_params(draft, live, message)
        case Histograms():
            if found := tuple(replace(one, at=_sensible(draft, live, one.at)) for one in sound(message.histograms)):
                draft.keep_histograms(JobHistograms(job_id=live.id, histograms=found))
        case _:
            assert_never(message)


def _take_news(draft: Draft, live: ElasticJob, task: Task, message: News, number: int) -> None:
    if 0 < number <= task.last_message:
        return
    live = put_task(draft, live, replace(task, last_message=max(task.last_message, number)))
    match message:
        case EpochFinished():
            _say_epoch(draft, _advance(draft, live, message.step), task, message)
        case Saved():
            _say_saved(draft, live, task, message)
        case SaveFailed():
            draft.say(
                EventKind.CHECKPOINT_FAILED,
                f"{live.label}: the checkpoint at step {message.step} could not be written ({message.error}); the one "
                f"before it is untouched and training goes on",
                job_id=live.id,
                task_id=task.id,
                data={"step": message.step},
            )
        case Note():
            draft.say(EventKind.WARNING, f"{live.label}: {message.message}", job_id=live.id, task_id=task.id)
        case Stacks():
            take_stacks(draft, live, task, message)
        case _:
            assert_never(message)


def _sensible(draft: Draft, live: ElasticJob, at: float) -> float:
    """Return an instant of a task's clock, which may be wrong: nothing is older than its job, or of the future."""
    return min(max(at, live.job.submitted_at), draft.now)


def _note_progress(draft: Draft, live: ElasticJob, report: Report) -> None:
    if live.over:
        _take_points(draft, live, report.points)
        return
    current = live.membership.current
    if current is None or report.generation >= current.number:
        live = draft.put(replace(live, job=replace(live.job, progress=report.progress)))
        live = take_step(draft, live, report.progress)
    said = report.progress.virtual_workers
    if live.virtual_workers is None and said is not None:  # those who were ready before this server began say it so
        live = _bound(draft, live, said)
    live = _advance(draft, live, report.progress.step)
    if live.recovers_until is not None and _trains_again(live, report):
        live = draft.put(replace(live, recovers_until=None))
    _take_points(draft, live, report.points)


def _take_points(draft: Draft, live: ElasticJob, points: Sequence[Point]) -> None:
    """Keep points of series; the first one that cannot be kept is told of, and those after it only left out."""
    for point in points:
        if not point.fault:
            at = _sensible(draft, live, point.at)
            draft.measure(
                Metric(job_id=live.id, name=point.name, step=point.step, epoch=point.epoch, at=at, value=point.value)
            )
    refused = next((point for point in points if point.fault), None)
    if refused is not None and not live.refused_points:
        draft.put(replace(live, refused_points=True))
        draft.say(
            EventKind.WARNING,
            f"{live.label}: points of the series {refused.name[:_SHOWN_NAME]!r} are not kept: {refused.fault}",
            job_id=live.id,
        )


def _note_params(draft: Draft, live: ElasticJob, message: Params) -> None:
    params = merged(live.job.params, message.values)
    if params != live.job.params:
        draft.put(replace(live, job=replace(live.job, params=params)))


def _trains_again(live: ElasticJob, report: Report) -> bool:
    """Tell whether the survivors of a loss have done a step since."""
    current = live.membership.current
    if current is None or current.dead or report.generation != current.number:
        return False
    active = live.generations.get(current.number)
    return active is not None and active.step is not None and report.progress.step > active.step


def _say_epoch(draft: Draft, live: ElasticJob, task: Task, message: EpochFinished) -> None:
    metrics = "".join(f", {name} {value:.4g}" for name, value in sorted(message.metrics.items()))
    draft.say(
        EventKind.EPOCH_FINISHED,
        f"{live.label}: epoch {message.epoch} is finished at step {message.step}, {message.samples} samples{metrics}",
        job_id=live.id,
        task_id=task.id,
        data={
            "epoch": message.epoch,
            "step": message.step,
            "samples": message.samples,
            **{f"metrics.{name}": value for name, value in message.metrics.items()},
        },
    )


def _say_saved(draft: Draft, live: ElasticJob, task: Task, message: Saved) -> None:
    kind = EventKind.MODEL_SAVED if message.what == "model" else EventKind.CHECKPOINT_SAVED
    draft.say(
        kind,
        f"{live.label}: the {message.what} at step {message.step} is saved in {message.path} "
        f"({size(message.num_bytes)} in {message.seconds:.2f} s)",
        job_id=live.id,
        task_id=task.id,
        data={
            "step": message.step,
            "epoch": message.epoch,
            "path": message.path,
            "num_bytes": message.num_bytes,
            "seconds": message.seconds,
        },
    )
