"""Where it is measured: a server with a home and a database of its own, what it costs, and 200 jobs that run there."""

import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from bench.console.planted import plant
from bench.peers.processes import Processes
from bench.peers.server import Server, until
from pliant.api.arrays import ArrayRequest
from pliant.api.jobs import JobPatch, JobRequest
from pliant.api.sessions import link_url
from pliant.client import Client
from pliant.client.http.home import read_record, read_token

NUM_RUNNING = 200
POSTGRES = "postgresql://postgres@127.0.0.1:5432/postgres"
VARIABLE = "PLIANT_TEST_POSTGRES"
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_START_S = 240.0
_SCRIPT = "import time\ntime.sleep(86400)\n"


@dataclass(slots=True)
class Place:
    """A server over a planted database."""

    folder: Path
    server: Server
    planted_s: float
    """What it took to write the database, seconds."""
    waiting: str = ""
    """A job that needs more slots than there are; changes of its priority are what happens."""

    @property
    def client(self) -> Client:
        """Whoever may do everything."""
        return self.server.client

    @property
    def url(self) -> str:
        """Where the server is."""
        return read_record(self.server.home).url

    @property
    def headers(self) -> dict[str, str]:
        """What a request needs that is no browser's."""
        return {"Authorization": f"Bearer {read_token(self.server.home)}"}

    def logon_link(self) -> str:
        """Return an address that logs a browser on, once."""
        return link_url(self.url, self.client.people.make_logon_link())

    def processor_s(self) -> float:
        """Return the processor time that the server's process has used, seconds."""
        return processor_s(read_record(self.server.home).pid)

    def start_jobs(self) -> float:
        """Run 200 jobs, each with a process that sleeps; return how long it took until all ran, seconds."""
        began = time.monotonic()
        request = ArrayRequest(
            script="sleep.py", name="sleep", fixed=True, max_tasks=1, array={"n": tuple(range(NUM_RUNNING))}
        )
        array = self.client.arrays.submit(self._script(), request)
        until(lambda: _num_running(self.client, array.id) == NUM_RUNNING, "all jobs run", _START_S)
        return time.monotonic() - began

    def let_one_wait(self) -> None:
        """Submit a job that gets no slots."""
        many = NUM_RUNNING + 1
        request = JobRequest(script="sleep.py", name="waits", fixed=True, min_tasks=many, max_tasks=many)
        self.waiting = str(self.client.submit(self._script(), request).id)

    def stir(self, number: int) -> None:
        """Let something happen that every console shows: the job that waits gets another priority."""
        self.client.change(self.waiting, JobPatch(priority=1 + number % 10_000))

    def _script(self) -> Path:
        script = self.folder / "sleep.py"
        script.write_text(_SCRIPT)
        return script


def _num_running(client: Client, array: str) -> int:
    states = client.arrays.get(array).states
    return sum(number for state, number in states.items() if state == "running")


def processor_s(pid: int) -> float:
    """Return the processor time that a process has used, seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND


@contextmanager
def served(database: str | None = None) -> Iterator[Place]:
    """Plant a database, serve it, and leave nothing behind; without a URL it is SQLite in the server's home."""
    folder = Path(tempfile.mkdtemp(prefix="plb-"))
    home = folder / "home"
    home.mkdir(mode=0o700)
    processes = Processes(folder / "output.log")
    try:
        planted_s = plant(database or f"sqlite:///{home / 'pliant.db'}", time.time())
        options = () if database is None else ("--database", database)
        server = Server(folder, processes, slots=NUM_RUNNING, options=("--serve-port", "0", *options))
        try:
            yield Place(folder=folder, server=server, planted_s=planted_s)
        finally:
            _stop_all(server)
    finally:
        processes.end()
        shutil.rmtree(folder, ignore_errors=True)


def _stop_all(server: Server) -> None:
    client = server.client
    while jobs := client.jobs(states=("waiting", "starting", "running"), limit=1000).jobs:
        for job in jobs:
            client.stop(job.id, now=True)
    until(lambda: not any(slot.taken for slot in client.cluster().slots), "all jobs have ended", _START_S)
    server.close()


def postgres_url() -> str | None:
    """Return the URL of a PostgreSQL server that answers; None if there is none."""
    url = os.environ.get(VARIABLE) or POSTGRES
    try:
        psycopg.connect(url, connect_timeout=5).close()
    except psycopg.OperationalError:
        return None
    return url


@contextmanager
def new_database(server: str) -> Iterator[str]:
    """Make a database on a PostgreSQL server, give its URL, and drop it."""
    name = f"pliant_bench_{os.getpid()}_{secrets.token_hex(4)}"
    _execute(server, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield f"{server.rpartition('/')[0]}/{name}"
    finally:
        _execute(server, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _execute(url: str, statement: sql.Composed, *values: Any) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement, values or None)
