"""The machines of the pool: what they are, who sits where; drain, exclude, label, and who may join."""

from typing import Annotated

from fastapi import Path

from pliant.api.machines import (
    ExcludeRequest,
    IncludeRequest,
    JoinTokenPage,
    JoinTokenRequest,
    JoinTokenView,
    LabelsRequest,
    MachinePage,
    MachinePatch,
    MachineView,
    MadeJoinToken,
)
from pliant.core.access import Permission
from pliant.core.joining import JoinToken, join_command
from pliant.core.registry import MAX_NAME
from pliant.server.context import InControl
from pliant.server.middleware.authorisation import Caller
from pliant.server.routing import Routes
from pliant.server.visibility import Seen

routes = Routes(tags=["pool"])

Name = Annotated[str, Path(description="Of a machine.", max_length=MAX_NAME)]
TokenId = Annotated[str, Path(description="Of a join token.", max_length=MAX_NAME)]


@routes.get("/machines", Permission.POOL_READ, "List machines")
def machines(control: InControl, visible: Seen) -> MachinePage:
    """Return all machines: what they are and do, and who holds their slots, as far as the caller may see that."""
    return control.inquiries.machines.page(visible)


@routes.get("/machines/tokens", Permission.POOL_WRITE, "List join tokens")
def join_tokens(control: InControl) -> JoinTokenPage:
    """Return the tokens with which machines can join, newest first; never their text."""
    room = control.inquiries.machines.joining
    found = () if room is None else room.joining.tokens()
    return JoinTokenPage(tokens=tuple(_token(kept.noun, kept.created_at) for kept in found))


@routes.post("/machines/tokens", Permission.POOL_WRITE, "Make a join token", 409, status_code=201)
def make_join_token(control: InControl, caller: Caller, body: JoinTokenRequest) -> MadeJoinToken:
    """Make a token with which machines join the pool, once if nothing else is said."""
    room = control.inquiries.machines.require_joining()
    made = room.joining.make_token(
        caller.name, machine=body.machine or "", valid_s=body.valid_s, max_uses=body.max_uses, pin=room.pin()
    )
    created_at = made.token.expires_at - body.valid_s
    return MadeJoinToken(token=made.text, command=join_command(room.address()), info=_token(made.token, created_at))


@routes.delete("/machines/tokens/{token_id}", Permission.POOL_WRITE, "Revoke a join token", 404, 409, status_code=204)
def revoke_join_token(control: InControl, token_id: TokenId) -> None:
    """Make a join token worthless at once; machines that have joined with it stay."""
    control.inquiries.machines.require_joining().joining.revoke_token(token_id)


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


@routes.delete("/machines/{name}", Permission.POOL_WRITE, "Remove a machine", 404, 409, status_code=204)
def remove(control: InControl, caller: Caller, name: Name) -> None:
    """Forget a machine that has joined; it has to be away, or drained and empty. To come back it has to join again."""
    control.inquiries.machines.remove(name, caller.name)


@routes.put("/machines/{name}/labels", Permission.POOL_WRITE, "Label a machine", 404)
def label(control: InControl, caller: Caller, visible: Seen, name: Name, body: LabelsRequest) -> MachineView:
    """Give a machine these labels, in place of all that people gave it before. Groups choose machines by labels."""
    return control.inquiries.machines.label(name, body.labels, caller.name, visible)


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


def _token(token: JoinToken, created_at: float) -> JoinTokenView:
    return JoinTokenView(
        id=token.name,
        owner=token.owner,
        machine=token.machine or None,
        created_at=created_at,
        expires_at=token.expires_at,
        max_uses=token.max_uses,
        num_uses=token.num_uses,
    )
