"""Commands about the server itself: `up`, `down`."""

import os
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from dataclasses import replace
from io import FileIO
from pathlib import Path
from typing import Annotated, Final

import typer

from pliant.cli import formatting
from pliant.cli.admin.up_options import UP_OPTIONS, arguments_of, up_arguments
from pliant.cli.fields import Given, takes
from pliant.cli.options import JsonOption
from pliant.cli.screen import print_json, print_outcome, say
from pliant.cli.session import client_of, find_record
from pliant.cli.settings import Settings, settings_of
from pliant.client import Client
from pliant.client.http.home import ServerRecord, read_record
from pliant.core.errors import Conflict, PliantError, Unavailable
from pliant.core.plan import NodeView, PolicyName
from pliant.entry.server.database import VARIABLE as DATABASE_VARIABLE
from pliant.entry.server.database import refuse_secret
from pliant.entry.server.home import STANDBY_FILE

DEFAULT_PORT: Final = 7311
DEFAULT_LEASE_S: Final = 2.0
_START_S: Final = 60.0
_LOOK_S: Final = 0.05
_NUM_LOG_LINES: Final = 15

DatabaseOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="PostgreSQL instead of SQLite, without a password; or PLIANT_DATABASE.", show_default=False
    ),
]
StandbyOption = Annotated[
    bool, typer.Option("--standby", help="While another server leads wait, and take its place when it is gone.")
]
HostOption = Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen; beyond this machine with TLS only.")]
TlsOption = Annotated[bool, typer.Option("--tls", help="Serve HTTPS with a certificate that is made and renewed.")]
CertificateOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Serve HTTPS with this certificate (PEM, with its chain).", show_default=False),
]
KeyOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The private key of --tls-cert (PEM).", show_default=False)
]
NameOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="A name that the made certificate is for; repeatable.", show_default=False),
]
DataRootOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Data sets may be named by paths below it; default: data in the state folder.",
        show_default=False,
    ),
]
UploadOption = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="GiB that an upload of data may have; default: 64.", show_default=False),
]
LeaseOption = Annotated[
    float,
    typer.Option(min=0.2, metavar="S", help="A task that is silent for so long is taken as hung and replaced."),
]
PreloadOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="MODULE", help="A module that scripts import, to import once; repeatable.", show_default=False
    ),
]
LabelOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="What resource groups choose this machine by.", show_default=False),
]
IsolationOption = Annotated[
    str, typer.Option(metavar="MODE", help="required: nothing starts where a wall is missing; auto; off: no walls.")
]
TrustOption = Annotated[
    bool,
    typer.Option("--trust-everyone", help="Serve several people beyond this machine though walls are missing."),
]
HomeOption = Annotated[
    Path | None, typer.Option(help="State folder; as before the command.", metavar="DIR", show_default=False)
]


