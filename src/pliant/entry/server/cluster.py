"""What the server is told about machines that may join: options, checked."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from pliant.cluster.joined.nodes import DEFAULT_ORPHAN_S
from pliant.cluster.link.messages import AGENT_PORT
from pliant.core.errors import Problem
from pliant.core.joining import machine_name_fault
from pliant.entry.server.machine_kinds import add_machine_kinds, machine_kind_problems, machine_kinds
from pliant.policy.autoscale.machines import MachineKind

_AGENTS: Final = "agents"
_AUTO: Final = "auto"
_RAY: Final = "ray://"
_ORPHAN_S: Final = (5.0, 86_400.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """How other machines join."""

    ray: str = ""
    """Ray's head, HOST:PORT: agents are started on its nodes. `auto`: of the Ray on this machine; empty: of none."""
    port: int
    """Where their agents connect; 0 takes any free one."""
    interface: str
    """Where tasks of other machines reach this machine's; see `cluster.agent.interface`."""
    orphan_s: float
    """So long an agent that reaches no server lets its tasks go on."""
    machine_name: str = ""
    """Of the server's own machine in the pool; empty: its host name."""
    shared: tuple[Path, ...] = ()
    """Folders that every machine must see, at the same paths."""
    agent_dir: Path | None = None
    """The folder of the server's own machine alone for its agent; None: the usual one."""
    encrypt_state: bool = False
    """State that tasks of a training on different machines send each other is encrypted."""
    kinds: tuple[MachineKind, ...] = ()
    """Of which Ray's autoscaler may be asked for machines."""
    serve_on: tuple[str, ...] = ()
    """Machines whose agents keep gateways of endpoints."""


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    cluster_help = (
        "let other machines join, by their agents (`pliant agent --join`), which are started on the nodes of a Ray "
        "cluster if one is named; needs TLS and a --host they reach"
    )
    parser.add_argument("--cluster", metavar="agents|auto|ray://HOST:PORT", help=cluster_help)
    port_help = "where agents of other machines connect; 0 takes any free one (%(default)s)"
    parser.add_argument("--agent-port", type=int, default=AGENT_PORT, metavar="N", help=port_help)
    interface_help = "where tasks of other machines reach this one's: an interface, an address, a network (%(default)s)"
    parser.add_argument("--interface", default="auto", metavar="NAME", help=interface_help)
    orphan_help = "an agent that reaches no server ends its tasks after so many seconds (%(default)s)"
    parser.add_argument("--orphan-s", type=float, default=DEFAULT_ORPHAN_S, metavar="SECONDS", help=orphan_help)
    name_help = "of this machine in the pool; left out: its host name"
    parser.add_argument("--machine-name", metavar="NAME", help=name_help)
    dir_help = "folder of this machine alone for its agent; left out: below /var/lib/pliant, or your home"
    parser.add_argument("--agent-dir", metavar="DIR", help=dir_help)
    shared_help = (
        "a folder that all machines see at the same path; one that does not see it is not taken, and nothing in it is "
        "copied; more than once for several"
    )
    parser.add_argument("--shared", metavar="DIR", action="append", default=[], help=shared_help)
    encrypt_help = "encrypt the state that tasks of a training on different machines send each other"
    parser.add_argument("--encrypt-state", action="store_true", help=encrypt_help)
    serve_help = "answer requests to endpoints on this machine of the pool as well; more than once for several"
    parser.add_argument("--serve-on", metavar="MACHINE", action="append", default=[], help=serve_help)
    add_machine_kinds(parser)


def cluster_settings(given: argparse.Namespace) -> dict[str, ClusterSettings]:
    """Return what the options say, for `ServerSettings`; nothing, if no machine may join."""
    if given.cluster is None:
        return {}
    settings = ClusterSettings(
        ray="" if given.cluster == _AGENTS else given.cluster.removeprefix(_RAY),
        port=given.agent_port,
        interface=given.interface,
        orphan_s=given.orphan_s,
        machine_name=given.machine_name or "",
        agent_dir=None if given.agent_dir is None else Path(given.agent_dir).expanduser().absolute(),
        shared=tuple(Path(folder).expanduser().absolute() for folder in given.shared),
        encrypt_state=given.encrypt_state,
        kinds=machine_kinds(given),
        serve_on=tuple(given.serve_on),
    )
    return {"cluster": settings}


