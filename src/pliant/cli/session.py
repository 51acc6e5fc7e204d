"""Which server a command speaks to, and which job a person means. The only file that opens a client."""

import ipaddress
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import typer

from pliant.api.faults import near_name
from pliant.api.trust import Trust
from pliant.cli.settings import Settings, settings_of
from pliant.client import Client
from pliant.client.http.credentials import Credentials, Login, same_url
from pliant.client.http.home import SERVER_FILE, ServerRecord, read_record, read_token
from pliant.client.http.pages import pages
from pliant.core.errors import Conflict, NotFound, Unauthorized, Unavailable
from pliant.core.job import Job
from pliant.core.lifecycle import JOB_LIFECYCLE, JobState, is_final

UNFINISHED: Final = tuple(state for state in JobState if not is_final(JOB_LIFECYCLE, state))

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
    return Client(server.url, settings.token or _token_of(settings, server), timeout_s=timeout_s, trust=server.trust)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Which server is meant, and how it is known."""

    url: str
    trust: Trust
    is_ours: bool
    """The one that runs for the home folder."""
    login: Login | None
    """The one that is stored for it."""
    public_url: str
    """Where people on other machines reach it, as far as is known here."""


def server_of(settings: Settings) -> Server:
    """Return which server is meant.

    Raises:
        Unavailable: no server runs for the home folder, or the stored logins cannot be read.
    """
    record = read_record(settings.home) if settings.url is None else find_record(settings.home)
    url = settings.url or (record.url if record is not None else "")
    ours = record if record is not None and same_url(record.url) == same_url(url) else None
    login = None if settings.token is not None else credentials().find(url)
    trust = Trust()
    if settings.ca is not None:
        trust = Trust(certificate=settings.ca, server_name=None if ours is None else ours.server_name)
    elif ours is not None:
        trust = ours.trust
    elif login is not None:
        trust = login.trust
    public_url = ours.public_url if ours is not None and ours.public_url is not None else url
    return Server(url=url, trust=trust, is_ours=ours is not None, login=login, public_url=public_url)


def find_record(home: Path, file: str = SERVER_FILE) -> ServerRecord | None:
    """Return what the server of a home says of itself; None if none has."""
    try:
        return read_record(home, file)
    except Unavailable:
        return None


def credentials() -> Credentials:
    """Return the file of this person's logins."""
    config = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Credentials(Path(config).expanduser() / "pliant" / "credentials.json")


def _token_of(settings: Settings, server: Server) -> str:
    """Return the token of the stored login, else that of the home folder, which is told to no other machine.

    A login that has expired is not replaced by that: a person would unawares be the administrator.
    """
    if server.login is not None:
        return server.login.token
    if not (server.is_ours or is_local(server.url)):
        raise Unauthorized(f"nobody is logged in at {server.url}; use `pliant login --url {server.url}`")
    try:
        return read_token(settings.home)
    except Unavailable as error:
        raise Unauthorized(f"{server.url} needs to know who you are: use `pliant login` ({error})") from error


def is_local(url: str) -> bool:
    """Tell whether a URL leads to this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def all_jobs(client: Client, *, ended: bool) -> tuple[Job, ...]:
    """Return the jobs, newest first: those that wait or run, or with `ended` all."""
    states = () if ended else UNFINISHED
    asked = pages(lambda before: client.jobs(states=states, before=before or None, limit=_PAGE))
    return tuple(job for page in asked for job in page.jobs)


def is_array(text: str) -> bool:
    """Tell whether a text names an array."""
    return _ARRAY.fullmatch(text) is not None


def job_id_of(client: Client, text: str) -> str:
    """Return the id of the job that a person names by id (`job-3`), number (`3`) or unique name.

    Of several jobs of that name the only one that has not ended is meant.

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
        near = near_name(text, [job.spec.name for job in every])
        meant = "" if near is None else f" is {near!r} meant?"
        raise NotFound(f"no job is called {text!r};{meant or ' `pliant ps --all` lists all jobs'}")
    ids = ", ".join(job.id for job in named[:8]) + (" and more" if len(named) > 8 else "")
    raise Conflict(f"{len(named)} jobs are called {text!r}: {ids}; give one of these ids")
