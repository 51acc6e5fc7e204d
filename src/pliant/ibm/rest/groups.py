"""Instance groups and resource plans: both are the queues here.

A group that Conductor's routes have made begins as a closed queue. It is `REGISTERED` until somebody deploys it, then
`READY`, and `STARTED` once its queue is open, however that was opened.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from pliant import __version__
from pliant.api.queues import QueueRequest
from pliant.core.access import Principal
from pliant.core.errors import NotFound
from pliant.core.queue import Queue
from pliant.core.registry import Kept
from pliant.ibm.rest.translate.shapes import ROOT
from pliant.server.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class UndeployedGroup:
    """Says of a queue that it was made as an instance group and is not deployed yet."""

    KIND: ClassVar[str] = "wmla-undeployed-group"

    name: str
    owner: str


def queue_names(context: Context) -> tuple[str, ...]:
    """Return the names of all queues, in order."""
    return tuple(kept.noun.name for kept in context.control.queues.queues())


def list_groups(context: Context, caller: Principal) -> list[dict[str, Any]]:
    """Return the descriptions of all instance groups, for clients of every route that lists them."""
    return [_describe(context, caller, kept) for kept in context.control.queues.queues()]


def find_group(context: Context, caller: Principal, name: str) -> dict[str, Any]:
    """Return an instance group.

    Raises:
        NotFound: there is none.
    """
    try:
        return _describe(context, caller, context.control.queues.queue(name))
    except NotFound as error:
        raise NotFound(f"Instance group name {name} not found: there is no such queue") from error


def _describe(context: Context, caller: Principal, kept: Kept[Queue]) -> dict[str, Any]:
    name, url = kept.noun.name, context.control.settings.url
    return {
        "id": name,
        "uuid": name,
        "name": name,
        "state": _state(context, kept),
        "version": __version__,
        "masterURL": url,
        "executionUser": caller.name,
        "historyServerURL": url,
    }


def _state(context: Context, kept: Kept[Queue]) -> str:
    if kept.noun.open:
        return "STARTED"
    undeployed = context.registry.get(UndeployedGroup, kept.noun.name)
    is_new = undeployed is not None and undeployed.created_at >= kept.created_at  # not of a queue that is gone
    return "REGISTERED" if is_new else "READY"


def add_group(context: Context, caller: Principal, request: QueueRequest) -> str:
    """Make an instance group: a queue that takes no jobs before it is started; return its id.

    Raises:
        InvalidInput, Conflict: as for a queue.
    """
    queue = context.control.queues.add_queue(request.noun(caller.name), caller.name).noun
    deploy_group(context, queue.name)  # what a queue of this name, which is gone, has left
    context.registry.add(UndeployedGroup(name=queue.name, owner=caller.name), at=context.clock.now())
    return queue.name


def deploy_group(context: Context, name: str) -> None:
    """Note that an instance group is deployed, if it was not."""
    with suppress(NotFound):
        context.registry.remove(UndeployedGroup, name)


def change_group(context: Context, caller: Principal, name: str, changes: Mapping[str, Any]) -> None:
    """Change the queue of an instance group.

    Raises:
        NotFound, InvalidInput: as for a queue.
    """
    find_group(context, caller, name)
    context.control.queues.change_queue(name, changes, None, caller.name)


def remove_group(context: Context, caller: Principal, name: str) -> None:
    """Remove an instance group, or a resource plan: its queue.

    Raises:
        NotFound, Conflict: as for a queue.
    """
    find_group(context, caller, name)
    context.control.queues.remove_queue(name, None, caller.name)
    deploy_group(context, name)


def plan_tree(context: Context) -> dict[str, Any]:
    """Return the tree of resource plans: the pool, and below it the queues."""
    children = [{"id": name, "pid": ROOT, "childTreeDto": []} for name in queue_names(context)]
    return {"id": ROOT, "pid": "", "childTreeDto": children}
