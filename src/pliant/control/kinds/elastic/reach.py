"""What becomes of an elastic training some of whose machines do not reach each other, though all reach the server.

Its tasks say whom they cannot connect with (`Unreachable`). Who must leave for that, and how long the two machines are
kept apart, says `policy.elastic.paths`; here it is decided whether what a task says counts, and the rest is done: an
event names both machines, those who leave are killed, as their generation cannot go on with them, and the others go on
in the next one.

What a task says counts if it says it again after `CONFIRM_S`, and if meanwhile both tasks live and the server hears
both their machines. So neither a task that ended, nor a machine that is cut off, nor an old message that a new link
brings is taken for a firewall. A task that lies does harm to its own job alone: what is remembered is the job's.
"""

from dataclasses import replace
from typing import Final

from pliant.control.jobs.draft import Draft
from pliant.control.kinds.elastic import exits
from pliant.control.kinds.elastic.coordination import coordinate
from pliant.control.kinds.elastic.job import ElasticJob
from pliant.core.duration import duration
from pliant.core.event import EventKind
from pliant.core.job import NodeId, Task
from pliant.core.lifecycle import TaskState
from pliant.core.link import Unreachable
from pliant.policy.elastic.membership import Severed
from pliant.policy.elastic.paths import (
    BrokenPath,
    Ends,
    PathMember,
    avoided,
    ends_of,
    leave_out,
    next_trial,
    remember,
    try_again,
)

CONFIRM_S: Final = 2.0
MAX_NAMED: Final = 3
"""So many machines are named in one sentence."""


def take_unreachable(draft: Draft, live: ElasticJob, task: Task, message: Unreachable) -> None:
    """Take in whom a task cannot connect with, and let members leave if that is certain."""
    if not live.competes:
        return
    unheard = draft.unheard()
    peers = [live.tasks[task_id] for task_id in dict.fromkeys(message.peers) if task_id in live.tasks]
    if task.node_id in unheard or not _is_there(live, task):
        peers = []
    peers = [
        peer for peer in peers if peer.node_id != task.node_id and peer.node_id not in unheard and _is_there(live, peer)
    ]
    before = live.out_of_reach.get(task.id, {})
    since = {peer.id: before.get(peer.id, draft.now) for peer in peers}
    live = draft.put(replace(live, out_of_reach={**live.out_of_reach, task.id: since}))
    certain = {ends_of(task.node_id, peer.node_id) for peer in peers if draft.now - since[peer.id] >= CONFIRM_S}
    if certain:
        _part(draft, live, certain)


def _is_there(live: ElasticJob, task: Task) -> bool:
    """Tell whether a task listens for others, as far as is known."""
    if task.ended or task.state is TaskState.STARTING or task.id in live.fenced or task.id in live.finished:
        return False
    return not live.membership.status_of(task.id).left


def _part(draft: Draft, live: ElasticJob, found: set[Ends]) -> None:
    """Let the training go on without some of those that do not reach each other."""
    members = _members(live)
    nodes = {member.id: member.node_id for member in members}
    said = [(one, other) for one, others in live.out_of_reach.items() for other in others]
    suspected = {ends_of(nodes[one], nodes[other]) for one, other in said if one in nodes and other in nodes}
    known = {path.ends for path in live.paths if not path.is_over}
    leavers = leave_out(members, found | known, suspected)
    left_out = {member.node_id for member in members if member.id in leavers}
    live = draft.put(replace(live, paths=remember(live.paths, found, left_out, draft.now)))
    for path in live.paths:
        if path.ends in found:
            _say_broken(draft, live, path)
    gone = tuple(member for member in members if member.id in leavers)
    why = f"{' and '.join(sorted(left_out)[:MAX_NAMED])} left out, since machines do not reach each other"
    live = coordinate(draft, live, Severed(tasks=tuple(member.id for member in gone), reason=why))
    for member in gone:
        if not live.over:
            live = exits.fence(draft, live, live.tasks[member.id], _how(live, member.node_id), blame=False)


def _members(live: ElasticJob) -> list[PathMember]:
    """Return all tasks that train or are to, members in rank order first, then those that hold a state."""
    membership = live.membership
    holders = membership.newest_holders()
    ranks = {task_id: rank for rank, task_id in enumerate(membership.current.members if membership.current else ())}
    tasks = [task for task in live.running if task.id not in live.fenced]
    tasks.sort(key=lambda task: (ranks.get(task.id, len(ranks)), task.id not in holders))
    return [PathMember(id=task.id, node_id=task.node_id, holds_state=task.id in holders) for task in tasks]


def _how(live: ElasticJob, node_id: NodeId) -> str:
    ends = {end for path in live.paths if node_id in path.ends and not path.is_over for end in path.ends}
    return f"does not reach {' and '.join(sorted(ends - {node_id})[:MAX_NAMED])} from {node_id}"


def _say_broken(draft: Draft, live: ElasticJob, path: BrokenPath) -> None:
    one, other = path.ends
    draft.say(
        EventKind.WARNING,
        f"{live.label}: {one} and {other} do not reach each other (both reach the server): see that no firewall is "
        f"between them; the training goes on without {path.left_out}, and tries it again in {duration(path.wait_s)}",
        job_id=live.id,
        data={"node_id": path.left_out, "other_node_id": path.other, "wait_s": path.wait_s},
    )


def apart(live: ElasticJob) -> tuple[tuple[NodeId, NodeId], ...]:
    """Return the machines where no task of a training is started now, each with one that it does not reach."""
    return tuple(avoided(live.paths, {task.node_id for task in live.staying}).items()) if live.paths else ()


def pass_time(draft: Draft, live: ElasticJob) -> ElasticJob:
    """Avoid a path no more when its time is over."""
    at = next_trial(live.paths)
    if at is None or at > draft.now:
        return live
    return draft.put(replace(live, paths=try_again(live.paths, draft.now)))
