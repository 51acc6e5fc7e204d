"""A pool over real links: a hub in this process, and agents of other machines in processes of their own.

All of it is on this machine: each agent has a folder of its own, and they meet the hub over TLS, by way of a `Proxy` if
a test wants one. Knows no test.
"""

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.contracts.cluster import NUM_SLOTS
from tests.contracts.process_stage import DEADLINE_S, ENTRY, NODE, PATHS, ProcessStage, until
from tests.forks import WarmModule

from pliant.cluster import process
from pliant.cluster.agent.settings import AgentSettings
from pliant.cluster.agent.shared_memory import owner_of
from pliant.cluster.channel import AgentThread
from pliant.cluster.joined.admission import HubSettings
from pliant.cluster.joined.hub import NodeHub
from pliant.cluster.joined.nodes import ClusterOfNodes
from pliant.cluster.link.authority import Authority, open_authority
from pliant.cluster.link.messages import NodeRules, Versions
from pliant.cluster.link.versions import versions
from pliant.cluster.node import KnownNode, NodeCluster
from pliant.cluster.zygote import records
from pliant.control.requests.joining import Joining
from pliant.core.job import NodeId
from pliant.core.ports import LiveTask
from pliant.entry.own_machine import AGENTS_FILE
from pliant.entry.server.rooms.machines import PoolAdmission
from pliant.sim.registry import MemoryRegistry

OWN: Final = NodeId("local")
NUM_OWN_SLOTS: Final = 2
PROBE: Final = "the same folder"


class WallClock:
    def now(self) -> float:
        return time.time()


class Pool:
    """A hub that can end and begin again at the same port, and the agents that have joined it."""

    def __init__(self, root: Path, *, orphan_s: float = 60.0, theirs: Versions | None = None) -> None:
        """Begin; nobody has joined yet."""
        self.root = root
        self.orphan_s = orphan_s
        self.versions = versions() if theirs is None else theirs
        self.is_sure = True
        self.max_log_bytes: int | None = None
        """One of the rules for agents."""
        self.rules: dict[str, Any] = {}
        """Others that they are told, besides the usual ones."""
        self.joining = Joining(registry=MemoryRegistry(), now=time.time, token_hex=secrets.token_hex)
        self.authority: Authority = open_authority(root / "tls", now=time.time())
        self.agents: list[AgentProcess] = []
        self.port = 0
        self._hub: NodeHub | None = None
        self._nodes: ClusterOfNodes | None = None
        self.begin()

    @property
    def nodes(self) -> ClusterOfNodes:
        assert self._nodes is not None, "the server has begun"
        return self._nodes

    @property
    def hub(self) -> NodeHub:
        assert self._hub is not None, "the server has begun"
        return self._hub

    def begin(self, tasks: Mapping[NodeId, tuple[LiveTask, ...]] | None = None) -> None:
        """Begin, as a server does that knows these tasks to live."""
        settings = AgentSettings(
            node_id=OWN, state_dir=self.root / "own", num_slots=NUM_OWN_SLOTS, preload=(), entry=ENTRY
        )
        own = NodeCluster(AgentThread(settings, clock=WallClock(), base_env={**os.environ, "PYTHONPATH": PATHS}))
        known = [KnownNode(node=one.node, tasks=(tasks or {}).get(NodeId(one.name), ())) for one in self.joining.all()]
        self._nodes = ClusterOfNodes(own, known, orphan_s=self.orphan_s)
        sock = socket.create_server(("127.0.0.1", self.port))
        self.port = sock.getsockname()[1]
        home = self.root / "home"
        (home / AGENTS_FILE).parent.mkdir(parents=True, exist_ok=True)
        (home / AGENTS_FILE).write_text(json.dumps({"servers": [], "probe": PROBE}))
        rules = NodeRules(**{"home": str(home), "probe": PROBE, "max_log_bytes": self.max_log_bytes, **self.rules})
        self._hub = NodeHub(
            sock,
            self.authority.server_context(),
            self._nodes,
            PoolAdmission(self.authority, self.joining, time.time),
            HubSettings(
                versions=self.versions,
                rules_of=lambda _name: rules,
                may_renew=lambda: self.is_sure,
            ),
        )
        self._hub.start()

    def stop(self) -> None:
        """End the server; the agents go on."""
        if self._hub is not None and self._nodes is not None:
            self._hub.close()
            self._nodes.close()
        self._hub = None

    def token(self, *, machine: str = "", valid_s: float = 60.0, max_uses: int = 1) -> str:
        """Make a join token."""
        made = self.joining.make_token(
            "ada", machine=machine, valid_s=valid_s, max_uses=max_uses, pin=self.authority.pin
        )
        return made.text

    def add(
        self,
        name: str = NODE,
        *,
        port: int | None = None,
        num_slots: int = NUM_SLOTS,
        options: Sequence[str] = (),
    ) -> "AgentProcess":
        """Let a machine join, by way of a proxy's port or directly, and return its agent; it may not be there yet."""
        agent = AgentProcess(
            pool=self, name=NodeId(name), port=port or self.port, num_slots=num_slots, options=list(options)
        )
        self.agents.append(agent)
        agent.start()
        return agent

    def is_here(self, name: str = NODE) -> bool:
        """Tell whether a machine offers its slots."""
        return any(node.id == name and node.slots and not node.away for node in self.nodes.observe().nodes)

    def stage(self, name: str = NODE) -> ProcessStage[ClusterOfNodes]:
        """Return the stage on one of the machines, once it is there."""
        until(lambda: self.is_here(name), f"{name} is there")
        return ProcessStage(cluster=self.nodes, root=self.root / "tasks", node_id=NodeId(name))

    def end(self) -> None:
        """End everything, and see that nothing is left."""
        for agent in self.agents:
            agent.kill()
        for agent in self.agents:
            agent.clean_up()
        if self._hub is not None:
            for task in self.nodes.observe().tasks:
                if task.node_id == OWN:
                    self.nodes.kill(task.task_id)
            until(lambda: not any(t.node_id == OWN for t in self.nodes.observe().tasks), "the server's tasks are gone")
        self.stop()


