"""Which server a command speaks to, and which job a person means. The only file that opens a client."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import typer

from pliant.client import Client
from pliant.client.home import read_token
from pliant.core.errors import Conflict, NotFound, PliantError, Unavailable
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


def settings_of(context: typer.Context) -> Settings:
    """Return the settings that the root command left."""
    settings = context.obj
    assert isinstance(settings, Settings)
    return settings


def open_client(context: typer.Context) -> Client:
    """Return a client of the server that is meant.

    Raises:
        Unavailable: no server runs for the home folder.
    """
    return client_of(settings_of(context))


def client_of(settings: Settings, *, timeout_s: float = 30.0) -> Client:
    """Return a client for these settings.

    Raises:
        Unavailable: no server runs for the home folder, or there is no token.
    """
    if settings.url is None:
        found = Client.from_home(settings.home, timeout_s=timeout_s)
        if settings.token is None:
            return found
        found.close()
        return Client(found.url, settings.token, timeout_s=timeout_s)
    return Client(settings.url, settings.token or _home_token(settings), timeout_s=timeout_s)


def _home_token(settings: Settings) -> str:
    try:
        return read_token(settings.home)
    except Unavailable as error:
        raise Unavailable(f"{settings.url} needs a token: set PLIANT_TOKEN ({error})") from error


def all_jobs(client: Client, *, ended: bool) -> tuple[Job, ...]:
    """Return the jobs, newest first: those that wait or run, or with `ended` all."""
    states = () if ended else UNFINISHED
    jobs: list[Job] = []
    before = None
    while True:
        page = client.jobs(states=states, before=before, limit=_PAGE)
        jobs += page.jobs
        if page.next is None:
            return tuple(jobs)
        before = page.next


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
    settings = Settings(home=Path(given["home"]).expanduser(), url=given.get("url"), token=given.get("token"))
    try:
        with client_of(settings, timeout_s=_COMPLETION_TIMEOUT_S) as client:
            jobs = client.jobs(limit=_NUM_COMPLETIONS).jobs
    except PliantError:
        return []
    return [(job.id, f"{job.spec.name} ({job.state.value})") for job in jobs if job.id.startswith(incomplete)]
