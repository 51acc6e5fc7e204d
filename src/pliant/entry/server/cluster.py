"""What the server is told about machines that may join: options, checked."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from pliant.cluster.joined.nodes import DEFAULT_ORPHAN_S
from pliant.cluster.link.messages import AGENT_PORT
from pliant.core.errors import Problem

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


def cluster_settings(given: argparse.Namespace) -> dict[str, ClusterSettings]:
    """Return what the options say, for `ServerSettings`; nothing, if no machine may join."""
    if given.cluster is None:
        return {}
    settings = ClusterSettings(
        ray="" if given.cluster == _AGENTS else given.cluster.removeprefix(_RAY),
        port=given.agent_port,
        interface=given.interface,
        orphan_s=given.orphan_s,
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
