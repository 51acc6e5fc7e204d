"""Which jobs a caller asks for in the query of a URL; what they ask for and there is not is refused."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import Depends, Query

from pliant.api.job_filter import read_job_filter, unknown_name
from pliant.core.access import Principal, VisibleJobs
from pliant.core.errors import InvalidInput, NotFound, Problem
from pliant.core.job_filter import SORT_FIELDS, JobFilter, JobOrder
from pliant.server.context import Context, InContext
from pliant.server.middleware.authorisation import Caller
from pliant.server.visibility import Seen

_SEVERAL = "Repeatable, or several between commas."
_MAX_NEAR = 1000
"""So many names of users are looked through for one that is near."""

Words = list[str] | None
Sort = Literal[
    "submitted",
    "-submitted",
    "ended",
    "-ended",
    "name",
    "-name",
    "state",
    "-state",
    "owner",
    "-owner",
    "queue",
    "-queue",
    "priority",
    "-priority",
    "slots",
    "-slots",
]


def find_job_filter(  # noqa: PLR0913 (one parameter per word of the query)
    context: InContext,
    caller: Caller,
    visible: Seen,
    state: Annotated[
        Words, Query(description=f"Only jobs in these states; also `waiting` and `ended`. {_SEVERAL}")
    ] = None,
    owner: Annotated[Words, Query(description=f"Only jobs of these users. {_SEVERAL}")] = None,
    queue: Annotated[Words, Query(description=f"Only jobs in these queues. {_SEVERAL}")] = None,
    tag: Annotated[
        Words,
        Query(description="Only jobs with all of these tags, NAME or NAME=VALUE; of one name any. " + _SEVERAL),
    ] = None,
    search: Annotated[Words, Query(description=f"Only trials of these searches. {_SEVERAL}")] = None,
    trials: Annotated[bool, Query(description="Trials of searches are among them.")] = True,
    kind: Annotated[Words, Query(description=f"Only training, fixed, trial or endpoint. {_SEVERAL}")] = None,
    q: Annotated[
        str,
        Query(
            max_length=200,
            description="Only jobs with this text in their id, name, owner or a tag; capital letters do not matter.",
        ),
    ] = "",
) -> JobFilter:
    """Return which jobs are asked for.

    Raises:
        InvalidInput: with every state that is none, and every user, queue and search that there is not.
    """
    which = read_job_filter(
        states=state or (),
        owners=owner or (),
        queues=queue or (),
        tags=tag or (),
        searches=search or (),
        kinds=kind or (),
        text=q,
        trials=trials,
    )
    problems = (
        *_unknown_queues(context, which, visible),
        *_unknown_owners(context, which, caller, visible),
        *_unknown_searches(context, which, caller, visible),
    )
    if problems:
        raise InvalidInput(*problems)
    return which


AskedJobs = Annotated[JobFilter, Depends(find_job_filter)]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedPart:
    """Which part of a list is asked for."""

    order: JobOrder
    offset: int
    limit: int


def find_part(
    sort: Annotated[Sort, Query(description="What they are sorted by; with `-` before it the greatest first.")] = (
        "-submitted"
    ),
    offset: Annotated[int, Query(ge=0, le=2**31 - 1, description="Leave out so many of the first.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> AskedPart:
    """Return which part of a list is asked for."""
    by = next(field for field in SORT_FIELDS if field == sort.removeprefix("-"))
    return AskedPart(order=JobOrder(by=by, descending=sort.startswith("-")), offset=offset, limit=limit)


InPart = Annotated[AskedPart, Depends(find_part)]


def _unknown_queues(context: Context, which: JobFilter, visible: VisibleJobs | None) -> Iterator[Problem]:
    there = [kept.noun.name for kept in context.control.queues.queues()]
    for name in which.queues:
        if name not in there and not context.control.queries.has_any(JobFilter(queues=(name,)), visible):
            yield Problem(field="queue", message=unknown_name("queue", name, there, listed=True))


def _unknown_owners(
    context: Context, which: JobFilter, caller: Principal, visible: VisibleJobs | None
) -> Iterator[Problem]:
    """Yield who has no jobs that the caller could see; who does not see all learns nothing of who else there is."""
    for name in which.owners:
        if name == caller.name or context.control.queries.has_any(JobFilter(owners=(name,)), visible):
            continue
        if visible is not None:
            message = (
                f"{name!r:.80} has no job that you see; yours, and those shared with you, are all that you can list"
            )
            yield Problem(field="owner", message=message)
        elif not context.people.authenticator.has_user(name):
            names = [kept.noun.name for kept in context.people.accounts.page("", _MAX_NEAR)]
            yield Problem(field="owner", message=unknown_name("user", name, names))


def _unknown_searches(
    context: Context, which: JobFilter, caller: Principal, visible: VisibleJobs | None
) -> Iterator[Problem]:
    """Yield which searches there are not; the jobs of one that was removed stay, and say which it was."""
    for name in which.searches:
        if context.control.queries.has_any(JobFilter(searches=(name,)), visible):
            continue
        try:
            if context.searches is None:
                raise NotFound("this server keeps no searches; leave it out")
            context.searches.get(caller, name)
        except NotFound as error:
            yield Problem(field="search", message=str(error))
