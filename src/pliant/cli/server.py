"""Commands about the server itself: `up`, `down`, `version`."""

import os
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from typing import Annotated, Final

import typer

from pliant import __version__
from pliant.cli import words
from pliant.cli.options import JsonOption
from pliant.cli.screen import print_json, say
from pliant.cli.session import Settings, client_of, settings_of
from pliant.client.home import ServerRecord, read_record
from pliant.core.errors import Conflict, PliantError, Unavailable
from pliant.core.plan import PolicyName

DEFAULT_PORT: Final = 7311
_START_S: Final = 60.0
_LOOK_S: Final = 0.05
_NUM_LOG_LINES: Final = 15

HomeOption = Annotated[
    Path | None, typer.Option(help="State folder; as before the command.", metavar="DIR", show_default=False)
]


def up(  # noqa: PLR0913 (one parameter per option)
    context: typer.Context,
    home: HomeOption = None,
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="0 takes any free one.")] = DEFAULT_PORT,
    slots: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="CPU slots; default: one per GPU, or per CPU.", show_default=False),
    ] = None,
    policy: Annotated[PolicyName, typer.Option(help="How jobs share the slots.")] = PolicyName.FAIRSHARE,
    preload: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE", help="A module that scripts import, to import once; repeatable.", show_default=False
        ),
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Return once it runs; log to server.log.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Start the server on this machine.

    Without -d it stays in the foreground; Ctrl-C saves all jobs and ends it.

    \b
    pliant up --slots 8
    pliant up -d --home /data/pliant --port 0
    """
    folder = _home(context, home)
    present = _record_of(folder)
    if present is not None and _answers(folder, present):
        raise Conflict(f"a server runs for {folder} already, at {present.url}; end it with `pliant down`")
    argv = [sys.executable, "-P", "-m", "pliant.entry.server", "--home", str(folder), "--host", "127.0.0.1"]
    argv += ["--port", str(port), "--policy", policy.value]
    argv += [] if slots is None else ["--slots", str(slots)]
    argv += [f"--preload={module}" for module in preload or ()]
    if not detach:
        sys.stdout.flush()
        os.execv(argv[0], argv)
    record = _started(argv, folder)
    if as_json:
        print_json({"url": record.url, "home": str(folder), "pid": record.pid})
        return
    say(f"The server runs at {record.url} (process {record.pid}).")
    say(f"Its state is in {folder}, its log in {folder / 'server.log'}.")
    before = "" if folder == _default_home() else f"--home {folder} "
    say(f"Submit with `pliant {before}submit train.py`, watch with `pliant {before}top`,")
    say(f"end it with `pliant {before}down`.")


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
    settings = Settings(home=_home(context, home), url=settings.url, token=settings.token)
    with client_of(settings) as client:
        pid = read_record(settings.home).pid if settings.url is None else None
        client.shutdown()
        deadline = time.monotonic() + timeout_s
        while (_lives(pid) if pid is not None else client.healthy()) and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        if time.monotonic() >= deadline:
            raise TimeoutError(f"the server at {client.url} still runs after {timeout_s:g} s; it saves its jobs")
        url = client.url
    if as_json:
        print_json({"url": url, "ended": True})
    else:
        say(f"The server at {url} has ended; its jobs are saved.")


def version(as_json: JsonOption = False) -> None:
    """Print the version."""
    if as_json:
        print_json({"version": __version__})
    else:
        say(f"pliant {__version__}")


def _home(context: typer.Context, given: Path | None) -> Path:
    return (given or settings_of(context).home).expanduser().absolute()


def _default_home() -> Path:
    """Return the home that a command without options would take."""
    return Path(os.environ.get("PLIANT_HOME") or "~/.pliant").expanduser().absolute()


def _started(argv: list[str], home: Path) -> ServerRecord:
    """Start the server in a session of its own and wait until it answers.

    Raises:
        Unavailable: it ended, or did not answer in time; the message holds the end of its log.
    """
    log = home / "server.log"
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with log.open("ab") as out:
            start = out.tell()
            child = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, cwd="/"
            )
    except OSError as error:
        raise Unavailable(
            f"the server could not be started in {home}: {error.strerror}; give another --home"
        ) from error
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        if child.poll() is not None:
            raise Unavailable(f"the server ended at once (code {child.returncode}); it said:\n{_end_of(log, start)}")
        record = _record_of(home)
        if record is not None and record.pid == child.pid and _answers(home, record):
            return record
        time.sleep(_LOOK_S)
    child.terminate()
    raise Unavailable(
        f"the server did not answer within {words.duration(_START_S)} and was ended; it said:\n{_end_of(log, start)}"
    )


def _record_of(home: Path) -> ServerRecord | None:
    try:
        return read_record(home)
    except Unavailable:
        return None


def _answers(home: Path, record: ServerRecord) -> bool:
    try:
        with client_of(Settings(home=home, url=record.url, token=None)) as client:
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
