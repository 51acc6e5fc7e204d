"""People: log on and off, oneself, users, and personal tokens."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from pliant.api.people import (
    Logon,
    LogonRequest,
    Me,
    NewToken,
    NewUser,
    PasswordRequest,
    TokenPage,
    TokenRequest,
    TokenView,
    UserName,
    UserPage,
    UserPatch,
    UserRequest,
    UserView,
)
from pliant.core.access import ALLOWED, Permission
from pliant.core.errors import Conflict, Forbidden, InvalidInput, Problem
from pliant.core.registry import Kept
from pliant.people.tokens import PersonalToken
from pliant.people.user import User
from pliant.server.context import InContext
from pliant.server.etag import IfMatch, revision_of, tagged
from pliant.server.middleware.access import PREFIX
from pliant.server.middleware.auth import InAdmitted, Login, address_of, log_on
from pliant.server.middleware.problems import responses

router = APIRouter(prefix=PREFIX, tags=["people"])
logon_router = APIRouter(prefix=PREFIX, tags=["people"])
"""Open to all, since those who come have nothing to show yet."""

After = Annotated[str, Query(pattern=r"^[a-z0-9._-]{0,60}$", description="`next` of the page before.")]


@logon_router.post("/logon", summary="Log on", responses=responses(503))
async def logon(request: Request, body: LogonRequest) -> Logon:
    """Begin a session of eight hours for who gives the right password."""
    found, opened = await log_on(request, Login(name=body.name, password=body.password))
    who = found.principal
    return Logon(token=opened.token, expires_at=opened.session.expires_at, name=who.name, role=who.role)


@router.post("/logoff", status_code=204, summary="Log off", responses=responses(409))
def logoff(context: InContext, found: InAdmitted) -> None:
    """End the session that this was asked with."""
    if found.by != "session":
        raise Conflict("there is no session to end: this was asked with a password or a token, not with a session")
    context.people.sessions.end(found.id)


@router.get("/me", summary="Who am I", responses=responses())
def me(found: InAdmitted) -> Me:
    """Return who asks, and what they may do."""
    who = found.principal
    return Me(
        name=who.name,
        role=who.role,
        permissions=tuple(sorted(permission for permission in ALLOWED[who.role] if who.may(permission))),
        scopes=None if who.scopes is None else tuple(sorted(who.scopes)),
        by=found.by,
        expires_at=found.expires_at,
    )


@router.put("/me/password", status_code=204, summary="Change one's own password", responses=responses())
def change_own_password(context: InContext, request: Request, body: PasswordRequest, found: InAdmitted) -> None:
    """Change the password; all other sessions end. A wrong old password counts as an attempt to log on."""
    _refuse_tokens(found.by, "changes no password")
    name, people = found.principal.name, context.people
    if not people.gate.own_password(name, body.old_password, address_of(request)):
        raise InvalidInput(Problem(field="old_password", message="this is not the password; ask an administrator"))
    people.accounts.set_password(name, body.new_password, but_session=found.id)


def _refuse_tokens(by: str, what: str) -> None:
    """Keep whoever found a token from making it worth more than it is."""
    if by == "token":
        raise Forbidden(f"a personal token {what}; log on with the password (POST /v1/logon)")


@router.get("/users", summary="List users", responses=responses())
def users(context: InContext, after: After = "", limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> UserPage:
    """Return a page of users."""
    found = context.people.accounts.page(after, limit + 1)
    views = tuple(_user(kept) for kept in found[:limit])
    return UserPage(users=views, next=views[-1].name if len(found) > limit else None)


@router.post("/users", status_code=201, summary="Make a user", responses=responses(409))
def add_user(context: InContext, body: UserRequest, response: Response) -> NewUser:
    """Make a user; a password that is not given is made up, and shown in this answer only."""
    made = context.people.accounts.add(body)
    return NewUser(user=tagged(_user(made.kept), response), password=made.password)


@router.get("/users/{name}", summary="Show a user", responses=responses(404))
def show_user(context: InContext, name: str, response: Response) -> UserView:
    """Return a user."""
    return tagged(_user(context.people.accounts.get(name)), response)


@router.patch("/users/{name}", summary="Change a user", responses=responses(404, 409, 412))
def change_user(
    context: InContext, name: str, body: UserPatch, found: InAdmitted, response: Response, if_match: IfMatch = None
) -> UserView:
    """Change role or password, disable or enable; whoever is disabled is refused at once."""
    if body.password is not None and name == found.principal.name and found.by != "file":
        raise Conflict("change your own password with PUT /v1/me/password, which asks for the old one")
    kept = context.people.accounts.change(name, body, by=found.principal.name, revision=revision_of(if_match))
    if body.password is not None:
        context.people.gate.forgive(name)
    return tagged(_user(kept), response)


@router.delete("/users/{name}", status_code=204, summary="Remove a user", responses=responses(404, 409, 412))
def remove_user(context: InContext, name: str, found: InAdmitted, if_match: IfMatch = None) -> None:
    """Remove a user, their sessions and tokens; what they own stays as it is."""
    context.people.accounts.remove(name, by=found.principal.name, revision=revision_of(if_match))


def _user(kept: Kept[User]) -> UserView:
    return UserView(
        name=kept.noun.name,
        role=kept.noun.role,
        active=kept.noun.active,
        created_at=kept.created_at,
        changed_at=kept.changed_at,
        password_changed_at=kept.noun.password_changed_at,
        revision=kept.revision,
    )


@router.get("/tokens", summary="List personal tokens", responses=responses())
def tokens(
    context: InContext,
    found: InAdmitted,
    owner: Annotated[UserName | None, Query(description="Somebody else's, for administrators.")] = None,
) -> TokenPage:
    """Return one's own tokens, newest first."""
    whose = owner or found.principal.name
    if whose != found.principal.name and not found.principal.may(Permission.USERS_WRITE):
        raise Forbidden(f"the tokens of {whose} are theirs to see; ask an administrator")
    return TokenPage(tokens=tuple(_token(kept) for kept in context.people.tokens.of(whose)))


@router.post("/tokens", status_code=201, summary="Make a personal token", responses=responses(404, 409))
def make_token(context: InContext, body: TokenRequest, found: InAdmitted) -> NewToken:
    """Make a token of one's own, which is shown in this answer only."""
    _refuse_tokens(found.by, "makes no other tokens")
    owner = context.people.accounts.get(found.principal.name).noun.name
    made = context.people.tokens.make(owner, body)
    return NewToken(token=made.text, info=_token(made.kept))


@router.delete("/tokens/{token_id}", status_code=204, summary="Revoke a personal token", responses=responses(404))
def revoke_token(context: InContext, token_id: str, found: InAdmitted) -> None:
    """Make a token open nothing any more, at once; one's own, for administrators anybody's."""
    caller = found.principal
    tokens = context.people.tokens
    tokens.revoke(token_id, owner=None if caller.may(Permission.USERS_WRITE) else caller.name)


def _token(kept: Kept[PersonalToken]) -> TokenView:
    token = kept.noun
    return TokenView(
        id=token.name,
        label=token.label,
        owner=token.owner,
        scopes=token.scopes,
        created_at=kept.created_at,
        expires_at=token.expires_at,
        last_used_at=token.last_used_at,
    )
