"""What the server is told about machines that may join: options, checked."""

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from pliant.cluster.joined.nodes import DEFAULT_ORPHAN_S
from pliant.cluster.link.messages import AGENT_PORT
from pliant.core.duration import seconds_of
from pliant.core.errors import InvalidInput, Problem
from pliant.core.joining import MAX_SLOTS, machine_name_fault
from pliant.policy.autoscale.machines import MachineLimits

_AGENTS: Final = "agents"
_AUTO: Final = "auto"
_RAY: Final = "ray://"
_ORPHAN_S: Final = (5.0, 86_400.0)
DEFAULT_IDLE: Final = "5m"
MAX_MACHINES: Final = 1000
_IDLE_S: Final = (1.0, 30 * 86_400.0)
_RANGE: Final = re.compile(r"([0-9]{1,6})\.\.([0-9]{1,6})")


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
    limits: MachineLimits | None = None
    """How many machines Ray's autoscaler may be asked for; None: it is asked for none."""
    encrypt_state: bool = False
    """State that tasks of a training on different machines send each other is encrypted."""


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
    machines_help = "ask Ray's autoscaler for so many machines, as jobs need them; left out: for none"
    parser.add_argument("--ray-machines", metavar="MIN..MAX", help=machines_help)
    slots_help = "slots of a new one; left out: one is asked for, to see"
    parser.add_argument("--ray-slots", type=int, metavar="N", help=slots_help)
    idle_help = f"give one back that has had no task for so long, such as 90s or 10m ({DEFAULT_IDLE})"
    parser.add_argument("--ray-idle", metavar="TIME", help=idle_help)


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
        limits=None if given.ray_machines is None else _limits(given),
        encrypt_state=given.encrypt_state,
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
    yield from _scaling_problems(given)


def _shared_problems(given: argparse.Namespace) -> Iterator[Problem]:
    """Yield what is wrong with folders that all machines are to see."""
    if given.shared and given.cluster is None:
        yield Problem(field="--shared", message="no other machine may join; give --cluster as well, or leave it out")
    for folder in given.shared:
        if not Path(folder).expanduser().is_dir():
            yield Problem(field="--shared", message=f"{folder!r:.200} is no folder; mount it, or make it")


def _own_problems(given: argparse.Namespace) -> Iterator[Problem]:
    """Yield what is wrong with what is said of the server's own machine."""
    for name, value in (("--machine-name", given.machine_name), ("--agent-dir", given.agent_dir)):
        if value is not None and given.cluster != _AGENTS:
            why = "Ray starts the agent, under the name of its host" if given.cluster else "no other machine may join"
            yield Problem(field=name, message=f"it is for --cluster agents, and here {why}; leave it out")
    if given.machine_name is not None and (fault := machine_name_fault(given.machine_name)):
        yield Problem(field="--machine-name", message=fault)


def _limits(given: argparse.Namespace) -> MachineLimits:
    """Return how many machines may be asked for.

    Raises:
        InvalidInput: an option says nothing that can be understood.
    """
    found = _RANGE.fullmatch(given.ray_machines)
    if found is None or not int(found[1]) <= int(found[2]) <= MAX_MACHINES:
        message = (
            f"{given.ray_machines!r:.80} says no numbers of machines; give the least and the most, such as 0..8, "
            f"{MAX_MACHINES} at most"
        )
        raise InvalidInput.at("--ray-machines", message)
    idle_s = seconds_of(given.ray_idle or DEFAULT_IDLE, "--ray-idle")
    least_s, most_s = _IDLE_S
    if not least_s <= idle_s <= most_s:
        raise InvalidInput.at("--ray-idle", f"{given.ray_idle!r:.80} is out of range; give 1s to 30d")
    return MachineLimits(least=int(found[1]), most=int(found[2]), idle_s=idle_s, num_slots=given.ray_slots or 0)


def _scaling_problems(given: argparse.Namespace) -> Iterator[Problem]:
    if given.ray_machines is None:
        for name, value in (("--ray-slots", given.ray_slots), ("--ray-idle", given.ray_idle)):
            if value is not None:
                yield Problem(field=name, message="it is for machines of Ray's autoscaler; give --ray-machines as well")
        return
    if given.cluster in (None, _AGENTS):
        message = "it is for the machines of a Ray cluster; give --cluster auto or --cluster ray://HOST:PORT as well"
        yield Problem(field="--ray-machines", message=message)
    if given.ray_slots is not None and not 1 <= given.ray_slots <= MAX_SLOTS:
        yield Problem(field="--ray-slots", message=f"{given.ray_slots} is out of range; give 1 to {MAX_SLOTS}")
    try:
        _limits(given)
    except InvalidInput as error:
        yield from error.problems


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
