"""The command `notebook`: Jupyter on slots of the pool, in the browser of this machine."""

import sys
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated, Final

import typer

from pliant.api.jobs import JobRequest
from pliant.cli import formatting
from pliant.cli.browser import has_screen, open_browser
from pliant.cli.completion import complete
from pliant.cli.fields import FieldOption, Given, ask, options_of, takes
from pliant.cli.follow import print_end
from pliant.cli.jobs.asked import find_jobs, take_jobs
from pliant.cli.jobs.code import environment_of
from pliant.cli.options import JOB, leave_out_none
from pliant.cli.problems import validate
from pliant.cli.screen import say, say_notes
from pliant.cli.session import job_id_of, open_client
from pliant.cli.wait import StatusLine, leaving_alone
from pliant.client import Client
from pliant.client.http.patience import Patience, observe
from pliant.core.duration import seconds_of
from pliant.core.errors import Conflict, InvalidInput, Unavailable
from pliant.core.job import Job, JobSettings
from pliant.core.lifecycle import JobState
from pliant.core.notebook import DEFAULT_IDLE, SCRIPT, SCRIPT_TEXT, TAG
from pliant.tunnel.local_port import LocalPort

_KEPT: Final = (
    "name",
    "queue",
    "priority",
    "tags",
    "python",
    "environment",
    "requirements",
    "env",
    "data_dir",
    "dataset",
    "memory_bytes",
    "time_limit_s",
    "after",
    "after_any",
)
_SLOTS: Final = "slots_per_task"
OPTIONS: Final[Mapping[str, FieldOption]] = options_of(
    JobSettings,
    {
        _SLOTS: ask("GPUs (or CPU slots) that it holds.", "--slots"),
        **{name: JOB[name] for name in _KEPT},
        "name": ask("For people; default: notebook."),
    },
    but=[name for name in JOB if name not in (*_KEPT, _SLOTS)],
)
_POLL_S: Final = 0.5

BackArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="JOB",
        help="Come back to this one instead of starting one.",
        autocompletion=complete("job"),
        show_default=False,
    ),
]
PortOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="The port of this machine; default: 8888, or the next.",
        show_default=False,
        min=1,
        max=65535,
    ),
]


@takes(OPTIONS)
def notebook(
    context: typer.Context,
    job: BackArgument = None,
    *,
    code: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Send this folder, or notebook, to work in.", show_default=False),
    ] = None,
    idle: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help=f"End it after so long without use; off: never; default: {DEFAULT_IDLE}.",
            show_default=False,
        ),
    ] = None,
    given: Given,
    port: PortOption = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open it in a browser.")] = True,
) -> None:
    """Run Jupyter on slots of the pool, and open it here.

    It waits for its slots as any job, is within the walls of one, and holds
    the slots until you shut it down or stop it, or nobody has used it for a
    while: no cell runs, nothing that was started computes, nobody opens a page
    or saves. What you save in its folder is a result of the job.

    The address holds a token, and works on this machine alone, while this
    command runs. Ctrl-C ends the command and not the notebook.

    \b
    pliant notebook
    pliant notebook --slots 2 --code project/ --dataset flowers
    pliant notebook 7
    """
    if job is not None:
        _refuse_options(job, given | leave_out_none({"code": code, "idle": idle}))
    with closing(LocalPort(port)) as local, open_client(context) as client, tempfile.TemporaryDirectory() as pages:
        job_id = _submit(client, code, idle or DEFAULT_IDLE, given) if job is None else job_id_of(client, job)
        with leaving_alone(job_id, "`pliant notebook {}` comes back to it"):
            is_shown = browser and sys.stdout.isatty() and has_screen()
            ended = _Session(client, job_id, local, Path(pages) if is_shown else None).attend()
    say(f"`pliant files {job_id}` lists what was saved in it, `pliant result {job_id}` fetches it", stderr=True)
    if ended.state is JobState.STOPPED:
        say(f"{job_id} was stopped", stderr=True)
    else:
        print_end(job_id, ended)


