"""Which server a command speaks to, and which job a person means. The only file that opens a client."""

import ipaddress
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import typer

from pliant.api.trust import Trust
from pliant.client import Client
from pliant.client.http.credentials import Credentials, Login, same_url
from pliant.client.http.home import SERVER_FILE, ServerRecord, read_record, read_token
from pliant.client.http.pages import pages
from pliant.core.errors import Conflict, NotFound, PliantError, Unauthorized, Unavailable
from pliant.core.job import Job
from pliant.core.lifecycle import JOB_LIFECYCLE, JobState, is_final

UNFINISHED: Final = tuple(state for state in JobState if not is_final(JOB_LIFECYCLE, state))

_ID: Final = re.compile(r"(job-)?(\d+)")
_PAGE: Final = 1000
_COMPLETION_TIMEOUT_S: Final = 1.0
_NUM_COMPLETIONS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What stands before the verb, or in the environment."""

    home: Path
    url: str | None
    token: str | None
    ca: Path | None = None
    """The certificate to know the server by."""


def settings_of(context: typer.Context) -> Settings:
    """Return the settings that the root command left."""
    settings = context.obj
    assert isinstance(settings, Settings)
    return settings


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
    return Server(url=url, trust=trust, is_ours=ours is not None, login=login)


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


def job_id_of(client: Client, text: str) -> str:
    """Return the id of the job that a person names by id (`job-3`), number (`3`) or unique name.

    Of several jobs of that name the only one that has not ended is meant.

    Raises:
        NotFound: no job has that name.
        Conflict: several have.
    """
    if match := _ID.fullmatch(text):
        return f"job-{int(match[2])}"
    named = [job for job in all_jobs(client, ended=True) if job.spec.name == text]
    unfinished = [job for job in named if not job.ended]
    if len(named) == 1 or len(unfinished) == 1:
        return (unfinished or named)[0].id
    if not named:
        raise NotFound(f"no job is called {text!r}; `pliant ps --all` lists all jobs")
    ids = ", ".join(job.id for job in named[:8]) + (" and more" if len(named) > 8 else "")
    raise Conflict(f"{len(named)} jobs are called {text!r}: {ids}; give one of these ids")


def complete_job(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the jobs that could be meant, newest first, for the shell's completion; none if no server answers."""
    given = context.find_root().params
    settings = Settings(
        home=Path(given["home"]).expanduser(), url=given.get("url"), token=given.get("token"), ca=given.get("ca")
    )
    try:
        with client_of(settings, timeout_s=_COMPLETION_TIMEOUT_S) as client:
            jobs = client.jobs(limit=_NUM_COMPLETIONS).jobs
    except PliantError:
        return []
    return [(job.id, f"{job.spec.name} ({job.state.value})") for job in jobs if job.id.startswith(incomplete)]