@takes(UP_OPTIONS)
def up(  # noqa: PLR0913 (one parameter per option)
    context: typer.Context,
    home: HomeOption = None,
    database: DatabaseOption = None,
    standby: StandbyOption = False,
    host: HostOption = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="0 takes any free one.")] = DEFAULT_PORT,
    tls: TlsOption = False,
    tls_cert: CertificateOption = None,
    tls_key: KeyOption = None,
    tls_name: NameOption = None,
    data_root: DataRootOption = None,
    max_upload_gib: UploadOption = None,
    slots: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="CPU slots; default: one per GPU, or per CPU.", show_default=False),
    ] = None,
    label: LabelOption = None,
    policy: Annotated[PolicyName, typer.Option(help="Of the default queue.")] = PolicyName.FAIRSHARE,
    lease: LeaseOption = DEFAULT_LEASE_S,
    preload: PreloadOption = None,
    isolation: IsolationOption = "auto",
    trust_everyone: TrustOption = False,
    *,
    given: Given,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Return once it runs; log to server.log.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Start the server on this machine.

    Without -d it stays in the foreground; Ctrl-C saves all jobs and ends it.

    \b
    pliant up --slots 8
    pliant up -d --host 0.0.0.0 --tls --tls-name pool.example.org
    """
    folder = _home(context, home)
    _refuse_second(folder, standby=standby)
    argv = [sys.executable, "-P", "-m", "pliant.entry.server", "--home", str(folder), "--host", host]
    argv += ["--port", str(port), "--policy", policy.value, "--lease-s", f"{lease:g}"]
    options: dict[str, object] = {"--slots": slots, "--isolation": isolation, "--preload": preload}
    options |= {"--max-upload-gib": max_upload_gib, "--tls-name": tls_name, "--label": label}
    options |= {"--tls-cert": tls_cert, "--tls-key": tls_key, "--data-root": data_root}
    argv += [*arguments_of(options), *up_arguments(given)]
    argv += ["--tls"] * tls + ["--standby"] * standby + ["--trust-everyone"] * trust_everyone
    if not detach:
        sys.stdout.flush()
        os.execve(argv[0], argv, _environment(database))
    record, first_words = _start(argv, folder, _environment(database))
    if first_words:
        say(first_words.rstrip(), stderr=True)
    if as_json:
        print_json(_view(record, folder))
    else:
        _say_started(record, folder)


def _refuse_second(folder: Path, *, standby: bool) -> None:
    present = find_record(folder)
    if present is not None and not standby and _answers(present):
        raise Conflict(f"a server runs for {folder} already, at {present.url}; end it with `pliant down`")


def _say_started(record: ServerRecord, folder: Path) -> None:
    leads = find_record(folder) == record
    say(f"The server {'runs' if leads else 'stands by'} at {record.url} (process {record.pid}).")
    if record.public_url is not None:
        say(f"Others reach it at {record.public_url}.")
    if record.fingerprint is not None:
        say(f"Its certificate is {record.certificate},")
        say(f"SHA-256 {record.fingerprint}.")
    say(f"Its state is in {folder}, its log in {folder / 'server.log'}.")
    if not leads:
        say(f"It takes the place of the one that leads when that is gone. `kill {record.pid}` ends it, and not")
        say("`pliant down`, which is for the one that leads.")
        return
    _say_walls(folder)
    before = "" if folder == _default_home() else f"--home {folder} "
    say(f"Its console is at {record.console_url}; `pliant {before}console` opens it without a password.")
    say(f"Submit with `pliant {before}submit train.py`, watch with `pliant {before}top`,")
    say(f"end it with `pliant {before}down`.")


def _say_walls(folder: Path) -> None:
    """Say what keeps people's code apart, and loudly what does not."""
    nodes: tuple[NodeView, ...] = ()
    with suppress(PliantError), client_of(Settings(home=folder, url=None, token=None)) as client:  # a login has expired
        nodes = client.cluster().nodes
    for node in nodes:
        if node.missing_walls:
            say(f"Warning: scripts are not kept apart on {node.id}: {'; '.join(node.missing_walls)}.", stderr=True)
        else:
            say(f"Scripts on {node.id} run within walls: {'; '.join(node.walls)}.")


def down(
    context: typer.Context,
    home: HomeOption = None,
    timeout_s: Annotated[float, typer.Option("--timeout", metavar="S", help="Seconds to wait for its end.")] = 120.0,
    as_json: JsonOption = False,
) -> None:
    """Save all jobs and end the server.

    The jobs go on after the next `pliant up`.
    """
    settings = settings_of(context)
    settings = replace(settings, home=_home(context, home))
    with client_of(settings) as client:
        pid = read_record(settings.home).pid if settings.url is None else None
        client.shutdown()
        deadline = time.monotonic() + timeout_s
        while (_lives(pid) if pid is not None else client.healthy()) and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        if time.monotonic() >= deadline:
            raise TimeoutError(f"the server at {client.url} still runs after {timeout_s:g} s; it saves its jobs")
        url = client.url
    print_outcome({"url": url, "ended": True}, f"The server at {url} has ended; its jobs are saved.", as_json=as_json)


