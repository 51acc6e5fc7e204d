"""The room of machines that have joined: their adapters, where their agents connect, and who may be one of them.

The server's own machine is one of them, by the agent that the server starts, or Ray does.
"""

import hmac
import json
import secrets
import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pliant.cluster.agent.interface import address_of
from pliant.cluster.agent.settings import AgentSettings
from pliant.cluster.joined.admission import HubSettings
from pliant.cluster.joined.hub import NodeHub
from pliant.cluster.joined.nodes import ClusterOfNodes
from pliant.cluster.launcher import LaunchPlan
from pliant.cluster.link.authority import FOLDER, Authority, fingerprint, name_in, open_authority
from pliant.cluster.link.messages import Join, Joined, NodeRules
from pliant.cluster.link.versions import versions
from pliant.cluster.mirror.keeper import FileKeeper
from pliant.cluster.node import KnownNode, NodeCluster
from pliant.cluster.ray.messages import BeginRay
from pliant.control.requests.autoscaling import AutoscaledPool
from pliant.control.requests.joining import Joining, JoiningRoom
from pliant.core.errors import Conflict, Forbidden, InvalidInput, Unavailable
from pliant.core.job import NodeId, Task
from pliant.core.joining import JoinedMachine
from pliant.core.plan import NodeView
from pliant.core.ports import LiveTask, Store
from pliant.entry.clock import SystemClock
from pliant.entry.own_environment import own_platform
from pliant.entry.own_machine import AGENTS_FILE, shared_probe
from pliant.entry.server.home import Home
from pliant.entry.server.listener import Listener
from pliant.entry.server.rooms.datasets import DATA
from pliant.entry.server.rooms.gateway_layout import gateway_layout
from pliant.entry.server.rooms.own_agent import OWN, OwnAgent, short_token
from pliant.entry.server.rooms.ray import RAY_LOG, RayRoom
from pliant.entry.server.rooms.ray_machines import RAY, RayMachines, resources_of
from pliant.entry.server.settings import ServerSettings, is_everywhere
from pliant.files.folder import write_whole
from pliant.files.machine_folder import machine_folder
from pliant.policy.autoscale.machines import MachineKind

_NUM_POOL_DIGITS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinesRoom:
    """What a server that takes machines has for it."""

    nodes: ClusterOfNodes
    hub: NodeHub
    keeper: FileKeeper
    joining: JoiningRoom
    announcement: Path
    own: OwnAgent | None
    """None: none is started on the server's own machine, or Ray does."""
    own_name: str
    ray: RayRoom | None
    """None: agents are not started on nodes of Ray's."""
    kinds: Sequence[MachineKind]
    """Of which Ray's autoscaler may be asked for machines."""

    def start(self, pool: AutoscaledPool) -> None:
        """Let agents connect; `pool` is what an autoscaler sees of it."""
        self.hub.start()
        if self.own is not None:
            self.own.start(lambda name: pool.machines.remove(name, OWN))
        if self.ray is not None:
            self.ray.start(RayMachines(pool, self.kinds))

    def close(self) -> None:
        """Hang up; agents wait for the next server."""
        if self.own is not None:
            self.own.close()
        if self.ray is not None:
            self.ray.close()
        self.announcement.unlink(missing_ok=True)
        self.hub.close()


def open_machines(
    settings: ServerSettings,
    agent: AgentSettings,
    own_tasks: NodeCluster | None,
    home: Home,
    listener: Listener,
    store: Store,
    *,
    is_sure: Callable[[], bool],
) -> MachinesRoom:
    """Open what is needed, and listen.

    Args:
        settings: of a server that machines may join.
        agent: of the server's own machine, whose rules hold for all.
        own_tasks: see `ClusterOfNodes`.
        home: the state folder.
        listener: of people; agents connect to the same address.
        store: keeps tokens and machines, and knows which tasks have not ended.
        is_sure: tells whether this server leads, for sure.

    Raises:
        Conflict: something listens at the agents' port.
    """
    assert settings.cluster is not None, "whoever has none has no such room"
    clock = SystemClock()
    joining = Joining(registry=store.registry, now=clock.now, token_hex=secrets.token_hex)
    authority = open_authority(home.path / FOLDER, now=clock.now())
    nodes = ClusterOfNodes(
        own_tasks,
        _known(joining.all(), store.tasks(live=True)),
        lease_s=settings.lease_s,
        orphan_s=settings.cluster.orphan_s,
    )
    sock = _listen(settings.host, settings.cluster.port)
    host = listener.machines_host or settings.host
    address = f"{f'[{host}]' if ':' in host else host}:{sock.getsockname()[1]}"
    rules = _rules(agent, home, settings)
    announcement = _announce(rules, address)
    hub = NodeHub(
        sock,
        authority.server_context(),
        nodes,
        PoolAdmission(authority, joining, clock.now),
        HubSettings(versions=versions(), rules_of=_rules_of(rules, settings, home, joining), may_renew=is_sure),
        keeper := _keeper(rules, home, nodes),
    )
    room = _joining_room(joining, authority, address, nodes, hub)
    own_name = gateway_layout(settings).own_name
    return MachinesRoom(
        nodes=nodes,
        hub=hub,
        keeper=keeper,
        joining=room,
        announcement=announcement,
        own=_own(settings, room, home, listener),
        own_name=own_name,
        ray=_ray(settings, room, home, listener) if settings.cluster.ray else None,
        kinds=settings.cluster.kinds,
    )


