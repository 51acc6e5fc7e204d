"""What losses do to a job: they are counted, hold it back for a while, and stop what would go on for ever.

The verdict is `policy.elastic.diagnose`'s; here it is fed and carried out.
"""

from dataclasses import replace
from typing import assert_never

from pliant.control.jobs.draft import Draft
from pliant.control.jobs.failure import quote_stderr
from pliant.control.jobs.live import task_number
from pliant.control.jobs.transitions import fail
from pliant.control.kinds.elastic.job import ElasticJob
from pliant.core.event import EventKind
from pliant.core.job import NodeId, Task
from pliant.core.lifecycle import TaskState
from pliant.core.ports import ExitFacts
from pliant.policy.elastic.diagnose import (
    BadHost,
    CrashLoop,
    NodeHealth,
    NoNewcomer,
    PoisonStep,
    ProcessFailure,
    WorkerLoss,
    add,
    diagnose,
    explain,
    failed_newcomers,
    losses_without_progress,
)


def count_loss(draft: Draft, live: ElasticJob, task: Task, loss: WorkerLoss, facts: ExitFacts) -> ElasticJob:
    """Count the loss of a task and draw the consequences. The job may have failed then.

    Args:
        draft: of the decision.
        live: the job.
        task: as it was before it was lost.
        loss: see `loss_of`.
        facts: what the task left behind.
    """
    before = live.losses
    loss = _with_step(live, task, loss, facts.step)
    live = draft.put(replace(live, step=max(live.step, loss.reached), losses=add(before, loss)))
    if len(live.losses) == len(before) and before and live.losses[0] == before[0]:
        return live  # lost together with one that was counted
    num_losses = max(len(losses_without_progress(live.losses)), len(failed_newcomers(live.losses)))
    if num_losses >= 2:
        timeouts = draft.settings.timeouts
        hold_s = min(timeouts.max_backoff_s, timeouts.backoff_s * 2.0 ** (num_losses - 2))
        live = draft.put(replace(live, held_until=draft.now + hold_s))
    return _judge(draft, live, task, facts) if live.competes else live


def loss_of(draft: Draft, live: ElasticJob, task: Task, death: ProcessFailure) -> WorkerLoss:
    """Return the loss of a task at this moment, before its exit says at which step it was."""
    current = live.membership.current
    joined = live.joined.get(task.id)
    return WorkerLoss(
        at=draft.now,
        deaths=(death,),
        step=live.step,
        reached=live.step,
        generation=current.number if current is not None else 0,
        newest_task=max(task_number(task_id) for task_id in live.tasks),
        member=joined is not None or task.state is TaskState.TRAINING,
        made_progress=live.step > joined if joined is not None else task.state is TaskState.TRAINING,
    )


def _with_step(live: ElasticJob, task: Task, loss: WorkerLoss, step: int | None) -> WorkerLoss:
    """Return the loss with the step that the task had noted itself; nobody else may have known of it yet."""
    if step is None:
        return loss
    joined = live.joined.get(task.id)
    return replace(
        loss,
        step=step,
        reached=max(live.step, step),
        member=True,
        made_progress=step > joined if joined is not None else loss.made_progress,
    )


def _node_health(draft: Draft, live: ElasticJob) -> NodeHealth:
    places = {
        node.id: len(node.slots) // live.job.spec.slots_per_task
        for node in draft.nodes()
        if node.id not in live.excluded
    }
    spare = sum(places.values()) - max(1, live.job.min_tasks)
    return NodeHealth(
        spare_nodes=frozenset(node_id for node_id, num in places.items() if num <= spare),
        healthy_nodes=frozenset(t.node_id for t in live.running if t.id in live.joined and t.id not in live.fenced),
    )


def can_do_without(draft: Draft, live: ElasticJob, node_id: NodeId) -> bool:
    """Tell whether the minimum of a job fits on the other nodes that it may use."""
    return node_id in _node_health(draft, live).spare_nodes


def _judge(draft: Draft, live: ElasticJob, task: Task, facts: ExitFacts) -> ElasticJob:
    verdict = diagnose(live.losses, _node_health(draft, live), draft.settings.rules)
    match verdict:
        case None:
            return live
        case PoisonStep() | CrashLoop():
            return fail(draft, live, explain(verdict) + quote_stderr(draft.settings, task, facts))
        case BadHost():
            return _exclude(draft, live, verdict)
        case NoNewcomer():
            return _grow_no_more(draft, live, task, verdict, facts)
        case _:
            assert_never(verdict)


def _exclude(draft: Draft, live: ElasticJob, verdict: BadHost) -> ElasticJob:
    draft.say(
        EventKind.WARNING,
        f"{live.label}: {verdict.node_id} is avoided from now on, for this job only: {explain(verdict)}",
        job_id=live.id,
        data={"node_id": verdict.node_id, "num_losses": len(verdict.losses)},
    )
    return draft.put(replace(live, excluded=live.excluded | {verdict.node_id}))


def _grow_no_more(draft: Draft, live: ElasticJob, task: Task, verdict: NoNewcomer, facts: ExitFacts) -> ElasticJob:
    """Let the job train on with those it has; it fails if they are fewer than its minimum."""
    members = sum(t.id in live.joined and t.id not in live.fenced for t in live.running)
    if members < max(1, live.job.min_tasks):
        return fail(draft, live, explain(verdict) + quote_stderr(draft.settings, task, facts))
    message = (
        f"max_tasks is lowered to {members}, with which it trains on; mend the cause and raise it again "
        f"(`pliant set {live.id} --max N`)"
    )
    draft.say(
        EventKind.JOB_CHANGED,
        f"{live.label}: {message}: {explain(verdict)}{quote_stderr(draft.settings, task, facts)}",
        job_id=live.id,
        data={"max_tasks": members},
    )
    job = replace(live.job, max_tasks=members, why=message)
    return draft.put(replace(live, job=job, losses=()))  # who raises it again has mended the cause
