"""Tokens of IBM's inference API: one that does what its user may, and one that asks models and nothing else."""

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from pliant.core.access import Permission
from pliant.core.errors import Conflict, Unauthorized
from pliant.ibm.rest.credentials import InIdentity, token_of
from pliant.ibm.rest.errors import DLIM
from pliant.ibm.rest.routing import ibm_routes
from pliant.server.context import InContext
from pliant.server.given_tokens import given_tokens, inference_token
from pliant.server.middleware.authentication import PasswordCredentials, credentials_of, log_on
from pliant.server.middleware.authorisation import Audience

routes = ibm_routes(DLIM)


@routes.post("/auth/token", Audience.PASSWORD)
async def token(request: Request, context: InContext) -> dict[str, str]:
    """Return tokens for a name and a password: `user_token` opens all routes, `service_token` asks models."""
    asked = credentials_of(request.headers)
    if not isinstance(asked, PasswordCredentials):
        raise Unauthorized("a token is given for name and password; send them as `Authorization: Basic`")
    identity, session = await log_on(request, asked)
    name, given, now = identity.principal.name, given_tokens(request), context.clock.now()
    user = await run_in_threadpool(given.settle, name, context.people.credentials, now, session)
    service = await run_in_threadpool(inference_token, context, given, name)
    return {"user_token": user, "access_token": user, "service_token": service}


@routes.post("/auth/token/inference", Permission.SELF)
async def service_token(request: Request, context: InContext, identity: InIdentity) -> dict[str, str]:
    """Return a token that asks models and does nothing else. Tokens make no tokens: one that may ask is its own."""
    if identity.by != "token":
        service = await run_in_threadpool(inference_token, context, given_tokens(request), identity.principal.name)
        return {"service_token": service, "access_token": service}
    shown = token_of(request)
    if shown is None or not identity.principal.may(Permission.INFER):
        raise Conflict("the token lacks the scope 'infer', and makes no other tokens; send name and password")
    return {"service_token": shown, "access_token": shown}
