"""The machines of the pool: who sits where; drain one, and return it."""

from typing import Annotated

from fastapi import Path

from pliant.api.machines import MachinePage, MachinePatch, MachineView
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
    """Return all machines with their slots, and who holds these, as far as the caller may see that."""
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
