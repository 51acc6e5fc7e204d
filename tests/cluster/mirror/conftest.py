"""A server's keeper of files over real links, and machines that ask it; all on this one, with folders of their own."""

import asyncio
import secrets
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pliant.cluster.joined.admission import HubSettings
from pliant.cluster.joined.hub import NodeHub
from pliant.cluster.joined.nodes import ClusterOfNodes
from pliant.cluster.link.authority import open_authority
from pliant.cluster.link.dial import ServerHost, join
from pliant.cluster.link.identity import NodeIdentity
from pliant.cluster.link.messages import Join, NodeRules
from pliant.cluster.link.versions import versions
from pliant.cluster.mirror.bringing import Bringer, Tree
from pliant.cluster.mirror.connection import FileConnection, FileServer
from pliant.cluster.mirror.grants import ticket_of
from pliant.cluster.mirror.keeper import FileKeeper
from pliant.cluster.mirror.messages import Claim
from pliant.cluster.mirror.sending import SentTree
from pliant.control.requests.joining import Joining
from pliant.core.job import TaskId
from pliant.core.joining import parse_join_token
from pliant.entry.server.rooms.machines import PoolAdmission
from pliant.files.untrusted.path import UntrustedPath
from pliant.sim.registry import MemoryRegistry

SECRET = b"s" * 32
TASK = TaskId("job-1.1")


@dataclass(kw_only=True)
class Keeper:
    """A server that hands out and takes in files, and nothing else."""

    root: Path
    port: int = 0
    living: dict[tuple[str, str], str] = field(default_factory=dict)
    """The job of each task that lives on a machine."""

    def __post_init__(self) -> None:
        self.home = self.root / "server" / "home"
        self.data = self.root / "server" / "data"
        for folder in (self.home / "address", self.data):
            folder.mkdir(parents=True)
        self.files = FileKeeper(
            home=self.home,
            data_root=self.data,
            secret=SECRET,
            job_of=lambda node, task: self.living.get((node, task)),
        )
        self.joining = Joining(registry=MemoryRegistry(), now=time.time, token_hex=secrets.token_hex)
        self.authority = open_authority(self.root / "tls", now=time.time())
        self.hub: NodeHub | None = None
        self.begin()

    def begin(self) -> None:
        sock = socket.create_server(("127.0.0.1", self.port))
        self.port = sock.getsockname()[1]
        self.hub = NodeHub(
            sock,
            self.authority.server_context(),
            ClusterOfNodes(None),
            PoolAdmission(self.authority, self.joining, time.time),
            HubSettings(versions=versions(), rules_of=lambda _name: NodeRules(home=str(self.home), probe="p")),
            self.files,
        )
        self.hub.start()

    def stop(self) -> None:
        if self.hub is not None:
            self.hub.close()
        self.hub = None

    def job(self, job_id: str = "job-1", **files: str) -> Path:
        """Make the folders of a job, with these files of code."""
        job = self.home / "jobs" / job_id
        for folder in ("code", "result", "state"):
            (job / folder).mkdir(parents=True)
        for name, content in files.items():
            (job / "code" / f"{name}.py").write_text(content)
        return job

    def machine(self, name: str = "b") -> "Machine":
        """Return a machine that has joined, on which a task of job-1 lives."""
        self.living[name, TASK] = "job-1"
        machine = Machine(keeper=self, name=name)
        made = self.joining.make_token("ada", machine="", valid_s=60.0, max_uses=1, pin=self.authority.pin)
        token_id, secret, pin = parse_join_token(made.text)
        asked = Join(token_id=token_id, secret=secret, name=name, request=machine.identity.make_request(name))
        asyncio.run(join(machine.address, machine.identity, asked, pin))
        return machine


@dataclass(kw_only=True)
class Machine:
    """A machine that sees none of the server's files: it has what it has at other paths here, to be told apart."""

    keeper: Keeper
    name: str
    port: int = 0
    """Of a cable to the server; 0: there is none."""
    connections: list[FileConnection] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.root = self.keeper.root / self.name
        self.identity = NodeIdentity(self.root / "identity")

    @property
    def address(self) -> ServerHost:
        return ServerHost(host="127.0.0.1", port=self.port or self.keeper.port)

    @property
    def server(self) -> FileServer:
        return FileServer(servers=lambda: [self.address], identity=self.identity, versions=versions())

    @property
    def home(self) -> Path:
        """Where it has its copies."""
        return self.root / "home"

    def bringer(self) -> Bringer:
        return Bringer(home=self.home, data_root=self.root / "data", shared=())

    def tree(self, path: Path, *, is_own: bool = False) -> Tree:
        """Return how a folder of the server's state folder is brought: as one of a job's, or as the server's own."""
        inside = path.relative_to(self.keeper.home)
        if is_own:
            place = UntrustedPath(self.home, inside.as_posix())
            return Tree(path=str(path), place=place, is_own=True, keeps_owner=False, is_made_equal=True)
        job, *parts = inside.parts[1:]
        place = UntrustedPath(self.home / "jobs" / job, "/".join(parts))
        return Tree(path=str(path), place=place, is_own=False, keeps_owner=False, is_made_equal=True)

    def sent(self, name: str, job_id: str = "job-1") -> SentTree:
        """Return one of the folders that a job's tasks write to here, made."""
        place = UntrustedPath(self.home / "jobs" / job_id, name)
        (place.root / place.inside).mkdir(parents=True, exist_ok=True)
        return SentTree(path=str(self.keeper.home / "jobs" / job_id / name), place=place)

    def connect(self, *paths: Path, task: str = TASK) -> FileConnection:
        """Connect, and claim a task whose order names these paths."""
        connection = self.server.connect()
        self.connections.append(connection)
        said = tuple(map(str, paths))
        connection.claim(Claim(task_id=task, paths=said, ticket=ticket_of(SECRET, self.name, task, said)))
        return connection


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    made = Keeper(root=tmp_path)
    yield made
    made.stop()


@pytest.fixture
def machine(keeper: Keeper) -> Iterator[Machine]:
    made = keeper.machine()
    yield made
    for connection in made.connections:
        connection.close()
