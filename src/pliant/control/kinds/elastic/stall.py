"""What becomes of an elastic training that does no step for much longer than usual.

When that is, says `policy.elastic.stall`. Here is what follows: people see no speed any more that is not true; an event
says that it is stalled; all its tasks are asked where their threads are, and what they answer is an event each. Then
its owner's wish is done: nothing more (`warn`), or the tasks that do not wait for others are killed and replaced
(`replace`), or the job fails (`end`). Example: of three tasks the second hangs in its `Dataset`. The others wait for
its gradient. They answer that they wait, and it answers `train.py:12 in __getitem__`: it is the one that is replaced.
A task says itself whether it waits, so one that lies does harm to its own job alone.
"""

from collections.abc import Mapping
from dataclasses import replace

from pliant.control.jobs.draft import Draft, SendMessage
from pliant.control.jobs.failure import fail_after_exits
from pliant.control.kinds.elastic import exits
from pliant.control.kinds.elastic.job import ElasticJob, Stall, TaskLine
from pliant.core.duration import duration
from pliant.core.event import EventKind
from pliant.core.job import Job, Progress, Task, TaskId
from pliant.core.lifecycle import JobState, TaskState
from pliant.core.link import ShowStacks, Stacks
from pliant.policy.elastic.stall import StallLimits, StepWatch, look, next_look, note_sign, note_step

ANSWERS_S = 5.0
"""So long a task has to say where its threads are; one that says nothing counts as stuck."""
MAX_STACKS_CHARS = 20_000
MAX_LINE_CHARS = 200


def limits_of(job: Job) -> StallLimits:
    """Return what the job's owner wants."""
    return StallLimits(stall_after_s=job.spec.stall_after_s, first_step_s=job.spec.start_timeout_s)


# signs


def begin_watch(draft: Draft, live: ElasticJob) -> ElasticJob:
    """Take note that a task is ready: from now on a first step is awaited."""
    if live.watch.sign_at is not None or not live.competes:
        return live
    return draft.put(replace(live, watch=note_sign(live.watch, draft.now)))


def take_sign(draft: Draft, live: ElasticJob) -> ElasticJob:
    """Take note that the training goes on, though perhaps without a new step."""
    return _go_on(draft, live, note_sign(live.watch, draft.now))


def take_step(draft: Draft, live: ElasticJob, progress: Progress) -> ElasticJob:
    """Take note of a report of the leader's; after the last step another limit holds, as before the first."""
    watch = note_step(live.watch, progress.step, draft.now)
    if progress.step >= progress.num_steps:
        watch = replace(watch, usual_s=None)
    return _go_on(draft, live, watch)


def _go_on(draft: Draft, live: ElasticJob, watch: StepWatch) -> ElasticJob:
    if live.watch.phase == "stalled":
        idle_s = live.watch.idle_s(draft.now)
        draft.say(
            EventKind.JOB_RESUMED,
            f"{live.label} goes on after {duration(idle_s)}",
            job_id=live.id,
            data={"step": watch.step, "idle_s": round(idle_s, 1)},
        )
    return draft.put(replace(live, watch=watch, stall=None))


# time


def next_deadline(live: ElasticJob) -> float | None:
    """Return when `pass_time` next has something to do; None if never."""
    if not live.competes:
        return None
    if live.stall is not None and live.stall.act_at is not None:
        return live.stall.act_at
    return next_look(live.watch, limits_of(live.job))


def pass_time(draft: Draft, live: ElasticJob) -> ElasticJob:
    """Do what is due for a training that does no step."""
    at = next_deadline(live)
    if at is None or at > draft.now:
        return live
    if live.stall is not None:
        return _act(draft, live, live.stall)
    watch = look(live.watch, limits_of(live.job), draft.now)
    live = _show_no_speed(draft, draft.put(replace(live, watch=watch)))
    return _stall(draft, live) if watch.phase == "stalled" else live


def _show_no_speed(draft: Draft, live: ElasticJob) -> ElasticJob:
    progress = live.job.progress
    if progress is None:
        return live
    progress = replace(progress, samples_per_s=0.0, eta_s=None)
    return draft.put(replace(live, job=replace(live.job, progress=progress)))


def _stall(draft: Draft, live: ElasticJob) -> ElasticJob:
    limit_s = limits_of(live.job).limit_s(live.watch) or 0.0
    draft.say(
        EventKind.JOB_STALLED,
        f"{live.label} {_idle(live, draft.now)}; its tasks are asked where they are, see `pliant stacks {live.id}`",
        job_id=live.id,
        data={
            "step": live.watch.step,
            "idle_s": round(live.watch.idle_s(draft.now), 1),
            "limit_s": round(limit_s, 1),
        },
    )
    live = ask(draft, live)
    act_at = None if live.job.spec.on_stall == "warn" else draft.now + ANSWERS_S
    return draft.put(replace(live, stall=Stall(act_at=act_at)))


def _idle(live: ElasticJob, now: float) -> str:
    idle = duration(live.watch.idle_s(now))
    if live.watch.step is None:
        return f"has done no step for {idle} since it was ready"
    if live.watch.usual_s is None:
        return f"has done nothing for {idle} since step {live.watch.step}"
    return f"has done no step for {idle}, and usually reports new ones every {_short(live.watch.usual_s)}"