def _view(record: ServerRecord, home: Path) -> dict[str, object]:
    view: dict[str, object] = {"url": record.url, "home": str(home), "pid": record.pid}
    if record.public_url is not None:
        view["public_url"] = record.public_url
    if record.fingerprint is not None:
        view |= {"certificate": str(record.certificate), "fingerprint": record.fingerprint}
    view["console_url"] = record.console_url
    return view


def _home(context: typer.Context, given: Path | None) -> Path:
    return (given or settings_of(context).home).expanduser().absolute()


def _default_home() -> Path:
    """Return the home that a command without options would take."""
    return Path(os.environ.get("PLIANT_HOME") or "~/.pliant").expanduser().absolute()


def _environment(database: str | None) -> dict[str, str]:
    """Return the environment of the server; the database's URL is not put on its command line."""
    if database is None:
        return dict(os.environ)
    refuse_secret(database)
    return os.environ | {DATABASE_VARIABLE: database}


def _start(argv: list[str], home: Path, env: dict[str, str]) -> tuple[ServerRecord, str]:
    """Start the server in a session of its own and wait until it answers.

    Returns what it says of itself, and what a new server tells once: how its administrator logs on.

    Raises:
        Unavailable: it ended, or did not answer in time; the message holds the end of its log.
    """
    log = home / "server.log"
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        start = log.stat().st_size if log.exists() else 0
        child, first_words = _launch(argv, log, env)
    except OSError as error:
        raise Unavailable(
            f"the server could not be started in {home}: {error.strerror}; give another --home"
        ) from error
    try:
        with first_words:
            if (found := _wait_for(child, home, log, start, first_words)) is not None:
                return found
    except KeyboardInterrupt:
        child.terminate()
        raise
    child.terminate()
    raise Unavailable(
        f"the server did not answer within {formatting.duration(_START_S)} and was ended; "
        f"it said:\n{_end_of(log, start)}"
    )


def _wait_for(
    child: subprocess.Popen[bytes], home: Path, log: Path, start: int, first_words: FileIO
) -> tuple[ServerRecord, str] | None:
    """Return what a server that starts says of itself, and its first words; None if it does not answer in time.

    Raises:
        Unavailable: it ended.
    """
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        if child.poll() is not None:
            if text := _read(first_words):
                say(text.rstrip(), stderr=True)
            raise Unavailable(f"the server ended at once (code {child.returncode}); it said:\n{_end_of(log, start)}")
        record = find_record(home)
        if record is not None and record.pid == child.pid and _answers(record):
            return record, _read(first_words)
        waiting = find_record(home, STANDBY_FILE)
        if waiting is not None and waiting.pid == child.pid:
            return waiting, ""
        time.sleep(_LOOK_S)
    return None


def _read(pipe: FileIO) -> str:
    return (pipe.read() or b"").decode("utf-8", "replace")


def _launch(argv: list[str], log: Path, env: dict[str, str]) -> tuple[subprocess.Popen[bytes], FileIO]:
    """Start the server; return it and the end of a pipe on which it tells a new administrator's password.

    That is never in a file. What is not read is lost with the pipe. Reading does not wait.
    """
    reading, writing = os.pipe()
    pipe = FileIO(reading)
    try:
        os.set_blocking(reading, False)
        with FileIO(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a") as out:
            child = subprocess.Popen(
                [*argv, "--login-fd", str(writing)],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                cwd="/",
                pass_fds=(writing,),
            )
    except BaseException:
        pipe.close()
        raise
    finally:
        os.close(writing)
    return child, pipe


def _answers(record: ServerRecord) -> bool:
    try:
        with Client(record.url, None, trust=record.trust) as client:
            return client.healthy()
    except PliantError:
        return False


def _end_of(log: Path, start: int) -> str:
    with log.open("rb") as file:
        file.seek(start)
        lines = deque(file, maxlen=_NUM_LOG_LINES)
    return "".join(f"  {line.decode('utf-8', 'replace')}" for line in lines).rstrip() or "  (nothing)"


def _lives(pid: int) -> bool:
    """Tell whether a process runs; one that has ended but was not collected yet does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
