"""What the server is told about machines that may join: options, checked."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pliant.cluster.joined.nodes import DEFAULT_ORPHAN_S
from pliant.cluster.link.messages import AGENT_PORT
from pliant.core.errors import Problem

_ORPHAN_S: Final = (5.0, 86_400.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """How other machines join."""

    port: int
    """Where their agents connect; 0 takes any free one."""
    interface: str
    """Where tasks of other machines reach this machine's; see `cluster.agent.interface`."""
    orphan_s: float
    """So long an agent that reaches no server lets its tasks go on."""


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    cluster_help = "let other machines join, by their agents (`pliant agent --join`); needs TLS and a --host they reach"
    parser.add_argument("--cluster", choices=["agents"], help=cluster_help)
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
    settings = ClusterSettings(port=given.agent_port, interface=given.interface, orphan_s=given.orphan_s)
    return {"cluster": settings}


def cluster_problems(given: argparse.Namespace) -> Iterator[Problem]:
    """Yield what is wrong with the options."""
    if given.cluster is not None and not given.tls and given.tls_cert is None:
        message = (
            "machines join over TLS only; give --tls as well (or --tls-cert and --tls-key), and a --host they reach"
        )
        yield Problem(field="--cluster", message=message)
    if not 0 <= given.agent_port <= 65_535:
        yield Problem(field="--agent-port", message=f"{given.agent_port} is out of range; give 0 to 65535")
    least, most = _ORPHAN_S
    if not least <= given.orphan_s <= most:
        message = f"{given.orphan_s:g} is out of range; give {least:g} to {most:g} seconds"
        yield Problem(field="--orphan-s", message=message)
