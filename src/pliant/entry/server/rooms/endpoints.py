"""Endpoints when the server starts: their use cases, who keeps them as they are meant to be, and the gateway's process.

The keeper and the watch over the gateway are a thread each. A server that is killed leaves the gateway and its kernels
running; one that ends takes the gateway with it.
"""

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pliant.api.serving_link import gateway_key
from pliant.control.loop.tick import Control
from pliant.control.requests.sharing import Sharing
from pliant.core.joining import JoinedMachine
from pliant.core.ports import Clock
from pliant.core.registry import Registry
from pliant.entry.gateway_process import STATE, GatewayOptions, GatewayProcess
from pliant.entry.server.home import ADDRESS, SERVER_FILE, Home
from pliant.entry.server.listener import Listener
from pliant.entry.server.rooms.gateway_layout import gateway_layout
from pliant.entry.server.settings import ServerSettings
from pliant.isolation.variables import allowed
from pliant.people.people import People
from pliant.server.endpoint_jobs import EndpointRoom, make_endpoints
from pliant.server.endpoint_views import ShownEndpoints
from pliant.server.gateway_places import KernelPlaceFiles
from pliant.server.gateways import GatewayHub, KnownGateway
from pliant.server.serving import GatewayNews


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingRoom:
    """All that serves endpoints, of one server."""

    hub: GatewayHub
    news: GatewayNews
    requests: ShownEndpoints
    room: EndpointRoom
    process: GatewayProcess
    serves_here: bool
    """The gateways of the server's own machine are this server's; else its agent keeps them."""

    def start(self) -> None:
        """Bring what runs in line with what is kept, from now on."""
        if not self.serves_here:  # an earlier server may have started one
            threading.Thread(target=self.process.close, name="pliant-gateway", daemon=True).start()
        self.room.keeper.sweep()
        threading.Thread(target=self.room.keeper.run, name="pliant-endpoints", daemon=True).start()

    def retire(self) -> None:
        """Let the gateway refuse what comes, and finish what it has; returns at once."""
        self.room.keeper.close()
        self.hub.retire()

    def close(self) -> None:
        """Wait until the gateway has ended."""
        self.process.close(retire=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayPlan:
    """Which gateways a server has, and how those of its own machine are started."""

    options: GatewayOptions
    own: Mapping[str, KnownGateway]
    """Those that the server starts, by the names that they connect with."""
    find_other: Callable[[str], KnownGateway | None]
    """Returns one that an agent keeps, in the same way."""
    others: range
    """The numbers of those."""
    serves_here: bool
    challenge: str
    """Of this server; see `pliant.core.link_proof`."""


def gateway_plan(
    settings: ServerSettings, home: Home, listener: Listener, joined: Callable[[str], JoinedMachine | None]
) -> GatewayPlan:
    """Return which gateways this server has; `joined` returns a machine that belongs to its pool now.

    Raises:
        InvalidInput: a machine is to have some that cannot.
    """
    tls, kernel_host, layout = listener.tls, listener.machines_host, gateway_layout(settings)
    options = GatewayOptions(
        state=home.path / STATE,
        server_file=Path(home.path / ADDRESS / SERVER_FILE),
        key=gateway_key(home.secret),
        env=allowed(os.environ, settings.pass_env),
        host=settings.host,
        port=settings.serve_port,
        grpc_port=settings.serve_grpc_port,
        num_processes=settings.serve_processes,
        of=layout.num if layout.machines else None,
        public_host=urlsplit(listener.public_url).hostname,
        kernel_host=kernel_host,
        kernel_name=None if tls is None or kernel_host is None else tls.name_for(kernel_host),
        certificate=None if tls is None else tls.certificate,
        key_file=None if tls is None else tls.key,
    )
    return GatewayPlan(
        options=options,
        own=layout.own(home.secret),
        find_other=lambda name: layout.find_other(name, home.secret, joined),
        others=range(layout.num_processes, layout.num),
        serves_here=layout.serves_here,
        challenge=home.challenge,
    )


def open_serving(
    plan: GatewayPlan,
    registry: Registry,
    clock: Clock,
    control: Control,
    people: People,
    sharing: Sharing,
) -> ServingRoom:
    """Return what serves endpoints; nothing runs before it is started, and no gateway before there is an endpoint."""
    hub = GatewayHub(plan.own, plan.challenge, clock, plan.find_other)
    process = GatewayProcess(plan.options)
    room = make_endpoints(
        registry,
        clock,
        control,
        sharing,
        people.authenticator.has_user,
        show=hub.send_serve,
        need_gateway=process.ensure if plan.serves_here else _is_there,
    )
    control.subscribe(room.keeper.wake)
    places = KernelPlaceFiles(plan.options.server_file.parent, plan.others)
    news = GatewayNews(control.kernels, room.keeper.wake, places.note)
    requests = ShownEndpoints(room.catalog, control.kernels.statuses, lambda: news.places)
    return ServingRoom(hub=hub, news=news, requests=requests, room=room, process=process, serves_here=plan.serves_here)


def _is_there() -> None:
    """Start nothing: the agent of the machine has gateways whether there is an endpoint or not."""