@dataclass(kw_only=True)
class AgentProcess:
    """The agent of one machine: it can be killed and started again."""

    pool: Pool
    name: NodeId
    port: int
    num_slots: int = NUM_SLOTS
    token: str | None = None
    """With which it joins; None: one that is made for it."""
    options: list[str] = field(default_factory=list)
    is_cold: bool = False
    """It is a process of its own that can become another one."""
    processes: list[WarmModule | subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.pool.root / f"machine-{self.name}"

    @property
    def out(self) -> Path:
        """What it logs."""
        return self.pool.root / f"{self.name}.log"

    @property
    def process(self) -> WarmModule | subprocess.Popen[bytes]:
        return self.processes[-1]

    def start(self) -> None:
        """Start it, for the first time or again."""
        token = self.pool.root / f"{self.name}.token"
        token.write_text(self.pool.token() if self.token is None else self.token)
        options: dict[str, Any] = {
            "--join": f"127.0.0.1:{self.port}",
            "--token-file": token,
            "--name": self.name,
            "--state-dir": self.folder,
            "--slots": self.num_slots,
            "--entry": ENTRY,
        }
        arguments = [str(part) for pair in options.items() for part in pair]
        env = {**os.environ, "PYTHONPATH": PATHS}
        command = ["pliant.entry.agent", *arguments, "--no-preload", *self.options]
        if not self.is_cold:
            self.processes.append(WarmModule(command, env=env, out=self.out))
            return
        with self.out.open("ab") as out:
            cold = [sys.executable, "-P", "-m", *command]
            self.processes.append(subprocess.Popen(cold, env=env, stdout=out, stderr=out, start_new_session=True))

    def kill(self) -> None:
        """Kill it; its tasks go on."""
        for one in self.processes:
            one.send_signal(signal.SIGCONT)
            one.kill()
            one.wait(DEADLINE_S)

    def log(self) -> str:
        return self.out.read_text() if self.out.exists() else ""

    def clean_up(self) -> None:
        """End what its tasks are, and remove what it has in shared memory."""
        pids = [(one.pid, one.stamp) for one in records.read_all(self.folder)] if self.folder.exists() else []
        for pid, stamp in pids:
            if pid is not None and process.stamp(pid) == stamp:
                os.kill(pid, signal.SIGKILL)
        until(lambda: all(pid is None or process.stamp(pid) != stamp for pid, stamp in pids), "its tasks are gone")
        shared = Path(f"/dev/shm/pliant-{os.getuid()}-{self.name}")  # also of agents that other suites have now
        shutil.rmtree(shared / owner_of(self.folder.absolute()), ignore_errors=True)
        with suppress(OSError):
            shared.rmdir()
