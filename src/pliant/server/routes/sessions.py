"""Sessions: log on and off, by password or by a one-time link, and which sessions there are."""

from fastapi import Request, Response

from pliant.api.people import Logon, LogonRequest
from pliant.api.sessions import LogonLinkRequest, LogonLinkView, SessionPage, SessionView
from pliant.core.access import Permission, Role
from pliant.core.errors import Conflict
from pliant.core.registry import Kept
from pliant.people.credentials import Issued, LogonSession
from pliant.server.context import InContext
from pliant.server.middleware.authentication import (
    InIdentity,
    PasswordCredentials,
    log_on,
    redeem_link,
    refuse_tokens,
)
from pliant.server.middleware.authorisation import Audience
from pliant.server.middleware.secure_headers import CLEAR_SITE_DATA
from pliant.server.middleware.session_cookie import cookie_of, delete_cookie, require_own_page, set_cookie
from pliant.server.routing import Routes
from pliant.server.site import site_of

routes = Routes(tags=["people"])


@routes.post("/logon", Audience.PASSWORD, "Log on", 503)
async def logon(context: InContext, request: Request, body: LogonRequest, response: Response) -> Logon:
    """Begin a session of eight hours for who gives the right password.

    With `cookie` it is for a browser, which gets it as a cookie.
    """
    if body.cookie:
        require_own_page(request)
    given = PasswordCredentials(name=body.name, password=body.password)
    identity, session = await log_on(request, given)
    if body.cookie:
        _set_cookie(context, request, response, session)
    return _logon(session, identity.principal.role, token=None if body.cookie else session.text)


@routes.post("/logon/links", Permission.SELF, "Make a one-time link", 404, status_code=201)
def make_link(context: InContext, request: Request, identity: InIdentity) -> LogonLinkView:
    """Make a link that logs a browser on as who asks, once, within a minute."""
    refuse_tokens(identity.by, "makes no links to log on")
    session_id = identity.id if identity.by == "session" else ""
    link = context.people.links.make(identity.principal.name, session_id=session_id)
    return LogonLinkView(code=link.code, expires_at=link.expires_at, root_path=site_of(request).root_path)


@routes.post("/logon/link", Audience.CODE, "Log on by a one-time link", 409)
async def log_on_by_link(context: InContext, request: Request, body: LogonLinkRequest, response: Response) -> Logon:
    """Begin a session of eight hours as a cookie; the link opens nothing afterwards.

    Needs the header `X-Pliant-Console: 1`. A browser that is logged on as somebody else is refused.
    """
    require_own_page(request)
    user, session = await redeem_link(request, body.code)
    _set_cookie(context, request, response, session)
    return _logon(session, user.role, token=None)


def _set_cookie(context: InContext, request: Request, response: Response, session: Issued[LogonSession]) -> None:
    set_cookie(request, response, session.text, session.kept.noun.expires_at - context.clock.now())


def _logon(session: Issued[LogonSession], role: Role, *, token: str | None) -> Logon:
    noun = session.kept.noun
    return Logon(token=token, expires_at=noun.expires_at, name=noun.owner, role=role)


@routes.post("/logoff", Permission.SELF, "Log off", 409, status_code=204)
def logoff(context: InContext, request: Request, identity: InIdentity, response: Response) -> None:
    """End the session that this was asked with, and remove its cookie."""
    if identity.by != "session":
        raise Conflict("there is no session to end: this was asked with a password or a token, not with a session")
    context.people.credentials.end_session(identity.id)
    if cookie_of(request) is None:
        response.headers.update(CLEAR_SITE_DATA)
    else:  # that header would remove the cookies of all servers on this machine
        delete_cookie(request, response)


@routes.get("/me/sessions", Permission.SELF, "List one's own sessions")
def own_sessions(context: InContext, identity: InIdentity) -> SessionPage:
    """Return one's own sessions that go on, newest first."""
    return _sessions(context, identity.principal.name, identity.id)


@routes.delete("/me/sessions/{session_id}", Permission.SELF, "End a session of one's own", 404, status_code=204)
def end_own_session(context: InContext, session_id: str, identity: InIdentity) -> None:
    """End a session at once, also the one that this is asked with."""
    context.people.credentials.end_session_of(identity.principal.name, session_id)


@routes.get("/users/{name}/sessions", Permission.USERS_WRITE, "List a user's sessions", 404)
def user_sessions(context: InContext, name: str, identity: InIdentity) -> SessionPage:
    """Return the sessions of a user that go on, newest first."""
    return _sessions(context, context.people.accounts.get(name).noun.name, identity.id)


@routes.delete(
    "/users/{name}/sessions/{session_id}", Permission.USERS_WRITE, "End a session of a user", 404, status_code=204
)
def end_user_session(context: InContext, name: str, session_id: str) -> None:
    """End a session of a user at once."""
    context.people.credentials.end_session_of(context.people.accounts.get(name).noun.name, session_id)


def _sessions(context: InContext, owner: str, current: str) -> SessionPage:
    found = context.people.credentials.list_sessions(owner)
    return SessionPage(sessions=tuple(_view(kept, current) for kept in found))


def _view(kept: Kept[LogonSession], current: str) -> SessionView:
    session = kept.noun
    return SessionView(
        id=session.name,
        created_at=kept.created_at,
        expires_at=session.expires_at,
        last_used_at=session.last_used_at,
        by=session.way,
        address=session.address,
        current=session.name == current,
    )