def _short(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else duration(seconds)


# stacks


def ask(draft: Draft, live: ElasticJob) -> ElasticJob:
    """Ask every task that is connected where its threads are."""
    connected = frozenset(task.id for task in live.running if task.pid is not None)
    for task_id in sorted(connected):
        draft.act(SendMessage(task_id=task_id, message=ShowStacks()))
    return draft.put(replace(live, asked=live.asked | connected))


def take_stacks(draft: Draft, live: ElasticJob, task: Task, answer: Stacks) -> None:
    """Take in where a task's threads are; nothing that nobody asked for."""
    if task.id not in live.asked:
        return
    line = " ".join(_readable(answer.at[: 2 * MAX_LINE_CHARS]).split())[:MAX_LINE_CHARS]
    waits = "waits for other tasks" if answer.waits else "waits for no other task"
    draft.say(
        EventKind.TASK_STACKS,
        f"{task.id} of {live.label} {waits}; it is at {line}",
        job_id=live.id,
        task_id=task.id,
        data={"at_line": line, "waits": answer.waits, "stacks": _readable(answer.text[:MAX_STACKS_CHARS])},
    )
    live = draft.put(replace(live, asked=live.asked - {task.id}))
    if live.stall is None:
        return
    lines = {**live.stall.lines, task.id: TaskLine(at=line, waits=answer.waits)}
    live = draft.put(replace(live, stall=replace(live.stall, lines=lines)))
    if live.stall is not None and live.stall.act_at is not None and not _trainers(live).keys() - lines.keys():
        _act(draft, live, live.stall)


def _readable(text: str) -> str:
    """Return a stranger's text without what moves a terminal's cursor, or hides or turns what stands by it."""
    return "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)


def _trainers(live: ElasticJob) -> Mapping[TaskId, Task]:
    there = (TaskState.WARM, TaskState.TRAINING)
    return {task.id: task for task in live.running if task.state in there and task.id not in live.fenced}


# what the owner wants


def _act(draft: Draft, live: ElasticJob, stall: Stall) -> ElasticJob:
    """Replace the tasks that are stuck, or end the job."""
    live = draft.put(replace(live, stall=replace(stall, act_at=None)))
    trainers = _trainers(live)
    waiting = {task_id for task_id, line in stall.lines.items() if line.waits}
    stuck = [task for task in trainers.values() if task.id not in waiting] or list(trainers.values())
    if not stuck:
        return live
    how = f"did no step for {duration(live.watch.idle_s(draft.now))}"
    if live.job.spec.on_stall == "end":
        reason = (
            f"{stuck[0].id} {how} {_where(stall, stuck[0])} and on_stall is end; `pliant stacks {live.id}` shows more"
        )
        return fail_after_exits(draft, live, stuck[0], reason, facts=None)
    for task in stuck:
        if not live.over:
            live = exits.fence(draft, live, live.tasks[task.id], f"{how} {_where(stall, task)}", blame=True)
    if live.watch.sign_at is None:
        return live
    return draft.put(replace(live, watch=replace(live.watch, sign_at=draft.now, phase="quiet"), stall=None))


def _where(stall: Stall, task: Task) -> str:
    line = stall.lines.get(task.id)
    return "and did not say where it is" if line is None else f"at {line.at}"


def remark(live: ElasticJob, now: float) -> str:
    """Return what people are to know of how it goes: what is awaited, and for how long yet; empty if nothing is."""
    if live.job.state is JobState.STOPPING:
        return _remark_on_stop(live, now)
    if not live.competes:
        return ""
    if live.watch.phase == "stalled":
        places = [f"{task_id} is at {line.at}" for task_id, line in _telling(live.stall)]
        return f"It {'; '.join([_idle(live, now), *places])}. `pliant stacks {live.id}` shows all that its tasks do."
    starting = [task for task in live.running if task.state is TaskState.STARTING]
    limit_s = limits_of(live.job).limit_s(live.watch)
    if live.watch.sign_at is None and starting:
        since = min(max(task.started_at, live.adopted_at) + live.slept_s for task in starting)
        return (
            f"{starting[0].id} has been starting for {duration(now - since)}; it fails if it has not built its Run "
            f"after {duration(live.job.spec.start_timeout_s)}."
        )
    if live.watch.sign_at is not None and live.watch.step is None and limit_s is not None:
        idle = duration(live.watch.idle_s(now))
        return f"Its first step is awaited for {idle}; it counts as stalled after {duration(limit_s)}."
    return ""


def _remark_on_stop(live: ElasticJob, now: float) -> str:
    left_s = min((at - now for task_id, at in live.kill_at.items() if task_id in live.tasks), default=0.0)
    if left_s <= 0.0:
        return ""
    return (
        f"Its next step boundary is awaited; what is still there in {duration(left_s)} is killed. "
        f"`pliant stop {live.id} --now` does not wait."
    )


def _telling(stall: Stall | None) -> list[tuple[TaskId, TaskLine]]:
    """Return where tasks are, those that wait for no other first; no more than three."""
    lines = {} if stall is None else stall.lines
    return sorted(lines.items(), key=lambda item: item[1].waits)[:3]
