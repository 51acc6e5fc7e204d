"""Finding anything by a part of its name, as a command palette does."""

from typing import Annotated

from fastapi import Query

from pliant.api.found import FoundNouns
from pliant.core.access import Permission
from pliant.server.context import InContext
from pliant.server.found_nouns import find_nouns
from pliant.server.middleware.authorisation import Caller
from pliant.server.routing import Routes
from pliant.server.visibility import Seen

routes = Routes(tags=["pool"])


@routes.get("/search", Permission.JOBS_READ, "Find anything by a part of its name")
def find(
    context: InContext,
    caller: Caller,
    visible: Seen,
    text: Annotated[
        str, Query(alias="q", min_length=1, max_length=100, description="No sign of it stands for another.")
    ],
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> FoundNouns:
    """Return what the caller sees whose name, or a job's id, holds a text, whatever its capitals; the best first.

    Trials are found by their search.
    """
    return find_nouns(context, caller, visible, text, limit)
