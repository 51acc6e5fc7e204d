"""Metrics of everything, as Prometheus scrapes them."""

from typing import Annotated, Final

from fastapi import Header, Response

from pliant.core.access import Permission
from pliant.server.context import InContext
from pliant.server.monitoring.exposition import expose
from pliant.server.monitoring.families import Scene
from pliant.server.routing import Routes

routes = Routes("", tags=["server"])

_TEXT: Final = {"schema": {"type": "string"}}


@routes.get(
    "/metrics",
    Permission.METRICS_READ,
    "Metrics for Prometheus",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": _TEXT, "application/openmetrics-text": _TEXT}, "description": "The metrics."}
    },
)
def metrics(context: InContext, accept: Annotated[str, Header(max_length=4000)] = "") -> Response:
    """Return measures of slots, jobs, queues, the scheduler and endpoints, in Prometheus's text format.

    `Accept: application/openmetrics-text` gets OpenMetrics 1.0.0.
    """
    scene = Scene(pool=context.control.measures.take(), num_gateways=len(context.gateways))
    text, media_type = expose(scene, accept)
    return Response(text, headers={"Content-Type": media_type})
