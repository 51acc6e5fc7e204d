"""A server of a test's own, driven through the command line and the client as a person would.

The server is a process, the commands run in this one.
"""

import io
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.starvation import starved_s
from tests.forks import WarmModule

from pliant.cli.app import main
from pliant.client import Client
from pliant.core.job import Task

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
START_S = 60.0
_numbers = itertools.count(31 * os.getpid())  # so that two runs of the tests side by side hardly meet


class Pool:
    """Starts a server on a free port with this many CPU slots; by `pliant up` if it is told more than that.

    Without a number its slots are the GPUs of this machine. A warm one need not import what it consists of;
    `pliant up` starts none of those.
    """

    def __init__(
        self,
        home: Path,
        *,
        slots: int | None = 8,
        options: tuple[str, ...] = (),
        database: str | None = None,
        module: str = "pliant.entry.server",
        warm: bool = False,
    ) -> None:
        assert not (warm and options), "what `pliant up` starts is cold"
        self.home = home
        self.options = options
        self.slots = slots
        self.database = database
        self.module = module
        self.warm = warm
        self.port = free_port()  # fixed, so that tasks find the next server of the same folder
        self.process: subprocess.Popen[bytes] | WarmModule | None = None

    def up(self) -> None:
        home, slots = ("--home", str(self.home)), () if self.slots is None else ("--slots", str(self.slots))
        options = ("--port", str(self.port), *slots)
        program = ("pliant.cli.app", *home, "up", *self.options) if self.options else (self.module, *home)
        meeting = ("--allow", f"{self.home.parent.parent}:rw")  # where tests and scripts meet
        env = clean_env() | ({} if self.database is None else {"PLIANT_DATABASE": self.database})
        command, out = (*program, *options, *meeting), self.home.parent / "up.log"
        if self.warm:
            self.process = WarmModule(command, env=env, out=out)
        else:
            with out.open("ab") as log:
                self.process = subprocess.Popen([PYTHON, "-P", "-m", *command], stdout=log, stderr=log, env=env)
        try:
            self.until(lambda: self.listens() or self.process_ended(), "the server listens", START_S)
        except AssertionError:
            self.signal(signal.SIGKILL)
            raise
        assert not self.process_ended(), self.log()

    def listens(self) -> bool:
        """This server, and not one that was killed, has written where it listens."""
        try:
            record = (self.home / "server.json").read_text()
        except FileNotFoundError:  # a server that starts removes the one of a server that was killed
            return False
        return self.process is not None and f'"pid": {self.process.pid}' in record

    def process_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def starved_s(self) -> float:
        """Return how long the server's threads waited for a processor since it began: the cost of others' work."""
        assert self.process is not None
        return starved_s(self.process.pid)

    def log(self) -> str:
        return (self.home.parent / "up.log").read_text()

    def signal(self, number: signal.Signals) -> int:
        """Send the server a signal and return its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(60)

    def close(self) -> None:
        if self.process is not None and not self.process_ended():
            self.signal(signal.SIGTERM)

    def cli(self, *args: str, code: int = 0) -> str:
        """Run one command; return what it printed; check its exit code."""
        ended, out, err = run_command(self.home, *args)
        assert ended == code, f"{args} ended with {ended}\n{out}\n{err}"
        return out if code == 0 else err

    def json(self, *args: str) -> Any:
        return json.loads(self.cli(args[0], "--json", *args[1:]))

    def client(self) -> Client:
        return Client.from_home(self.home)

    def submit(self, script: Path, *options: str, args: tuple[str, ...] = ()) -> str:
        """Submit one file; return the job's id."""
        job = self.json("submit", str(script), *options, *(("--", *args) if args else ()))
        return str(job["id"])

    def training(self, client: Client, job_id: str) -> list[Task]:
        """Return the live tasks of a job that train."""
        return [task for task in client.job(job_id).tasks if task.state == "training"]

    @staticmethod
    def until(condition: Callable[[], Any], what: str, timeout_s: float = 45.0) -> Any:
        """Wait for something; fail with its name."""
        deadline = time.monotonic() + timeout_s
        while True:
            value = condition()
            if value:
                return value
            assert time.monotonic() < deadline, f"waited {timeout_s} s for: {what}"
            time.sleep(0.05)

    @staticmethod
    def lacked_s(condition: Callable[[], Any], what: str, *, since: float) -> float:
        """Wait for something; return how long after `since` (seconds since the epoch) it was last looked for in vain.

        So a test that gets no processor for a while blames nobody for what it did not see meanwhile.
        """
        lacked_at = since

        def seen() -> bool:
            nonlocal lacked_at
            looked_at = time.time()
            if condition():
                return True
            lacked_at = looked_at
            return False

        Pool.until(seen, what)
        return lacked_at - since


PYTHON = sys.executable


def run_command(home: Path, *args: str) -> tuple[int, str, str]:
    """Run `pliant` in this process, as in one whose environment says nothing of Pliant; return code, stdout, stderr."""
    out, err = io.BytesIO(), io.BytesIO()
    streams = [io.TextIOWrapper(stream, encoding="utf-8", write_through=True) for stream in (out, err)]
    with pytest.MonkeyPatch.context() as environment, redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        for name in os.environ.keys() - clean_env():
            environment.delenv(name)
        with pytest.raises(SystemExit) as ended:
            main(["--home", str(home), *args])
    assert isinstance(ended.value.code, int | None)
    return ended.value.code or 0, out.getvalue().decode(), err.getvalue().decode()


def free_port() -> int:
    """Return a port that nobody listens on, and that nobody else is given while a server of it is down.

    Ports that Linux picks by itself are above 32767; every worker of a run of the tests has a thousand below to itself.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    while True:
        port = 10000 + 1000 * (worker % 10) + next(_numbers) % 1000
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def clean_env() -> dict[str, str]:
    """Return this environment without Pliant's own variables; scripts find `tests.contracts` in it."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PLIANT_")}
    return env | {"PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), env.get("PYTHONPATH", ""))))}