def _joining_room(
    joining: Joining, authority: Authority, address: str, nodes: ClusterOfNodes, hub: NodeHub
) -> JoiningRoom:
    """Return what requests need to know of machines that join."""

    def forget(name: str) -> None:
        hub.hang_up(NodeId(name))
        nodes.forget(NodeId(name))

    return JoiningRoom(
        joining=joining,
        pin=lambda: authority.pin,
        address=lambda: address,
        is_here=lambda name: nodes.is_here(NodeId(name)),
        forget=forget,
    )


def _own(settings: ServerSettings, room: JoiningRoom, home: Home, listener: Listener) -> OwnAgent | None:
    """Return who keeps the agent of the server's own machine running; None: it has none, or Ray does."""
    assert settings.cluster is not None, "machines may join"
    if settings.num_slots == 0 or settings.cluster.ray:
        return None
    pool, cluster, name = _pool_of(home), settings.cluster, gateway_layout(settings).own_name
    options = (*own_options(settings, listener), "--patience-s", str(cluster.orphan_s))
    plan = LaunchPlan(machine=name, pool=pool, server=room.address(), options=options)
    return OwnAgent(plan, cluster.agent_dir or machine_folder(f"own-{pool}-{name}"), room)


def _ray(settings: ServerSettings, room: JoiningRoom, home: Home, listener: Listener) -> RayRoom:
    """Return who has agents started on the nodes of a Ray cluster, the server's own among them."""
    assert settings.cluster is not None, "machines may join"
    begin = BeginRay(
        address=settings.cluster.ray,
        pool=_pool_of(home),
        server=room.address(),
        own=None if settings.num_slots == 0 else own_options(settings, listener),
        resources=resources_of(settings.cluster.kinds),
    )
    return RayRoom(begin, lambda machine: short_token(room, RAY, machine), home.path / RAY_LOG)


def own_options(settings: ServerSettings, listener: Listener) -> tuple[str, ...]:
    """Return with which options the agent of the server's own machine is started, besides those of all.

    If it keeps gateways, they are where the server's would be, with its name and its certificate.
    """
    assert settings.cluster is not None, "machines may join"
    slots = () if settings.num_slots is None else ("--slots", str(settings.num_slots))
    labels = tuple(word for name, value in settings.labels.items() for word in ("--label", f"{name}={value}"))
    return (*slots, *labels, "--interface", settings.cluster.interface, *_serving_options(settings, listener))


def _serving_options(settings: ServerSettings, listener: Listener) -> tuple[str, ...]:
    if gateway_layout(settings).serves_here or listener.tls is None:
        return ()
    pair = ("--serve-certificate", str(listener.tls.certificate), "--serve-key", str(listener.tls.key))
    return ("--serve-host", settings.host, "--serve-name", urlsplit(listener.public_url).hostname or "", *pair)


def _pool_of(home: Home) -> str:
    """Return what tells this pool from others on the same machines."""
    return hmac.digest(home.secret, b"the pool's name", "sha256").hex()[:_NUM_POOL_DIGITS]


