"""Which server a command speaks to, and which job a person means. The only file that opens a client."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import typer

from pliant.cli.settings import Settings, settings_of
from pliant.client import Client
from pliant.client.http import session
from pliant.client.http.pages import pages
from pliant.client.http.session import Choice, Server, credentials, find_record, is_local, token_of
from pliant.core.errors import Conflict, Forbidden, InternalError, InvalidInput, NotFound
from pliant.core.job import Job
from pliant.core.lifecycle import UNENDED_STATES as UNFINISHED
from pliant.core.near_name import near_name

if TYPE_CHECKING:  # most commands ask for none of them, and their bodies take long to make
    from pliant.api.endpoints import EndpointView
    from pliant.api.job_views import JobPage
    from pliant.api.searches import SearchView

__all__ = [
    "UNFINISHED",
    "Server",
    "all_endpoints",
    "all_jobs",
    "client_of",
    "credentials",
    "find_record",
    "is_local",
    "job_id_of",
    "open_client",
    "open_searches",
    "search_of",
    "server_of",
]


_ID: Final = re.compile(r"(job-)?(\d+)")
_ARRAY: Final = re.compile(r"array-\d+")
_PAGE: Final = 1000


def open_client(context: typer.Context) -> Client:
    """Return a client of the server that is meant.

    Raises:
        Unavailable: no server runs for the home folder.
        Unauthorized: there is no token.
    """
    return client_of(settings_of(context))


def client_of(settings: Settings, *, timeout_s: float = 30.0) -> Client:
    """Return a client for these settings: with the token given, else that of the login stored, else that of the home.

    Raises:
        Unavailable: no server runs for the home folder.
        Unauthorized: there is no token.
    """
    server = server_of(settings)
    return Client(server.url, token_of(choice_of(settings), server), timeout_s=timeout_s, trust=server.trust)


def server_of(settings: Settings) -> Server:
    """Return which server is meant.

    Raises:
        Unavailable: no server runs for the home folder, or the stored logins cannot be read.
    """
    return session.server_of(choice_of(settings))


def choice_of(settings: Settings) -> Choice:
    """Return the settings as the client takes them."""
    return Choice(home=settings.home, url=settings.url, token=settings.token, ca=settings.ca)


def all_jobs(client: Client, *, ended: bool, searches: Sequence[str] | None = (), **asked: Any) -> tuple[Job, ...]:
    """Return the jobs, newest first: those that wait or run, or with `ended` all.

    Args:
        searches: only trials of these searches; None: no trials of any.
        asked: `states`, which count whatever `ended` says, `owners`, `queues` and `tags`; see `Client.jobs`.
    """
    states = asked.pop("states", ()) or (() if ended else UNFINISHED)

    def ask(before: str) -> "JobPage":
        return client.jobs(states=states, searches=searches, before=before or None, limit=_PAGE, **asked)

    return tuple(job for page in pages(ask) for job in page.jobs)


def all_endpoints(client: Client) -> "tuple[EndpointView, ...]":
    """Return the endpoints that the caller sees; none if they may not look, or an older server has none."""
    found = pages(lambda after: client.endpoints.list(after=after))
    try:
        return tuple(view for page in found for view in page.endpoints)
    except (NotFound, Forbidden):
        return ()


def open_searches(client: Client) -> "tuple[SearchView, ...]":
    """Return the searches that run or may go on, as far as the caller sees them; none if a server keeps none."""
    from pliant.core.search import SearchState  # with all that a search can say

    try:
        return tuple(client.searches.list(states=(SearchState.RUNNING, SearchState.STOPPED)))
    except (NotFound, Forbidden):
        return ()


def is_array(text: str) -> bool:
    """Tell whether a text names an array."""
    return _ARRAY.fullmatch(text) is not None


def _job_of_endpoint(client: Client, name: str) -> str | None:
    try:
        endpoint = client.endpoints.get(name)
    except (NotFound, Forbidden, InvalidInput, InternalError):  # the name may be none; an older server has no endpoints
        return None
    numbers = (endpoint.current, endpoint.versions[-1].number if endpoint.versions else None)
    version = next((one for number in numbers for one in endpoint.versions if one.number == number), None)
    return None if version is None else version.job_id


def search_of(client: Client, name: str) -> "SearchView | None":
    """Return the search of a name that may also be a job's; None if there is none, or it can only be a job's."""
    if _ID.fullmatch(name):
        return None
    try:
        return client.searches.get(name)
    except (NotFound, Forbidden, InvalidInput, InternalError):  # the name may be none; an older server has no searches
        return None


def job_id_of(client: Client, text: str) -> str:
    """Return the id of the job that a person names by id (`job-3`), number (`3`) or unique name.

    Of several jobs of that name the only one that has not ended is meant. The name of an endpoint stands for the job of
    the version that serves.

    Raises:
        NotFound: no job has that name.
        Conflict: several have, or it is an array.
    """
    if is_array(text):
        raise Conflict(f"{text} is an array; name one of its jobs here, `pliant show {text}` lists them")
    if match := _ID.fullmatch(text):
        return f"job-{int(match[2])}"
    every = all_jobs(client, ended=True)
    named = [job for job in every if job.spec.name == text]
    unfinished = [job for job in named if not job.ended]
    if len(named) == 1 or len(unfinished) == 1:
        return (unfinished or named)[0].id
    if not named:
        if (serving := _job_of_endpoint(client, text)) is not None:
            return serving
        near = near_name(text, [job.spec.name for job in every])
        meant = "" if near is None else f" is {near!r} meant?"
        raise NotFound(f"no job is called {text!r};{meant or ' `pliant ps --all` lists all jobs'}")
    ids = ", ".join(job.id for job in named[:8]) + (" and more" if len(named) > 8 else "")
    raise Conflict(f"{len(named)} jobs are called {text!r}: {ids}; give one of these ids")