def cluster_problems(given: argparse.Namespace) -> Iterator[Problem]:
    """Yield what is wrong with the options."""
    if given.cluster is not None and not given.tls and given.tls_cert is None:
        message = (
            "machines join over TLS only; give --tls as well (or --tls-cert and --tls-key), and a --host they reach"
        )
        yield Problem(field="--cluster", message=message)
    if given.cluster not in (None, _AGENTS, _AUTO):
        yield from _ray_problems(given.cluster)
    elif given.cluster == _AUTO:
        yield from _missing_ray()
    if not 0 <= given.agent_port <= 65_535:
        yield Problem(field="--agent-port", message=f"{given.agent_port} is out of range; give 0 to 65535")
    least, most = _ORPHAN_S
    if not least <= given.orphan_s <= most:
        message = f"{given.orphan_s:g} is out of range; give {least:g} to {most:g} seconds"
        yield Problem(field="--orphan-s", message=message)
    yield from _shared_problems(given)
    if given.encrypt_state and given.cluster is None:
        message = "no other machine may join, and between tasks of one nothing is sent over a network; leave it out"
        yield Problem(field="--encrypt-state", message=message)
    yield from _own_problems(given)
    yield from _serve_on_problems(given)
    if given.ray_machines and given.cluster in (None, _AGENTS):
        message = "it is for the machines of a Ray cluster; give --cluster auto or --cluster ray://HOST:PORT as well"
        yield Problem(field="--ray-machines", message=message)
    yield from machine_kind_problems(given)


def _shared_problems(given: argparse.Namespace) -> Iterator[Problem]:
    """Yield what is wrong with folders that all machines are to see."""
    if given.shared and given.cluster is None:
        yield Problem(field="--shared", message="no other machine may join; give --cluster as well, or leave it out")
    for folder in given.shared:
        if not Path(folder).expanduser().is_dir():
            yield Problem(field="--shared", message=f"{folder!r:.200} is no folder; mount it, or make it")


def _serve_on_problems(given: argparse.Namespace) -> Iterator[Problem]:
    """Yield what is wrong with the machines that are to answer requests to endpoints."""
    field = "--serve-on"
    if given.serve_on and given.cluster is None:
        yield Problem(field=field, message="no other machine may join; give --cluster as well, or leave it out")
    for name in given.serve_on:
        if fault := machine_name_fault(name):
            yield Problem(field=field, message=fault)
    if len(set(given.serve_on)) < len(given.serve_on):
        yield Problem(field=field, message=f"it names a machine twice: {', '.join(given.serve_on):.200}")


def _own_problems(given: argparse.Namespace) -> Iterator[Problem]:
    """Yield what is wrong with what is said of the server's own machine."""
    for name, value in (("--machine-name", given.machine_name), ("--agent-dir", given.agent_dir)):
        if value is not None and given.cluster != _AGENTS:
            why = "Ray starts the agent, under the name of its host" if given.cluster else "no other machine may join"
            yield Problem(field=name, message=f"it is for --cluster agents, and here {why}; leave it out")
    if given.machine_name is not None and (fault := machine_name_fault(given.machine_name)):
        yield Problem(field="--machine-name", message=fault)


def _ray_problems(cluster: str) -> Iterator[Problem]:
    host, colon, port = cluster.removeprefix(_RAY).rpartition(":")
    if not (
        cluster.startswith(_RAY) and colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 65_536
    ):
        message = (
            f"{cluster!r:.80} is no kind of cluster; give agents, auto (the Ray that runs on this machine) or "
            f"ray://HOST:PORT, the address of Ray's head, whose port is 6379 if nobody chose another one"
        )
        yield Problem(field="--cluster", message=message)
    else:
        yield from _missing_ray()


def _missing_ray() -> Iterator[Problem]:
    if find_spec("ray") is None:
        message = "Ray is not installed; `pip install 'pliant[ray]'` here and on the nodes of the cluster"
        yield Problem(field="--cluster", message=message)
