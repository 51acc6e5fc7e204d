"""A pool whose machines are hosts of their own: a server on one, agents on the others.

The test's own thread speaks from the server's host, so that commands and clients run in this process as ever.
"""

import json
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from tests.contracts.starvation import starved_s
from tests.e2e.pool import PYTHON, Pool, clean_env
from tests.hosts import Host, HostProcess, Network, require_hosts

from pliant.client.http.home import read_record
from pliant.core.errors import Unavailable

SERVER, AGENTS = "a", ("b", "c", "d")
SLOTS = 2
"""Of every machine: tasks of one training have as many threads everywhere."""
ORPHAN_S = 30.0
"""A server that is killed must be back before: on a busy machine that takes half of it."""
GONE_S = ORPHAN_S + 10.0
"""After so long the server takes the tasks of a machine that is not heard for ended."""
LEASE_S = 2.0
PORT, AGENT_PORT = 7311, 7314
_START_S = 60.0


class HostsPool(Pool):
    """A pool on hosts of a network; `up` starts the server, `join` an agent."""

    cluster = "agents"
    names: tuple[str, ...] = AGENTS
    tmpfs: Mapping[str, str] = MappingProxyType({})
    """File systems that each host has for itself."""

    def __init__(self, home: Path, network: Network, *, options: tuple[str, ...] = (), **given: Any) -> None:
        super().__init__(home, slots=SLOTS, options=options, **given)
        self.network = network
        self.hosts: dict[str, Host] = {
            name: network.add(name, tmpfs=self.own_folders(name)) for name in (SERVER, *self.names)
        }
        self.agents: dict[str, HostProcess] = {}
        self.server_host = SERVER
        self.server: HostProcess | None = None
        self.env = clean_env()
        """Of all that is started here."""

    def python(self, _name: str) -> str | Path:
        """Return what a host runs its agent by."""
        return PYTHON

    def own_folders(self, _name: str) -> Mapping[str, str]:
        """Return the file systems that a host has for itself."""
        return self.tmpfs

    # The server

    def up(self) -> None:
        """Start the server on its host, and wait until it listens."""
        self.server = self.start_server(self.server_host)
        self.until(lambda: self.listens() or self.server_ended(), "the server listens", _START_S)
        assert not self.server_ended(), self.log()

    def start_server(self, name: str, *options: str) -> HostProcess:
        """Start a server on a host."""
        host = self.hosts[name]
        argv: list[str | Path] = [
            PYTHON,
            "-P",
            "-m",
            "pliant.cli.app",
            "--home",
            self.home,
            "up",
            "--port",
            str(PORT),
            "--slots",
            str(SLOTS),
            "--cluster",
            self.cluster,
            "--tls",
            "--host",
            host.address,
            "--agent-port",
            str(AGENT_PORT),
            *self.own_machine(name),
        ]
        argv += ["--orphan-s", str(ORPHAN_S), "--allow", f"{self.home.parent.parent}:rw", *self.options, *options]
        env = self.env | ({} if self.database is None else {"PLIANT_DATABASE": self.database})
        return host.popen(argv, env=env, output=self.home.parent / "up.log")

    @property
    def token(self) -> str:
        """Of the administrator."""
        return (self.home / "token").read_text().strip()

    @property
    def certificate(self) -> Path:
        """Of the server, which its own gateway shows as well."""
        return self.home / "address" / "server.pem"

    def own_machine(self, name: str) -> list[str | Path]:
        """Return how the server that runs on a host shall start the agent there."""
        return ["--machine-name", name, "--agent-dir", self.home.parent / f"agent-{name}"]

    def listens(self) -> bool:
        try:
            url = urlsplit(read_record(self.home).url)
            with socket.create_connection((url.hostname or "", url.port or 0), 1.0):
                return True
        except (OSError, Unavailable):
            return False

    def server_ended(self) -> bool:
        return self.server is not None and self.server.poll() is not None

    def process_ended(self) -> bool:
        return self.server_ended()

    def starved_s(self) -> float:
        return 0.0 if self.server is None or self.server_ended() else starved_s(self.server.pid)

    def signal(self, number: signal.Signals) -> int:
        assert self.server is not None
        self.server.kill(number)
        return self.server.wait(60)

    def close(self) -> None:
        if self.server is not None and not self.server_ended():
            self.signal(signal.SIGTERM)

    # The machines

    def join(self, name: str) -> None:
        """Start the agent of a host; the first time it joins."""
        folder = self.home.parent / f"agent-{name}"
        argv: list[str | Path] = [
            self.python(name),
            "-P",
            "-m",
            "pliant.cli.app",
            "agent",
            "--state-dir",
            folder,
            "--slots",
            str(SLOTS),
        ]
        if not (folder / "identity" / "certificate.pem").exists():
            token = self.home.parent / f"token-{name}"
            token.write_text(json.loads(self.cli("machines", "token", name, "--json"))["token"])
            address = self.hosts[self.server_host].address
            join = f"[{address}]:{AGENT_PORT}" if ":" in address else address
            argv += ["--join", join, "--token-file", token, "--name", name]
        self.agents[name] = self.hosts[name].popen(argv, env=self.env, output=self.home.parent / f"agent-{name}.log")

    def join_all(self) -> None:
        """Have all hosts there, each with an agent that the server hears, its own among them."""
        for name in AGENTS:
            if not self.hosts[name].is_up:
                self.restart_host(name)
            if name not in self.agents or self.agents[name].poll() is not None:
                self.join(name)
        self.until_here(self.server_host, *AGENTS)

    def state(self, name: str) -> str:
        """Return the state of a machine as people see it."""
        with self.client() as client:
            return next((one.state for one in client.machines.list() if one.name == name), "unknown")

    def until_state(self, name: str, state: str, timeout_s: float = 45.0) -> None:
        self.until(lambda: self.state(name) == state, f"{name} is {state}", timeout_s)

    def until_here(self, *names: str) -> None:
        for name in names:
            self.until_state(name, "in use")

    def agent_log(self, name: str) -> str:
        return (self.home.parent / f"agent-{name}.log").read_text()

    def kill_host(self, name: str) -> None:
        """Take a host's power away."""
        self.hosts[name].kill(silently=True)
        self.agents.pop(name, None)

    def restart_host(self, name: str) -> None:
        self.hosts[name].restart()

    def node_of(self, tasks: list[Any]) -> set[str]:
        """Return the machines that tasks are on."""
        return {str(task.node_id) for task in tasks}

    @contextmanager
    def without(self, *names: str) -> Iterator[None]:
        """Keep tasks off machines for a while."""
        with self.client() as client:
            for name in names:
                client.machines.drain(name)
        try:
            yield
        finally:
            with self.client() as client:
                for name in names:
                    client.machines.put_back(name)


@contextmanager
def open_hosts(folder: Path) -> Iterator[HostsPool]:
    """Yield a pool for the tests of a file; this thread speaks from its server's host."""
    require_hosts()
    folder.chmod(0o777)
    with Network() as network:
        pool = HostsPool(folder / "home", network)
        with pool.hosts[SERVER].inside():
            yield pool
            pool.close()


def runs_on(host: Host, pid: int) -> bool:
    """Tell whether a process of a host, as the host numbers it, is there."""
    return host.run(["test", "-e", f"/proc/{pid}"], check=False).returncode == 0
