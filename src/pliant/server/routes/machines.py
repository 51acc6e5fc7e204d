"""The machines of the pool: what they are, who sits where; drain and return them, exclude and include slots."""

from typing import Annotated

from fastapi import Path

from pliant.api.machines import ExcludeRequest, IncludeRequest, MachinePage, MachinePatch, MachineView
from pliant.core.access import Permission
from pliant.core.registry import MAX_NAME
from pliant.server.context import InControl
from pliant.server.middleware.authorisation import Caller
from pliant.server.routing import Routes
from pliant.server.visibility import Seen

routes = Routes(tags=["pool"])

Name = Annotated[str, Path(description="Of a machine.", max_length=MAX_NAME)]


@routes.get("/machines", Permission.POOL_READ, "List machines")
def machines(control: InControl, visible: Seen) -> MachinePage:
    """Return all machines: what they are and do, and who holds their slots, as far as the caller may see that."""
    return control.inquiries.machines.page(visible)


@routes.get("/machines/{name}", Permission.POOL_READ, "Show a machine", 404)
def show(control: InControl, visible: Seen, name: Name) -> MachineView:
    """Return a machine."""
    return control.inquiries.machines.get(name, visible)


@routes.patch("/machines/{name}", Permission.POOL_WRITE, "Drain or return a machine", 404)
def change(control: InControl, caller: Caller, visible: Seen, name: Name, patch: MachinePatch) -> MachineView:
    """Let tasks leave a machine, or let them be started there again.

    Elastic jobs leave at their next step boundary, and go on where there is room; fixed jobs stay until they end.
    """
    return control.inquiries.machines.set_drained(name, caller.name, visible, drained=patch.drained)


@routes.post("/machines/{name}/exclude", Permission.POOL_WRITE, "Exclude slots of a machine", 404)
def exclude(control: InControl, caller: Caller, visible: Seen, name: Name, body: ExcludeRequest) -> MachineView:
    """Take slots of a machine, or all of it, out of use until they are included again.

    Jobs leave them as they leave a machine that is drained; groups and queues count them no longer.
    """
    return control.inquiries.machines.exclude(name, body.slots, body.because, caller.name, visible)


@routes.post("/machines/{name}/include", Permission.POOL_WRITE, "Include slots of a machine again", 404, 409)
def include(control: InControl, caller: Caller, visible: Seen, name: Name, body: IncludeRequest) -> MachineView:
    """Let tasks be started again on slots of a machine, or on all of it."""
    return control.inquiries.machines.include(name, body.slots, caller.name, visible)
