"""Logging on and off, as IBM's two generations of clients do it: for a token, and for a cookie."""

from typing import Annotated, Final

from fastapi import Depends, Request, Response
from starlette.concurrency import run_in_threadpool

from pliant.core.access import Permission
from pliant.core.errors import Unauthorized
from pliant.ibm.rest.credentials import COOKIE, InIdentity
from pliant.ibm.rest.errors import AUTH, CONDUCTOR
from pliant.ibm.rest.routing import ibm_routes
from pliant.people.credentials import SESSION_S, Issued, LogonSession
from pliant.server.context import InContext
from pliant.server.middleware.authentication import PasswordCredentials, credentials_of, log_on
from pliant.server.middleware.authorisation import Audience
from pliant.server.middleware.secure_headers import CLEAR_SITE_DATA

auth = ibm_routes(AUTH)
conductor = ibm_routes(CONDUCTOR)

_PATH: Final = "/platform/rest"


async def _open_session(request: Request) -> Issued[LogonSession]:
    """Open a session for the name and the password of a request.

    Raises:
        Unauthorized: it has none, or wrong ones.
        TooMany: wrong ones too often.
    """
    given = credentials_of(request.headers)
    if not isinstance(given, PasswordCredentials):
        raise Unauthorized("a logon needs name and password; send them as `Authorization: Basic`")
    _, session = await log_on(request, given)
    return session


InSession = Annotated[Issued[LogonSession], Depends(_open_session)]


@auth.get("/logon", Audience.PASSWORD)
async def log_on_for_token(session: InSession) -> dict[str, str]:
    """Return the token of a new session."""
    return {"accessToken": session.text}


@conductor.get("/auth/logon", Audience.PASSWORD)
async def log_on_for_cookie(request: Request, session: InSession, response: Response) -> dict[str, str]:
    """Open a session, kept by the client as a cookie for eight hours."""
    response.set_cookie(
        COOKIE,
        session.text,
        max_age=int(SESSION_S),
        path=_PATH,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return {"user": session.kept.noun.owner}


@auth.post("/logoff", Permission.SELF)
@conductor.post("/auth/logoff", Permission.SELF)
async def log_off(context: InContext, identity: InIdentity, response: Response) -> dict[str, str]:
    """End the session that the request came with; who came with something else stays as they are."""
    if identity.by == "session":
        await run_in_threadpool(context.people.credentials.end_session, identity.id)
    response.delete_cookie(COOKIE, path=_PATH)
    response.headers.update(CLEAR_SITE_DATA)
    return {"message": "logged off"}