def _refuse_options(job: str, given: Given) -> None:
    """Refuse options of a new notebook where one is there.

    Raises:
        InvalidInput: there are some.
    """
    for name in given:
        option = OPTIONS[name].name if name in OPTIONS else f"--{name}"
        raise InvalidInput.at(option, f"is for a new notebook, and {job} is there already; leave it out")


def _submit(client: Client, code: Path | None, idle: str, given: Given) -> str:
    """Submit a job that runs a notebook server; return its id.

    Raises:
        InvalidInput: with what is wrong with it.
    """
    idle_s = 0.0 if idle.strip().lower() == "off" else seconds_of(idle, field="--idle")
    jobs = take_jobs(given)
    requirements = given.pop("requirements", None)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, SCRIPT)
        script.write_text(SCRIPT_TEXT)
        also = [script]
        if code is None and requirements is not None:  # the file is all that is sent
            code, requirements = Path(requirements).expanduser(), Path(requirements).name
        environment = environment_of(code or script, given.pop("environment", None), requirements)
        own = {
            "name": "notebook",
            "script": SCRIPT,
            "args": ("--idle", f"{idle_s:g}"),
            "fixed": True,
            "environment": environment,
        }
        tags = {TAG: "", **given.pop("tags", {})}
        request = validate(JobRequest, leave_out_none({**own, **given, "tags": tags, **find_jobs(client, jobs)}))
        made = client.submit(script if code is None else code, request, also=() if code is None else also)
    say_notes(made.notes)
    say(f"{made.id} ({made.spec.name}) is submitted", stderr=True)
    return made.id


class _Session:
    """A notebook, from here; it is opened in a browser if there is a folder for the page that leads there."""

    def __init__(self, client: Client, job_id: str, port: LocalPort, pages: Path | None) -> None:
        self._client = client
        self._job_id = job_id
        self._port = port
        self._pages = pages
        self._has_begun = False
        self._url = ""
        self._patience = Patience()

    def attend(self) -> Job:
        """Have the browser's connections reach it, again and again, until its job has ended; return the job.

        Raises:
            Unavailable: the server, or the notebook, did not answer for longer than our patience. What has answered
                once is waited for until Ctrl-C: kernels that are worth something run there.
        """
        self._port.begin()
        while True:
            try:
                if (job := self._wait()).ended:
                    return job
                self._pass_on(job)
            except Unavailable as error:
                if not self._url:
                    raise
                say(f"{error}; trying again", stderr=True)
                self._patience.reset()

    def _wait(self) -> Job:
        """Return the job as soon as it has a process, or has ended."""
        with StatusLine() as line:
            for detail in observe(lambda: self._client.job(self._job_id), timeout_s=float("inf"), poll_s=_POLL_S):
                if detail.job.ended or detail.job.state is JobState.RUNNING:
                    return detail.job
                line.show(detail.job)
        raise AssertionError("it is looked at without end")

    def _pass_on(self, job: Job) -> None:
        """Pass everything on until the tunnel is closed."""
        if not self._has_begun:
            self._has_begun = True
            say(f"{job.id} runs on {formatting.count_of(job.num_slots, 'slot')}; Jupyter starts", stderr=True)
        try:
            channels = self._client.open_notebook(job.id, self._take_token)
        except (Conflict, Unavailable) as error:  # it has no process at the moment, or there is no server
            self._patience.wait_after(error)
            return
        self._port.lead(channels)
        try:
            channels.serve()
        except ValueError as error:
            say(f"the connection was closed: {error}", stderr=True)
        finally:
            self._port.lead(None)
            channels.close()
        self._patience.wait_after(Unavailable(f"the notebook was lost: {channels.reason or 'the server is gone'}"))

    def _take_token(self, token: str) -> None:
        self._patience.reset()
        url = f"{self._port.url}/?token={token}"
        if url == self._url:
            say("connected again", stderr=True)
            return
        self._url = url
        print(url, flush=True)  # in one line, however narrow the terminal is
        say(f"Ctrl-C leaves it running; `pliant notebook {self._job_id}` comes back to it", stderr=True)
        if self._pages is not None:
            open_browser(url, self._pages / "notebook.html", "Jupyter")
