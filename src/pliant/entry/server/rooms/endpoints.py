"""Endpoints when the server starts: their use cases, who keeps them as they are meant to be, and the gateway's process.

The keeper and the watch over the gateway are a thread each. A server that is killed leaves the gateway and its kernels
running; one that ends takes the gateway with it.
"""

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pliant.api.serving_link import gateway_key
from pliant.control.loop.tick import Control
from pliant.control.requests.sharing import Sharing
from pliant.core.ports import Clock
from pliant.core.registry import Registry
from pliant.entry.server.home import ADDRESS, SERVER_FILE, Home
from pliant.entry.server.listener import Listener
from pliant.entry.server.rooms.gateway import GatewayOptions, GatewayProcess
from pliant.entry.server.settings import ServerSettings
from pliant.isolation.variables import allowed
from pliant.people.people import People
from pliant.server.endpoint_jobs import EndpointRoom, make_endpoints
from pliant.server.endpoint_views import ShownEndpoints
from pliant.server.gateways import GatewayHub
from pliant.server.serving import GatewayNews


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingRoom:
    """All that serves endpoints, of one server."""

    hub: GatewayHub
    news: GatewayNews
    requests: ShownEndpoints
    room: EndpointRoom
    process: GatewayProcess

    def start(self) -> None:
        """Bring what runs in line with what is kept, from now on."""
        self.room.keeper.sweep()
        threading.Thread(target=self.room.keeper.run, name="pliant-endpoints", daemon=True).start()

    def retire(self) -> None:
        """Let the gateway refuse what comes, and finish what it has; returns at once."""
        self.room.keeper.close()
        self.hub.retire()

    def close(self) -> None:
        """Wait until the gateway has ended."""
        self.process.close(retire=True)


def gateway_options(settings: ServerSettings, home: Home, listener: Listener) -> GatewayOptions:
    """Return how the gateway of this server is started."""
    tls, kernel_host = listener.tls, listener.machines_host
    return GatewayOptions(
        home=home.path,
        server_file=Path(home.path / ADDRESS / SERVER_FILE),
        key=gateway_key(home.secret),
        env=allowed(os.environ, settings.pass_env),
        host=settings.host,
        port=settings.serve_port,
        grpc_port=settings.serve_grpc_port,
        num_processes=settings.serve_processes,
        public_host=urlsplit(listener.public_url).hostname,
        kernel_host=kernel_host,
        kernel_name=None if tls is None or kernel_host is None else tls.name_for(kernel_host),
        certificate=None if tls is None else tls.certificate,
        key_file=None if tls is None else tls.key,
    )


def open_serving(
    gateway: GatewayOptions,
    challenge: str,
    registry: Registry,
    clock: Clock,
    control: Control,
    people: People,
    sharing: Sharing,
) -> ServingRoom:
    """Return what serves endpoints; nothing runs before it is started, and no gateway before there is an endpoint."""
    hub = GatewayHub(gateway.key, challenge, clock)
    process = GatewayProcess(gateway)
    room = make_endpoints(
        registry,
        clock,
        control,
        sharing,
        people.authenticator.has_user,
        show=hub.send_serve,
        need_gateway=process.ensure,
    )
    control.subscribe(room.keeper.wake)
    news = GatewayNews(control.kernels, room.keeper.wake)
    requests = ShownEndpoints(room.catalog, control.kernels.statuses, lambda: news.place)
    return ServingRoom(hub=hub, news=news, requests=requests, room=room, process=process)
