"""Queues and resource groups: list, make, show, change, remove. Changes take effect at the next decision."""

from fastapi import Response

from pliant.api.queues import (
    GroupPage,
    GroupPatch,
    GroupRequest,
    GroupView,
    QueuePage,
    QueuePatch,
    QueueRequest,
    QueueView,
)
from pliant.control.loop.tick import Control
from pliant.core.access import Permission
from pliant.core.queue import Queue, ResourceGroup
from pliant.core.registry import Kept
from pliant.server.context import InControl
from pliant.server.etag import IfMatch, revision_of, with_etag
from pliant.server.group_view import hosts_of
from pliant.server.middleware.authorisation import Caller
from pliant.server.routing import Routes

routes = Routes(tags=["pool"])


@routes.get("/resource-groups", Permission.POOL_READ, "List resource groups")
def groups(control: InControl) -> GroupPage:
    """Return all resource groups with the hosts and slots that they have now."""
    return GroupPage(groups=tuple(_group(control, kept) for kept in control.queues.groups()))


@routes.post("/resource-groups", Permission.POOL_WRITE, "Make a resource group", 409, status_code=201)
def add_group(control: InControl, caller: Caller, request: GroupRequest, response: Response) -> GroupView:
    """Make a named set of slots, for queues to be put over."""
    kept = control.queues.add_group(request.noun(caller.name), caller.name)
    return with_etag(_group(control, kept), response)


@routes.get("/resource-groups/{name}", Permission.POOL_READ, "Show a resource group", 404)
def show_group(control: InControl, name: str, response: Response) -> GroupView:
    """Return a resource group."""
    return with_etag(_group(control, control.queues.group(name)), response)


@routes.patch("/resource-groups/{name}", Permission.POOL_WRITE, "Change a resource group", 404, 409, 412)
def change_group(
    control: InControl, caller: Caller, name: str, patch: GroupPatch, response: Response, if_match: IfMatch = None
) -> GroupView:
    """Change hosts or slots; jobs leave slots that the group has no longer at a step boundary."""
    kept = control.queues.change_group(name, patch.changes(), revision_of(if_match), caller.name)
    return with_etag(_group(control, kept), response)


@routes.delete(
    "/resource-groups/{name}", Permission.POOL_WRITE, "Remove a resource group", 404, 409, 412, status_code=204
)
def remove_group(control: InControl, caller: Caller, name: str, if_match: IfMatch = None) -> None:
    """Forget a resource group; refused while a queue is over it."""
    control.queues.remove_group(name, revision_of(if_match), caller.name)


@routes.get("/queues", Permission.POOL_READ, "List queues")
def queues(control: InControl) -> QueuePage:
    """Return all queues with their jobs, the slots that these hold, and those that the queue deserves."""
    return QueuePage(queues=tuple(_queue(control, kept) for kept in control.queues.queues()))


@routes.post("/queues", Permission.POOL_WRITE, "Make a queue", 409, status_code=201)
def add_queue(control: InControl, caller: Caller, request: QueueRequest, response: Response) -> QueueView:
    """Make a queue over a resource group."""
    kept = control.queues.add_queue(request.noun(caller.name), caller.name)
    return with_etag(_queue(control, kept), response)


@routes.get("/queues/{name}", Permission.POOL_READ, "Show a queue", 404)
def show_queue(control: InControl, name: str, response: Response) -> QueueView:
    """Return a queue."""
    return with_etag(_queue(control, control.queues.queue(name)), response)


@routes.patch("/queues/{name}", Permission.POOL_WRITE, "Change a queue", 404, 409, 412)
def change_queue(
    control: InControl, caller: Caller, name: str, patch: QueuePatch, response: Response, if_match: IfMatch = None
) -> QueueView:
    """Change a queue while its jobs run; the next decision keeps to it."""
    kept = control.queues.change_queue(name, patch.changes(), revision_of(if_match), caller.name)
    return with_etag(_queue(control, kept), response)


@routes.delete("/queues/{name}", Permission.POOL_WRITE, "Remove a queue", 404, 409, 412, status_code=204)
def remove_queue(control: InControl, caller: Caller, name: str, if_match: IfMatch = None) -> None:
    """Forget a queue; refused while it has jobs that have not ended."""
    control.queues.remove_queue(name, revision_of(if_match), caller.name)


def _group(control: Control, kept: Kept[ResourceGroup]) -> GroupView:
    hosts = hosts_of(kept.noun, control.inquiries.machines.out_of_use.usable_now())
    over = tuple(other.noun.name for other in control.queues.queues() if other.noun.resource_group == kept.noun.name)
    return GroupView(
        group=kept.noun,
        hosts=hosts,
        num_slots=sum(host.num_slots for host in hosts),
        queues=over,
        notes=control.queues.lack(kept.noun.name),
        revision=kept.revision,
    )


def _queue(control: Control, kept: Kept[Queue]) -> QueueView:
    queue = kept.noun
    jobs = control.queues.jobs_of(queue.name)
    num_held = sum(live.num_slots for live in jobs)
    num_deserved = control.queues.deserved.get(queue.name, 0) if jobs else 0
    return QueueView(
        queue=queue,
        num_slots=sum(
            control.queues.group(queue.resource_group)
            .noun.slots_of(control.inquiries.machines.out_of_use.usable_now())
            .values()
        ),
        num_waiting=sum(not live.running and not live.job.ended for live in jobs),
        num_running=sum(bool(live.running) for live in jobs),
        num_held=num_held,
        num_deserved=num_deserved,
        num_borrowed=max(0, num_held - num_deserved),
        num_lent=max(0, num_deserved - num_held),
        notes=control.queues.lack(queue.resource_group),
        revision=kept.revision,
    )
