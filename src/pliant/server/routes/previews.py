"""What if: what would come of a change if it was made now. Nothing is changed, and the audit log has none of it.

What is wrong with the body is part of the answer, as is why the change would be refused: who types sees both at once.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any, Final, TypeVar

from fastapi import Request
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from pliant.api.jobs import JobPatch, JobRequest
from pliant.api.previews import (
    FieldProblem,
    GroupPreview,
    GroupPreviewRequest,
    SearchPreview,
    SharePreview,
    SubmissionPreview,
)
from pliant.api.queues import QueuePatch
from pliant.api.searches import SearchRequest
from pliant.core.access import Permission
from pliant.core.errors import InvalidInput, Problem
from pliant.server.body import parse_body, read_small
from pliant.server.context import InContext, InControl
from pliant.server.group_view import hosts_of
from pliant.server.middleware.audit import trace_of
from pliant.server.middleware.authorisation import Caller
from pliant.server.routes.searches import InSearches
from pliant.server.routing import Routes
from pliant.server.visibility import OwnJob, Seen
from pliant.tune.searches.new_search import FirstTrials

routes = Routes(tags=["jobs"])
pool_routes = Routes(tags=["pool"])
search_routes = Routes(tags=["searches"])

T = TypeVar("T", bound=BaseModel)


def _takes(kind: type[BaseModel]) -> dict[str, Any]:
    """Return how OpenAPI describes a body that is read by hand."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": kind}}}}


_PATCH: Final = _takes(JobPatch)
_JOB: Final = _takes(JobRequest)
_SEARCH: Final = _takes(SearchRequest)
_QUEUE: Final = _takes(QueuePatch)
_GROUP: Final = _takes(GroupPreviewRequest)


async def _read(request: Request, kind: type[T]) -> T | InvalidInput:
    """Return the body of a request that changes nothing; or what is wrong with it."""
    trace_of(request).changes_nothing = True
    text = await read_small(request.stream())
    try:
        return parse_body(kind, text)
    except InvalidInput as error:
        return error


@routes.post(
    "/jobs/{job_id}/preview", Permission.JOBS_WRITE, "What if a job was changed", 403, 404, 413, openapi_extra=_PATCH
)
async def change(request: Request, control: InControl, job: OwnJob, visible: Seen) -> SharePreview:
    """Return who would have how many slots if the job was changed so now, and why.

    The decision that follows the change says the same, unless something else happens before it.
    """
    patch = await _read(request, JobPatch)
    if isinstance(patch, InvalidInput):
        return await run_in_threadpool(control.previews.nothing, visible, *patch.problems)
    return await run_in_threadpool(control.previews.change, job.id, patch, visible)


@routes.post("/jobs/preview", Permission.JOBS_WRITE, "What if a job was submitted", 413, openapi_extra=_JOB)
async def submission(request: Request, control: InControl, caller: Caller, visible: Seen) -> SubmissionPreview:
    """Return whether a job would start now, with how many slots and whose; or what it would wait for.

    Its code is not asked for, and not looked at.
    """
    asked = await _read(request, JobRequest)
    if isinstance(asked, InvalidInput):
        return await run_in_threadpool(control.previews.no_submission, visible, *asked.problems)
    preview = partial(control.previews.submission, asked.spec(), caller.name, visible, asked.notices())
    return await run_in_threadpool(preview)


@search_routes.post(
    "/searches/preview", Permission.JOBS_WRITE, "What if a search was begun", 413, 503, openapi_extra=_SEARCH
)
async def search(
    request: Request, control: InControl, requests: InSearches, caller: Caller, visible: Seen
) -> SearchPreview:
    """Return what is wrong with a search, and what would become of its first trial now; its code is not asked for."""
    asked = await _read(request, SearchRequest)
    if isinstance(asked, InvalidInput):
        return SearchPreview(problems=_fields_of(asked.problems), notes=(), sentence="")
    first = FirstTrials(known=tuple(one.noun() for one in asked.known))
    foresee = partial(requests.outlook.foresee, caller.name, asked.name or "", asked.settings(), first)
    problems, notes = await run_in_threadpool(foresee)
    trial = await run_in_threadpool(control.previews.submission, asked.spec(), caller.name, visible, asked.notices())
    return SearchPreview(
        problems=(*_fields_of(problems), *trial.problems),
        notes=(*notes, *trial.notes),
        sentence="" if problems or trial.problems else trial.sentence,
    )


@pool_routes.post(
    "/queues/{name}/preview", Permission.POOL_WRITE, "What if a queue was changed", 404, 413, openapi_extra=_QUEUE
)
async def queue(request: Request, control: InControl, name: str, visible: Seen) -> SharePreview:
    """Return who would have how many slots if the queue was changed so now, and what its queues would deserve."""
    control.queues.queue(name)
    patch = await _read(request, QueuePatch)
    if isinstance(patch, InvalidInput):
        return await run_in_threadpool(control.previews.nothing, visible, *patch.problems)
    return await run_in_threadpool(control.previews.queue, name, patch.changes(), visible)


@pool_routes.post(
    "/resource-groups/preview", Permission.POOL_WRITE, "What a resource group would have", 413, openapi_extra=_GROUP
)
async def group(request: Request, context: InContext) -> GroupPreview:
    """Return the slots that a group of these hosts would have now; what is wrong with a formula has its position."""
    asked = await _read(request, GroupPreviewRequest)
    if isinstance(asked, InvalidInput):
        return GroupPreview(problems=_fields_of(asked.problems), num_slots=0, hosts=(), notes=())
    return await run_in_threadpool(_group, context, asked)


def _fields_of(problems: Iterable[Problem]) -> tuple[FieldProblem, ...]:
    return tuple(FieldProblem(field=one.field, message=one.message) for one in problems)


def _group(context: InContext, asked: GroupPreviewRequest) -> GroupPreview:
    nodes = context.control.inquiries.machines.out_of_use.usable_now()
    hosts = hosts_of(asked.noun(), nodes)
    lack = asked.noun().lack(nodes)
    notes = (f"it has no slots now: {lack}. Its jobs would wait for hosts that may come",) if lack else ()
    return GroupPreview(problems=(), num_slots=sum(host.num_slots for host in hosts), hosts=hosts, notes=notes)
