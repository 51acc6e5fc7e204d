"""The audit log, for administrators."""

from typing import Annotated

from fastapi import APIRouter, Query

from pliant.api.people import AuditPage, UserName
from pliant.server.context import InContext
from pliant.server.middleware.access import PREFIX
from pliant.server.middleware.problems import responses

router = APIRouter(prefix=PREFIX, tags=["people"])

_MAX_SEQ = 2**31 - 1


@router.get("/audit", summary="Who did or tried what", responses=responses())
def audit(
    context: InContext,
    before: Annotated[int | None, Query(ge=1, le=_MAX_SEQ, description="`next` of the page before.")] = None,
    who: Annotated[UserName | None, Query(description="Only what this user did.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> AuditPage:
    """Return entries, newest first."""
    found = tuple(context.audit.entries(before=before, who=who, limit=limit + 1))
    return AuditPage(entries=found[:limit], next=found[limit - 1].seq if len(found) > limit else None)
