"""Inference through the server's own address: passed on to the gateway as it comes, and the answer back.

Clients of IBM's know one address. Those who know the gateway's (`service_uri` of a model) ask that, and save a step.
"""

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from pliant.core.access import Permission
from pliant.core.errors import Unavailable
from pliant.ibm.rest.credentials import Caller, token_of
from pliant.ibm.rest.errors import DLIM
from pliant.ibm.rest.routing import ibm_routes
from pliant.server.context import InContext
from pliant.server.gateway_client import gateway_client_of
from pliant.server.given_tokens import given_tokens, inference_token
from pliant.server.middleware.audit import trace_of
from pliant.server.routes.endpoints import InEndpoints

routes = ibm_routes(DLIM)


@routes.post("/inference/{model}", Permission.INFER)
async def infer(request: Request, context: InContext, requests: InEndpoints, caller: Caller, model: str) -> Response:
    """Ask a model: the body goes to its kernel as it is."""
    trace_of(request).changes_nothing = True
    token = token_of(request)
    if token is None:  # the gateway compares no passwords
        token = await run_in_threadpool(inference_token, context, given_tokens(request), caller.name)
    view = await run_in_threadpool(requests.get, caller, model)
    if not view.gateways:
        raise Unavailable("no gateway is there yet that takes requests; try again in a moment")
    return await gateway_client_of(request, context).ask(
        view.gateways[0], f"{DLIM}/inference/{view.name}", token, request
    )
