"""What the agent of another machine and its server say to each other about their link. Shapes only, no logic.

A connection begins in one of three ways. A machine that has no certificate yet says `Join` and gets `Joined`, and that
is all; it connects again. One that has says `Here`, and gets `Welcome`: from then on the messages of
`pliant.cluster.agent.messages` pass in both directions, and `Renew` and `Renewed` between them. One that wants files
says `Carry` on a connection of its own, and gets `Carrying`. Whatever is not granted is answered by `JoinRefused`, and
the connection ends.

    agent                                        server
    Here(name, channel="", received=0)  ──────▶
                                        ◀──────  Welcome(channel="9f…", first=1)
                                        ◀──────  Introduce(session=1)               numbered 1
    NodeFound … UpToDate                ──────▶
    Renew(number=1, received=1)         ──────▶  forgets what it has kept for the agent up to number 1
                                        ◀──────  Renewed(number=1)

What the server sends after `Welcome`, but for `Renewed`, is numbered from `first` on, and kept until the agent has
received it. On the next connection the agent says how much it has received of the same `channel`, and gets the rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pliant.cluster.agent.messages import FROM_AGENT, TO_AGENT, FromAgent, ToAgent
from pliant.cluster.json_lines import by_kind
from pliant.core.confinement import IsolationMode
from pliant.core.platform import EnvironmentPlatform

AGENT_PORT: Final = 7314
"""Where servers listen for agents, unless they are told another one."""
PROTOCOL: Final = 4
"""Of the link; both ends have the same."""
MAX_GREETING_BYTES: Final = 64 << 10
"""Of the first line of a connection, which anybody can send."""

# from the agent


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """Take this machine in: it has a token, and asks for a certificate for its own key."""

    token_id: str
    secret: str = field(repr=False)
    name: str
    request: str
    """PEM of a certificate signing request."""
    kind: Literal["join"] = "join"


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """What must be the same on all machines of a pool."""

    pliant: str
    python: str
    """Such as 3.11."""
    torch: str
    """Without what says how it was built; empty: there is none."""
    protocol: int = PROTOCOL

    def difference(self, other: "Versions") -> str:
        """Return how another machine's differ from these, in words; empty: they do not."""
        here = {"Pliant": self.pliant, "Python": self.python, "torch": self.torch, "protocol": str(self.protocol)}
        there = {"Pliant": other.pliant, "Python": other.python, "torch": other.torch, "protocol": str(other.protocol)}
        return " and ".join(
            f"{name} {there[name] or 'none'} where the server has {here[name] or 'none'}"
            for name in here
            if here[name] != there[name]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """I am the agent of the machine that the certificate of this connection names."""

    incarnation: str
    """Of the agent's process: another one at every start, and after every boot."""
    versions: Versions
    channel: str = ""
    """Whose messages I have received last; empty: nobody's."""
    received: int = 0
    """How many of them."""
    kind: Literal["here"] = "here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Carry:
    """This connection is for files: what follows is said in the words of `pliant.cluster.mirror.messages`."""

    versions: Versions
    kind: Literal["carry"] = "carry"


@dataclass(frozen=True, slots=True, kw_only=True)
class Renew:
    """I live, a few times a second."""

    number: int
    received: int
    """So many numbered messages of this channel are with me."""
    kind: Literal["renew"] = "renew"


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewCertificate:
    """My certificate is past its half; here is a new request."""

    request: str
    kind: Literal["renew-certificate"] = "renew-certificate"


# from the server


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """A certificate, and the authority that has signed it, which signs the server's as well. PEM."""

    certificate: str
    authority: str
    kind: Literal["joined"] = "joined"


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRefused:
    """No."""

    reason: str
    """In words that say what to do."""
    is_final: bool
    """It makes no sense to try again without a person."""
    is_removed: bool = False
    """This machine does not belong to the pool: nobody wants its tasks. Otherwise they go on, for another agent."""
    kind: Literal["refused"] = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayRules:
    """Have gateways on this machine: processes that answer requests for endpoints."""

    key: str = field(repr=False)
    """What opens their links to the server."""
    first: int
    """The number of the first of them among all of the server; the others follow."""
    of: int
    """So many there are, on all machines."""
    num_processes: int
    """So many are here."""
    port: int
    """Where people reach them; 0: any free one."""
    grpc_port: int
    """The same for gRPC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRules:
    """How an agent keeps people's code, as the server was told at its start."""

    home: str
    """The state folder, by the path that it has on every machine."""
    probe: str
    """What stands in a file there, so that a machine sees whether it is the same folder."""
    data_root: str = ""
    """The folder that people's data may lie in."""
    shared: tuple[str, ...] = ()
    """Folders that every machine must see: nothing of them is copied."""
    isolation: IsolationMode = "auto"
    uid: int | None = None
    may_read: tuple[str, ...] = ()
    may_write: tuple[str, ...] = ()
    max_disk_bytes: int | None = None
    max_log_bytes: int | None = None
    preload: tuple[str, ...] = ()
    pass_env: tuple[str, ...] = ()
    platform: EnvironmentPlatform | None = None
    """What the server's environments are built for; None: they work on every machine."""
    gateway: GatewayRules | None = None
    """None: this machine has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """You are in."""

    channel: str
    """Another one for every server, and for every machine."""
    first: int
    """The number of the message that follows."""
    renew_s: float
    """Say `Renew` so often."""
    orphan_s: float
    """End your tasks if no `Renew` was answered for so long."""
    rules: NodeRules
    kind: Literal["welcome"] = "welcome"


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrying:
    """Ask for files."""

    kind: Literal["carrying"] = "carrying"


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed:
    """Your tasks may go on, counted from when you sent that `Renew`."""

    number: int
    kind: Literal["renewed"] = "renewed"


Greeting = Join | Here | Carry
FromNode = Greeting | Renew | RenewCertificate | FromAgent
ToNode = Joined | JoinRefused | Welcome | Carrying | Renewed | ToAgent

GREETINGS: Final[Mapping[str, type[Greeting]]] = by_kind((Join, Here, Carry))
FROM_NODE: Final[Mapping[str, type[Renew | RenewCertificate | FromAgent]]] = {
    **by_kind((Renew, RenewCertificate)),
    **FROM_AGENT,
}
TO_NODE: Final[Mapping[str, type[ToNode]]] = {**by_kind((Joined, JoinRefused, Welcome, Carrying, Renewed)), **TO_AGENT}
