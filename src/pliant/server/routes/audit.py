"""The audit log, for administrators."""

from typing import Annotated

from fastapi import Query

from pliant.api.people import AuditPage, UserName
from pliant.core.access import Permission
from pliant.core.registry import Outcome
from pliant.server.context import InContext
from pliant.server.routing import Routes

routes = Routes(tags=["people"])

_MAX_SEQ = 2**31 - 1


@routes.get("/audit", Permission.AUDIT_READ, "Who did or tried what")
def audit(
    context: InContext,
    before: Annotated[int | None, Query(ge=1, le=_MAX_SEQ, description="`next` of the page before.")] = None,
    who: Annotated[UserName | None, Query(description="Only what this user did.")] = None,
    text: Annotated[
        str | None,
        Query(alias="q", min_length=1, max_length=100, description="A part of what was done, or to what."),
    ] = None,
    outcome: Annotated[
        Outcome | None, Query(description="Done: below 400; refused: 400 to 499; failed: 500 and above.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> AuditPage:
    """Return entries, newest first."""
    found = tuple(context.audit.entries(before=before, who=who, text=text, outcome=outcome, limit=limit + 1))
    return AuditPage(entries=found[:limit], next=found[limit - 1].seq if len(found) > limit else None)
