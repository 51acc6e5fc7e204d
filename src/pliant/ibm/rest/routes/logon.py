"""Logging on and off, as IBM's two generations of clients do it: for a token, and for a cookie."""

from typing import Annotated, Final

from fastapi import Depends, Request, Response
from starlette.concurrency import run_in_threadpool

from pliant.core.errors import Unauthorized
from pliant.ibm.rest.answers import AUTH, CONDUCTOR, router
from pliant.ibm.rest.credentials import COOKIE, InAdmitted, allowed
from pliant.people.sessions import SESSION_S, OpenedSession
from pliant.server.context import InContext
from pliant.server.middleware.auth import Login, credentials_of, log_on

open_auth = router(AUTH)
auth = router(AUTH)
open_conductor = router(CONDUCTOR)
conductor = router(CONDUCTOR)

_PATH: Final = "/platform/rest"


async def _opened(request: Request) -> OpenedSession:
    """Begin a session for the name and the password of a request.

    Raises:
        Unauthorized: it has none, or wrong ones.
        TooMany: wrong ones too often.
    """
    given = credentials_of(request.headers)
    if not isinstance(given, Login):
        raise Unauthorized("a logon needs name and password; send them as `Authorization: Basic`")
    _, opened = await log_on(request, given)
    return opened


InOpened = Annotated[OpenedSession, Depends(_opened)]


@open_auth.get("/logon")
async def token(opened: InOpened) -> dict[str, str]:
    """Return the token of a new session."""
    return {"accessToken": opened.token}


@auth.post("/logoff")
async def end(context: InContext, found: InAdmitted, response: Response) -> dict[str, str]:
    """End the session that the request came with; who came with something else stays as they are."""
    if found.by == "session":
        await run_in_threadpool(context.people.sessions.end, found.id)
    response.delete_cookie(COOKIE, path=_PATH)
    return {"message": "logged off"}


@open_conductor.get("/auth/logon")
async def cookie(request: Request, opened: InOpened, response: Response) -> dict[str, str]:
    """Begin a session, kept by the client as a cookie for eight hours."""
    response.set_cookie(
        COOKIE,
        opened.token,
        max_age=int(SESSION_S),
        path=_PATH,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return {"user": opened.session.owner}


conductor.add_api_route("/auth/logoff", end, methods=["POST"], dependencies=[Depends(allowed)])
