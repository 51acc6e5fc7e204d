"""Instance groups and resource plans: both are the queues here."""

from typing import Any

from pliant import __version__
from pliant.core.access import Principal
from pliant.core.errors import NotFound
from pliant.core.job import DEFAULT_QUEUE
from pliant.core.queue import Queue
from pliant.ibm.rest.translate.shapes import ROOT
from pliant.server.context import Context


def queue_names(context: Context) -> tuple[str, ...]:
    """Return the names of all queues, in order."""
    return tuple(sorted({DEFAULT_QUEUE, *(kept.noun.name for kept in context.registry.list(Queue))}))


def list_groups(context: Context, caller: Principal) -> list[dict[str, Any]]:
    """Return the descriptions of all instance groups, for clients of every route that lists them."""
    url = context.control.settings.url
    return [
        {
            "id": name,
            "uuid": name,
            "name": name,
            "state": "STARTED",
            "version": __version__,
            "masterURL": url,
            "executionUser": caller.name,
            "historyServerURL": url,
        }
        for name in queue_names(context)
    ]


def find_group(context: Context, caller: Principal, name: str) -> dict[str, Any]:
    """Return an instance group.

    Raises:
        NotFound: there is none.
    """
    for group in list_groups(context, caller):
        if group["id"] == name:
            return group
    raise NotFound(f"Instance group name {name} not found: there is no such queue")


def plan_tree(context: Context) -> dict[str, Any]:
    """Return the tree of resource plans: the pool, and below it the queues."""
    children = [{"id": name, "pid": ROOT, "childTreeDto": []} for name in queue_names(context)]
    return {"id": ROOT, "pid": "", "childTreeDto": children}