class PoolAdmission:
    """Who may be a machine of this pool; implements `pliant.cluster.joined.admission.NodeAdmission`."""

    def __init__(self, authority: Authority, joining: Joining, now: Callable[[], float]) -> None:
        self._authority = authority
        self._joining = joining
        self._now = now

    def join(self, join: Join, *, is_living: Callable[[NodeId], bool]) -> Joined:
        self._joining.check(join.token_id, join.secret, join.name)  # a stranger learns nothing, and has nothing signed
        certificate = self._sign(join.request, join.name)
        key, known = fingerprint(certificate), self._joining.get(join.name)
        if known is not None and known.fingerprint != key:
            state = "is there now" if is_living(NodeId(join.name)) else "has joined before, and may still have tasks"
            raise Conflict(
                f"a machine called {join.name} {state}; give this one another --name, or remove that one first with "
                f"`pliant machines remove {join.name}`"
            )
        token = self._joining.admit(join.token_id, join.secret, join.name)
        self._joining.note(
            JoinedMachine(name=join.name, owner=token.owner, fingerprint=key, joined_at=self._now())
            if known is None
            else known
        )
        return Joined(certificate=certificate, authority=self._authority.ca_pem)

    def check(self, certificate: bytes) -> NodeId:
        try:
            name = name_in(certificate)
        except ValueError as error:
            raise Forbidden(str(error)) from error
        self._joining.require(name, fingerprint(certificate))
        return NodeId(name)

    def renew(self, name: NodeId, request: str) -> Joined:
        certificate = self._sign(request, name)
        self._joining.require(name, fingerprint(certificate))
        return Joined(certificate=certificate, authority=self._authority.ca_pem)

    def note(self, node: NodeView) -> None:
        if (known := self._joining.get(node.id)) is not None:
            self._joining.note(
                replace(
                    known,
                    slots=node.slots,
                    labels=node.labels,
                    num_gpus=node.num_gpus,
                    num_cpus=node.num_cpus,
                    walls=node.walls,
                    missing_walls=node.missing_walls,
                    has_copies=node.has_copies,
                )
            )

    def _sign(self, request: str, name: str) -> str:
        try:
            return self._authority.sign(request, name, now=self._now())
        except ValueError as error:
            raise InvalidInput.at("name", str(error)) from error


def _known(machines: Iterable[JoinedMachine], tasks: Iterable[Task]) -> tuple[KnownNode, ...]:
    by_node: dict[NodeId, list[LiveTask]] = {}
    for task in tasks:
        live = LiveTask(task_id=task.id, node_id=task.node_id, slots=task.slots, pid=task.pid)
        by_node.setdefault(task.node_id, []).append(live)
    return tuple(
        KnownNode(node=machine.node, tasks=tuple(by_node.get(NodeId(machine.name), ()))) for machine in machines
    )


def _rules(agent: AgentSettings, home: Home, settings: ServerSettings) -> NodeRules:
    return NodeRules(
        home=str(home.path),
        probe=hmac.digest(home.secret, b"the same folder", "sha256").hex(),
        isolation=agent.isolation,
        uid=agent.uid,
        may_read=agent.may_read,
        may_write=agent.may_write,
        max_disk_bytes=agent.max_disk_bytes,
        max_log_bytes=agent.max_log_bytes,
        preload=agent.preload,
        pass_env=settings.pass_env,
        platform=own_platform(),
        data_root=str(settings.data_root or home.path / DATA),
        shared=tuple(map(str, settings.cluster.shared if settings.cluster is not None else ())),
    )


def _rules_of(
    rules: NodeRules, settings: ServerSettings, home: Home, joining: Joining
) -> Callable[[NodeId], NodeRules]:
    """Return what tells each machine the rules of all, and which gateways it has."""
    layout = gateway_layout(settings)

    def rules_of(name: NodeId) -> NodeRules:
        if name not in layout.machines or (machine := joining.get(name)) is None:
            return rules
        return replace(rules, gateway=layout.rules(machine, home.secret))

    return rules_of


def _keeper(rules: NodeRules, home: Home, nodes: ClusterOfNodes) -> FileKeeper:
    """Return who hands out files to machines that do not see the state folder, by tickets that orders have."""
    keeper = FileKeeper(home=home.path, data_root=Path(rules.data_root), secret=home.secret, job_of=nodes.job_of)
    nodes.sign = keeper.ticket
    return keeper


def _announce(rules: NodeRules, address: str) -> Path:
    """Write where agents find the server, and into folders that all must see by what they know them.

    Returns:
        the file that says where.

    Raises:
        Unavailable: a folder that is to be shared cannot be written.
    """
    announcement = Path(rules.home) / AGENTS_FILE
    write_whole(announcement, json.dumps({"servers": [address], "probe": rules.probe}).encode(), mode=0o644)
    for folder in map(Path, rules.shared):
        try:
            write_whole(shared_probe(folder, rules.probe), json.dumps({"probe": rules.probe}).encode(), mode=0o644)
        except OSError as error:
            raise Unavailable(
                f"nothing can be written in {folder}, which is to be shared by all machines: {error.strerror}; see "
                f"that it is mounted, or leave --shared out"
            ) from error
    return announcement


def own_address(settings: ServerSettings, listener: Listener) -> str:
    """Return the address that tasks of other machines reach this machine's at; loopback, if there are none."""
    if settings.cluster is None:
        return "127.0.0.1"
    if not is_everywhere(settings.host):
        return settings.host
    return address_of(settings.cluster.interface, listener.machines_host or settings.host)


def _listen(host: str, port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise Unavailable(
            f"agents of other machines cannot connect to port {port} of {host}: {error.strerror}; give another "
            f"--agent-port"
        ) from error
    return sock
