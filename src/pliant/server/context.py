"""What the routes share: the use cases, the signal and the links. One frozen value on the app's state."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fastapi import Depends
from starlette.requests import HTTPConnection

from pliant.catalog.algorithms.use_cases import AlgorithmRequests
from pliant.catalog.children.reach import ChildIsolation
from pliant.catalog.datasets.use_cases import DatasetCatalog
from pliant.catalog.environments.use_cases import EnvironmentCatalog
from pliant.catalog.models.services import ModelServices
from pliant.control.loop.tick import Control
from pliant.control.requests.sharing import Sharing
from pliant.control.upkeep.backup import Backup
from pliant.control.upkeep.cleanup import Upkeep
from pliant.core.ports import Clock
from pliant.core.registry import AuditLog, Registry
from pliant.core.server_option import ServerFacts
from pliant.people.people import People
from pliant.server.endpoint_requests import EndpointRequests
from pliant.server.event_signal import EventSignal
from pliant.server.gateways import GatewayHub, ServingListener
from pliant.server.links import LinkHub
from pliant.server.tunnels import TunnelHub
from pliant.tune.searches.use_cases import SearchRequests


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the routes share."""

    control: Control
    datasets: DatasetCatalog
    people: People
    sharing: Sharing
    """Which jobs are shared with whom."""
    models: ModelServices
    """Templates, models and their trainings."""
    registry: Registry
    """For what the routes themselves keep."""
    audit: AuditLog
    clock: Clock
    event_signal: EventSignal
    links: LinkHub
    tunnels: TunnelHub
    gateways: GatewayHub
    environments: EnvironmentCatalog
    upkeep: Upkeep
    backup: Backup
    uploads: Path
    """Folder of uploads that have not been checked yet."""
    frameworks: Path
    """Folder of plug-ins for IBM's API."""
    children: ChildIsolation
    """Keeps the scripts of plug-ins within their reach."""
    shut_down: Callable[[], None]
    """Asks the process to drain and end; returns at once."""
    trouble: Callable[[], str] = lambda: ""
    """Returns what keeps tasks from being started, in words; empty if nothing does."""
    serving: ServingListener | None = None
    """Takes what gateways say; None: this server serves no endpoints."""
    endpoints: EndpointRequests | None = None
    """None: this server serves none."""
    searches: SearchRequests | None = None
    """None: this server keeps none."""
    algorithms: AlgorithmRequests | None = None
    """None: nobody can install any."""
    copies: Callable[[], str] = lambda: ""
    """Returns how the copying to an object store stands, in words; empty: nothing is copied."""
    facts: ServerFacts | None = None
    """What this server was started with; None: nobody says."""


def context_of(connection: HTTPConnection) -> Context:
    """Return the context of the app that serves this request."""
    context = connection.app.state.context
    assert isinstance(context, Context)
    return context


def control_of(connection: HTTPConnection) -> Control:
    """Return the control room of the app that serves this request."""
    return context_of(connection).control


InContext = Annotated[Context, Depends(context_of)]
InControl = Annotated[Control, Depends(control_of)]
