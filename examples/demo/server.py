"""The demo's own server: what `pliant up` runs, on a state folder of its own, and ended for certain."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from examples.demo.recording import DemoFailed
from pliant.client import Client
from pliant.core.errors import Unavailable

PRELOAD = ("sklearn.datasets",)
"""What every task of the demo imports; in a forked one it is there already."""
START_S = 60.0
STOP_S = 30.0
LEFTOVERS_S = 30.0


@contextmanager
def serving(home: Path, *, num_slots: int, log: Path) -> Iterator[Client]:
    """Run a server on a free port while the block runs; afterwards neither it nor a task of it lives.

    Raises:
        DemoFailed: the server did not come up; the message names its log.
    """
    home.mkdir(parents=True, mode=0o700)
    command = [sys.executable, "-m", "pliant.entry.server", "--port", "0", "--slots", str(num_slots)]
    for module in PRELOAD:
        command += ["--preload", module]
    environment = {**os.environ, "PLIANT_HOME": str(home)}
    with log.open("w") as out:
        server = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
    asked = False
    try:
        with _connect(home, server, log) as client:
            yield client
            client.shutdown()
            asked = True
    finally:
        if not asked:
            server.send_signal(signal.SIGTERM)
        _end(server)
        _end_leftovers(home)


def _connect(home: Path, server: subprocess.Popen[bytes], log: Path) -> Client:
    """Return a client as soon as the server answers."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise DemoFailed(f"the server ended with status {server.returncode}; see {log}")
        with suppress(Unavailable):
            client = Client.from_home(home)
            if client.healthy():
                return client
            client.close()
        time.sleep(0.05)
    raise DemoFailed(f"the server did not come up within {START_S:.0f} s; see {log}")


def _end(server: subprocess.Popen[bytes]) -> None:
    """Wait for a server that was asked to end; ask again by SIGTERM, and end it at last by SIGKILL."""
    for ask in (signal.SIGTERM, signal.SIGKILL):
        try:
            server.wait(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            server.send_signal(ask)
        else:
            return
    server.wait(timeout=STOP_S)


def leftovers(home: Path) -> list[int]:
    """Return the processes that were started on this state folder and live."""
    mark = f"PLIANT_HOME={home}".encode()
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = environ.read_bytes().split(b"\0")
        except OSError:  # it has ended, or is another user's
            continue
        if mark in variables:
            found.append(int(environ.parent.name))
    return found


def _end_leftovers(home: Path) -> None:
    """Wait for what outlives its server, as the agent's processes do by design, and SIGKILL what outlives that too."""
    _await_none(home, LEFTOVERS_S)
    for pid in leftovers(home):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    _await_none(home, STOP_S)


def _await_none(home: Path, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while leftovers(home) and time.monotonic() < deadline:
        time.sleep(0.05)
