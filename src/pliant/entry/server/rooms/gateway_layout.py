"""Which gateways a server has: some on its own machine, and as many on each machine that it was told to serve on.

Numbers go on over machines, in the order in which they were named. Example, of `--serve-processes 2 --serve-on gpu1
--serve-on gpu2`, six in all:

    the server's own    local, local-1        which the server starts
    gpu1                gpu1-2, gpu1-3        which the agent there starts
    gpu2                gpu2-4, gpu2-5

Where the server's own machine is named, its agent keeps the gateways there as well, by its own numbers, so that they
stay whichever server leads; those that the server would start are not there then.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pliant.api.serving_link import gateway_key
from pliant.cluster.link.messages import GatewayRules
from pliant.core.errors import InvalidInput
from pliant.core.joining import JoinedMachine
from pliant.entry.server.rooms.own_agent import own_machine_name
from pliant.entry.server.settings import ServerSettings
from pliant.serve.gateway.server_link import gateway_name
from pliant.server.gateways import KnownGateway


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayLayout:
    """Gateways by machine."""

    num_processes: int
    """On each."""
    machines: tuple[str, ...] = ()
    """Besides the server's own, unless that is named, too."""
    own_name: str = ""
    """Of the server's own machine in the pool; empty: none joins."""
    port: int
    """Of HTTP, on each machine."""
    grpc_port: int

    @property
    def num(self) -> int:
        """All gateways that there may be."""
        return self.num_processes * (1 + len(self.machines))

    @property
    def serves_here(self) -> bool:
        """Whether the server starts gateways itself; else the agent of its machine does."""
        return self.own_name not in self.machines

    def first(self, machine: str) -> int:
        """Return the number of the first gateway of a machine that was named."""
        return self.num_processes * (1 + self.machines.index(machine))

    def own(self, secret: bytes) -> Mapping[str, KnownGateway]:
        """Return those that the server starts, by the names that they connect with; `secret` is the server's."""
        numbers = range(self.num_processes) if self.serves_here else ()
        return {gateway_name(number): KnownGateway(number=number, key=gateway_key(secret)) for number in numbers}

    def find_other(
        self, name: str, secret: bytes, joined: Callable[[str], JoinedMachine | None]
    ) -> KnownGateway | None:
        """Return the gateway of another machine that connects with a name; None: there is none, or no such machine.

        Args:
            name: with which it connects.
            secret: the server's.
            joined: returns a machine that belongs to the pool now.
        """
        for machine in self.machines:
            for number in range(self.first(machine), self.first(machine) + self.num_processes):
                if name == gateway_name(number, machine) and (found := joined(machine)) is not None:
                    key = gateway_key(secret, machine, found.fingerprint)
                    return KnownGateway(number=number, machine=machine, key=key)
        return None

    def rules(self, machine: JoinedMachine, secret: bytes) -> GatewayRules:
        """Return what the agent of a machine that was named is told of its gateways."""
        return GatewayRules(
            key=gateway_key(secret, machine.name, machine.fingerprint),
            first=self.first(machine.name),
            of=self.num,
            num_processes=self.num_processes,
            port=self.port,
            grpc_port=self.grpc_port,
        )


def gateway_layout(settings: ServerSettings) -> GatewayLayout:
    """Return which gateways a server has.

    Raises:
        InvalidInput: its own machine is to serve by an agent that it does not have.
    """
    cluster = settings.cluster
    layout = GatewayLayout(
        num_processes=settings.serve_processes,
        machines=() if cluster is None else cluster.serve_on,
        own_name="" if cluster is None else cluster.machine_name or own_machine_name(),
        port=settings.serve_port,
        grpc_port=settings.serve_grpc_port,
    )
    if not layout.serves_here and settings.num_slots == 0:
        message = (
            f"{layout.own_name!r} is the server's own machine, where no agent is started with --slots 0; leave it out: "
            f"the server itself answers requests there"
        )
        raise InvalidInput.at("--serve-on", message)
    return layout
