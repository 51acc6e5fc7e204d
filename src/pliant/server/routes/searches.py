"""Searches: create, list, show, change, stop, resume, remove; their trials and decisions."""

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Final

from fastapi import Depends, Path, Query, Request, Response
from fastapi.responses import PlainTextResponse
from starlette.concurrency import run_in_threadpool

from pliant.api.searches import (
    DecisionPage,
    ImportancesView,
    SearchPage,
    SearchPatch,
    SearchRequest,
    SearchView,
    SearchWhy,
    TrialPage,
    TrialRows,
    TrialsRequest,
    trial_row,
)
from pliant.core.access import Permission
from pliant.core.errors import Unavailable
from pliant.core.job import Job
from pliant.core.job_filter import JobFilter
from pliant.core.lifecycle import UNENDED_STATES
from pliant.core.search import MAX_TRIALS, Search, SearchState, Trial, TrialState
from pliant.policy.tuning.trial_order import TrialOrder, order_trials
from pliant.server import upload
from pliant.server.body import body_with_code, parse_body_with_code, upload_file
from pliant.server.context import InContext, InControl
from pliant.server.etag import IfMatch, revision_of, with_etag
from pliant.server.middleware.authorisation import Caller
from pliant.server.routing import Routes
from pliant.server.search_views import page_of, view_of, why_of
from pliant.server.visibility import Seen
from pliant.tune.searches.new_search import FirstTrials
from pliant.tune.searches.use_cases import SearchRequests

routes = Routes(tags=["searches"])

Name = Annotated[str, Path(description="Of a search.", max_length=200, pattern=r"^[^\x00]*$")]
Number = Annotated[int, Path(description="Of a trial.", ge=0, le=2**31 - 1)]
Limit = Annotated[int, Query(ge=1, le=1000)]
_MANY: Final = 1000
_UPLOAD: Final = body_with_code(SearchRequest, "The code folder of all trials")


def searches_of(context: InContext) -> SearchRequests:
    """Return the use cases.

    Raises:
        Unavailable: this server has none.
    """
    if context.searches is None:
        raise Unavailable("this server keeps no searches; start one that does")
    return context.searches


InSearches = Annotated[SearchRequests, Depends(searches_of)]


@routes.post(
    "/searches",
    Permission.JOBS_WRITE,
    "Begin a search",
    409,
    413,
    503,
    507,
    status_code=201,
    openapi_extra=_UPLOAD,
)
async def create(
    request: Request, context: InContext, requests: InSearches, caller: Caller, visible: Seen
) -> SearchView:
    """Check what was asked for and the code, and begin: its trials are jobs of the caller."""
    with upload_file(context.uploads) as path:
        text = await upload.receive_search(request.headers.get("content-type", ""), request.stream(), path)
        body = await parse_body_with_code(SearchRequest, text, path)
        first = FirstTrials(known=tuple(one.noun() for one in body.known))
        begin = partial(requests.create, caller, body.name, body.settings(), body.spec(), path, visible, first)
        search, notes = await run_in_threadpool(begin)
    return await run_in_threadpool(view_of, requests, search, notes)


@routes.get("/searches", Permission.JOBS_READ, "List searches", 503)
def searches(
    requests: InSearches,
    caller: Caller,
    after: Annotated[str, Query(description="`next` of the page before.", max_length=200, pattern=r"^[^\x00]*$")] = "",
    limit: Limit = 100,
    state: Annotated[list[SearchState] | None, Query(description="Only those in one of these states.")] = None,
) -> SearchPage:
    """Return searches in the order of their names: one's own, and those that are shared with one."""
    return page_of(requests, caller, after, limit, state or ())


@routes.get("/searches/{name}", Permission.JOBS_READ, "Show a search", 404, 503)
def show(requests: InSearches, caller: Caller, name: Name, response: Response) -> SearchView:
    """Return a search with its best trial, and how far it is."""
    return _shown(requests, requests.get(caller, name), response)


@routes.patch("/searches/{name}", Permission.JOBS_WRITE, "Change a search", 403, 404, 412, 503)
def change(
    requests: InSearches, caller: Caller, name: Name, patch: SearchPatch, response: Response, if_match: IfMatch = None
) -> SearchView:
    """Change limits, or whom it is shared with; one that had come to a limit goes on if it may now."""
    changed = requests.change(caller, name, patch.changes(), revision_of(if_match))
    return _shown(requests, changed, response)


@routes.delete("/searches/{name}", Permission.JOBS_WRITE, "Remove a search", 403, 404, 412, 503, status_code=204)
def remove(requests: InSearches, caller: Caller, name: Name, if_match: IfMatch = None) -> None:
    """Forget a search with its trials; jobs of it that have not ended are stopped, and all of them stay as jobs."""
    requests.remove(caller, name, revision_of(if_match))


@routes.post("/searches/{name}/stop", Permission.JOBS_WRITE, "Stop a search", 403, 404, 409, 503)
def stop(requests: InSearches, caller: Caller, name: Name, response: Response) -> SearchView:
    """Let its trials leave their slots at step boundaries, with their states saved."""
    return _shown(requests, requests.stop(caller, name), response)


