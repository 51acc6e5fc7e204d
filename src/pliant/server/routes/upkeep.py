"""Upkeep: how long what ended jobs leave behind, and the audit log, is kept; the clean-up."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from fastapi import Query, Response
from fastapi.responses import StreamingResponse

from pliant.api.upkeep import RetentionRequest, RetentionView
from pliant.core.access import Permission
from pliant.core.errors import Forbidden, NotFound
from pliant.core.registry import Kept
from pliant.core.server_option import ServerFacts
from pliant.core.upkeep import Material, Retention, Rule, Sweep
from pliant.server.context import InContext
from pliant.server.etag import IfMatch, revision_of, with_etag
from pliant.server.middleware.authorisation import Caller
from pliant.server.routing import Routes

routes = Routes(tags=["server"])


def _of_audit(rules: Sequence[Rule]) -> list[Rule]:
    return [rule for rule in rules if rule.material is Material.AUDIT]


def _view(kept: Kept[Retention], response: Response) -> RetentionView:
    return with_etag(RetentionView(rules=kept.noun.rules, revision=kept.revision), response)


@routes.get("/retention", Permission.POOL_READ, "How long what ended jobs left is kept")
def retention(context: InContext, response: Response) -> RetentionView:
    """Return the rules."""
    return _view(context.upkeep.rules(), response)


@routes.put("/retention", Permission.SERVER_WRITE, "Change how long it is kept", 403, 412)
def set_retention(
    context: InContext, caller: Caller, body: RetentionRequest, response: Response, if_match: IfMatch = None
) -> RetentionView:
    """Replace the rules; the next clean-up, once an hour or when asked for, keeps to them.

    The rule about the audit log is changed by those who may read that.
    """
    revision, rules = revision_of(if_match), body.nouns()
    if _of_audit(rules) != _of_audit(context.upkeep.rules().noun.rules) and not caller.may(Permission.AUDIT_READ):
        raise Forbidden("how long the audit log is kept is for administrators to say; leave its rule as it is")
    return _view(context.upkeep.change(rules, revision), response)


@routes.get("/settings", Permission.SERVER_WRITE, "What the server was started with", 404)
def settings(context: InContext) -> ServerFacts:
    """Return the options of `up` with their values and where each came from, database and folders; no secret."""
    if context.facts is None:
        raise NotFound("this server does not say what it was started with")
    return replace(context.facts, copies=context.copies())


@routes.post("/cleanup", Permission.SERVER_WRITE, "Clean up by the rules")
def cleanup(
    context: InContext, dry_run: Annotated[bool, Query(description="Only tell what would be removed.")] = False
) -> Sweep:
    """Remove what the rules remove from the jobs that have ended and from the audit log; tell what that was."""
    return context.upkeep.sweep(dry_run=dry_run)


@routes.get(
    "/backup",
    Permission.BACKUP,
    "Back up all that the server holds",
    503,
    507,
    response_class=StreamingResponse,
    responses={200: {"content": {"application/gzip": {}}, "description": "A tar.gz."}},
)
def backup(
    context: InContext,
    results: Annotated[bool, Query(description="Also what the jobs wrote, their logs and checkpoints.")] = True,
    data: Annotated[bool, Query(description="Also the data sets.")] = True,
) -> StreamingResponse:
    """Return database and files as a tar.gz made while it is sent; jobs go on meanwhile. It holds secrets."""
    chunks = context.backup(results=results, data=data)
    headers = {"Content-Disposition": 'attachment; filename="pliant-backup.tar.gz"'}
    return StreamingResponse(chunks, media_type="application/gzip", headers=headers)
