"""With whom a job is shared; its owner decides."""

from fastapi import Response

from pliant.api.shares import ShareRequest, ShareView
from pliant.control.requests.sharing import JobShare
from pliant.core.access import Permission
from pliant.server.context import InContext
from pliant.server.etag import IfMatch, revision_of, with_etag
from pliant.server.routing import Routes
from pliant.server.visibility import OwnJob

routes = Routes(tags=["jobs"])


@routes.get("/jobs/{job_id}/shares", Permission.JOBS_READ, "With whom a job is shared", 403, 404)
def shares(context: InContext, job: OwnJob, response: Response) -> ShareView:
    """Return who sees a job besides its owner, administrators and operators."""
    return _view(*context.sharing.of(job), response)


@routes.put("/jobs/{job_id}/shares", Permission.JOBS_WRITE, "Share a job", 403, 404, 412)
def share(
    context: InContext, job: OwnJob, request: ShareRequest, response: Response, if_match: IfMatch = None
) -> ShareView:
    """Let these people see a job, its logs and results, and nobody else; they cannot change it."""
    return _view(*context.sharing.change(job, request.shared_with, revision_of(if_match)), response)


def _view(share: JobShare, revision: int, response: Response) -> ShareView:
    view = ShareView(name=share.name, owner=share.owner, shared_with=share.shared_with, revision=revision)
    return with_etag(view, response)