@routes.post("/searches/{name}/resume", Permission.JOBS_WRITE, "Resume a search", 403, 404, 409, 503)
def resume(requests: InSearches, caller: Caller, name: Name, response: Response) -> SearchView:
    """Let a search that was stopped go on where it was."""
    return _shown(requests, requests.resume(caller, name), response)


@routes.get("/searches/{name}/trials", Permission.JOBS_READ, "List trials", 404, 503)
def trials(
    requests: InSearches,
    caller: Caller,
    name: Name,
    after: Annotated[int, Query(ge=-1, le=2**31 - 1, description="`next` of the page before.")] = -1,
    limit: Limit = 100,
    state: Annotated[list[TrialState] | None, Query(description="Only those in one of these states.")] = None,
) -> TrialPage:
    """Return trials in the order in which they were chosen."""
    found, last = requests.trials(caller, name, after=after, limit=limit, states=state or ())
    return TrialPage(trials=tuple(map(_bare, found)), next=last)


@routes.get("/searches/{name}/trials/rows", Permission.JOBS_READ, "A table of trials", 404, 503)
def trial_rows(
    requests: InSearches,
    caller: Caller,
    name: Name,
    order: Annotated[TrialOrder, Query(alias="sort", description="`-`: the largest first.")] = "number",
    offset: Annotated[int, Query(ge=0, le=MAX_TRIALS)] = 0,
    limit: Limit = 100,
    state: Annotated[list[TrialState] | None, Query(description="Only those in one of these states.")] = None,
) -> TrialRows:
    """Return trials as a table shows them.

    `value` is by the first objective, the best first; trials that have no value, or violate a constraint, come last.
    """
    search = requests.get(caller, name)
    found = order_trials(requests.all_trials(search.name), search.settings.objectives, order, state or ())
    return TrialRows(trials=tuple(map(trial_row, found[offset : offset + limit])), total=len(found))


@routes.post("/searches/{name}/trials", Permission.JOBS_WRITE, "Add trials", 403, 404, 409, 503)
def add_trials(requests: InSearches, caller: Caller, name: Name, body: TrialsRequest, response: Response) -> SearchView:
    """Have these values tried next; what is missing in them is chosen. The search's limit grows by as many."""
    return _shown(requests, requests.add_trials(caller, name, body.trials), response)


@routes.get("/searches/{name}/trials/{number}", Permission.JOBS_READ, "Show a trial", 404, 503)
def trial(requests: InSearches, caller: Caller, name: Name, number: Number) -> Trial:
    """Return a trial with its values, its reports and its results."""
    return _bare(requests.trial(caller, name, number))


@routes.get("/searches/{name}/best", Permission.JOBS_READ, "The best trials", 404, 503)
def best(requests: InSearches, caller: Caller, name: Name, limit: Limit = 1) -> TrialPage:
    """Return trials that have completed, the best first; of several objectives those that no other trial beats."""
    return TrialPage(trials=tuple(map(_bare, requests.best(caller, name, limit))), next=None)


@routes.get("/searches/{name}/decisions", Permission.JOBS_READ, "What a search decided", 404, 503)
def decisions(
    requests: InSearches,
    caller: Caller,
    name: Name,
    after: Annotated[int, Query(ge=0, le=2**31 - 1, description="`last` of the page before.")] = 0,
    limit: Limit = 100,
) -> DecisionPage:
    """Return what was decided and why, in order."""
    found = requests.decisions(caller, name, after, limit)
    return DecisionPage(decisions=found, last=found[-1].position if found else after)


@routes.get(
    "/searches/{name}/algorithm-log",
    Permission.JOBS_READ,
    "What a search's algorithm printed",
    404,
    503,
    response_class=PlainTextResponse,
)
def algorithm_log(requests: InSearches, caller: Caller, name: Name) -> str:
    """Return the newest megabyte of what the algorithm has printed that somebody installed."""
    return requests.algorithm_log(caller, name)


@routes.get("/searches/{name}/why", Permission.JOBS_READ, "Why a search has the slots it has", 404, 503)
def why(requests: InSearches, control: InControl, visible: Seen, caller: Caller, name: Name) -> SearchWhy:
    """Return why as many of its trials train, why each has the slots it has, and what waits for what."""
    search = requests.get(caller, name)

    def jobs_of(name: str) -> Iterator[Job]:
        before: str | None = ""
        while before is not None:
            which = JobFilter(searches=(name,), states=UNENDED_STATES)
            page = control.queries.page(which, before or None, _MANY, visible)
            yield from page.jobs
            before = page.next

    return why_of(requests, search.name, jobs_of)


@routes.get("/searches/{name}/importances", Permission.JOBS_READ, "How important parameters are", 404, 503)
def importances(requests: InSearches, caller: Caller, name: Name) -> ImportancesView:
    """Return how much of the differences in the first objective comes from each parameter, by PED-ANOVA."""
    found = requests.importances(caller, name)
    return ImportancesView(importances=found.values, reason=found.reason)


def _shown(requests: SearchRequests, search: Search, response: Response) -> SearchView:
    return with_etag(view_of(requests, search), response)


def _bare(trial: Trial) -> Trial:
    """Return a trial without what its sampler has noted for itself."""
    return trial.without_attributes()
