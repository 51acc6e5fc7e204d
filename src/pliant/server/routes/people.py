"""People: oneself, users, and personal tokens."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Query, Request, Response

from pliant.api.people import (
    Me,
    NewToken,
    NewUser,
    PasswordRequest,
    SavedViewList,
    SavedViewsRequest,
    TokenPage,
    TokenRequest,
    TokenView,
    UserName,
    UserPage,
    UserPatch,
    UserRequest,
    UserView,
)
from pliant.core.access import ALLOWED, Permission, Principal
from pliant.core.errors import Conflict, Forbidden, InvalidInput, NotFound, Problem
from pliant.core.input import values_of
from pliant.core.people import TokenSettings, UserSettings
from pliant.core.registry import Kept
from pliant.core.saved_view import SavedViews
from pliant.people.credentials import PersonalToken
from pliant.people.user import User
from pliant.server.context import InContext
from pliant.server.endpoint_requests import EndpointRequests
from pliant.server.etag import IfMatch, revision_of, with_etag
from pliant.server.middleware.authentication import InIdentity, address_of, refuse_tokens
from pliant.server.routing import Routes

routes = Routes(tags=["people"])

After = Annotated[str, Query(pattern=r"^[a-z0-9._-]{0,60}$", description="`next` of the page before.")]


@routes.get("/me", Permission.SELF, "Who am I")
def me(identity: InIdentity) -> Me:
    """Return who asks, and what they may do."""
    who = identity.principal
    return Me(
        name=who.name,
        role=who.role,
        permissions=tuple(sorted(permission for permission in ALLOWED[who.role] if who.may(permission))),
        scopes=None if who.scopes is None else tuple(sorted(who.scopes)),
        by=identity.by,
        expires_at=identity.expires_at,
    )


@routes.put("/me/password", Permission.SELF, "Change one's own password", status_code=204)
def change_own_password(context: InContext, request: Request, body: PasswordRequest, identity: InIdentity) -> None:
    """Change the password; all other sessions end. A wrong old password counts as an attempt to log on."""
    refuse_tokens(identity.by, "changes no password")
    name, people = identity.principal.name, context.people
    if not people.authenticator.check_password(name, body.old_password, address_of(request)):
        raise InvalidInput.at("old_password", "this is not the password; ask an administrator")
    people.accounts.set_password(name, body.new_password, but_session=identity.id)


@routes.get("/me/views", Permission.SELF, "List one's own saved views")
def own_views(context: InContext, identity: InIdentity, response: Response) -> SavedViewList:
    """Return the views of the list of jobs that one has saved."""
    return _views(context.people.views.get(identity.principal.name), response)


@routes.put("/me/views", Permission.SELF, "Save views of one's own", 412)
def save_views(
    context: InContext, body: SavedViewsRequest, identity: InIdentity, response: Response, if_match: IfMatch = None
) -> SavedViewList:
    """Keep these views and no others."""
    views = [view.noun() for view in body.views]
    return _views(context.people.views.replace(identity.principal.name, views, revision_of(if_match)), response)


def _views(found: tuple[SavedViews, int], response: Response) -> SavedViewList:
    saved, revision = found
    return with_etag(SavedViewList(views=saved.views, revision=revision), response)


@routes.get("/users", Permission.USERS_WRITE, "List users")
def users(context: InContext, after: After = "", limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> UserPage:
    """Return a page of users."""
    found = context.people.accounts.page(after, limit + 1)
    views = tuple(_user(kept) for kept in found[:limit])
    return UserPage(users=views, next=views[-1].name if len(found) > limit else None)


@routes.post("/users", Permission.USERS_WRITE, "Make a user", 409, status_code=201)
def add_user(context: InContext, body: UserRequest, response: Response) -> NewUser:
    """Make a user; a password that is not given is made up, and shown in this answer only."""
    made = context.people.accounts.add(body.noun(), body.password)
    return NewUser(user=with_etag(_user(made.kept), response), password=made.password)


@routes.get("/users/{name}", Permission.USERS_WRITE, "Show a user", 404)
def show_user(context: InContext, name: str, response: Response) -> UserView:
    """Return a user."""
    return with_etag(_user(context.people.accounts.get(name)), response)


@routes.patch("/users/{name}", Permission.USERS_WRITE, "Change a user", 404, 409, 412)
def change_user(
    context: InContext, name: str, body: UserPatch, identity: InIdentity, response: Response, if_match: IfMatch = None
) -> UserView:
    """Change role or password, disable or enable; whoever is disabled is refused at once."""
    if body.password is not None and name == identity.principal.name and identity.by != "file":
        raise Conflict("change your own password with PUT /v1/me/password, which asks for the old one")
    changes = {field: value for field, value in body.changes().items() if field != "password"}
    kept = context.people.accounts.change(
        name, changes, by=identity.principal.name, password=body.password, revision=revision_of(if_match)
    )
    if body.password is not None:
        context.people.authenticator.forgive(name)
    return with_etag(_user(kept), response)


@routes.delete("/users/{name}", Permission.USERS_WRITE, "Remove a user", 404, 409, 412, status_code=204)
def remove_user(context: InContext, name: str, identity: InIdentity, if_match: IfMatch = None) -> None:
    """Remove a user, their sessions and tokens; what they own stays as it is."""
    context.people.accounts.remove(name, by=identity.principal.name, revision=revision_of(if_match))


def _user(kept: Kept[User]) -> UserView:
    return UserView(
        **values_of(UserSettings, kept.noun),
        active=kept.noun.active,
        created_at=kept.created_at,
        changed_at=kept.changed_at,
        password_changed_at=kept.noun.password_changed_at,
        revision=kept.revision,
    )


@routes.get("/tokens", Permission.SELF, "List personal tokens")
def tokens(
    context: InContext,
    identity: InIdentity,
    owner: Annotated[UserName | None, Query(description="Somebody else's, for administrators.")] = None,
) -> TokenPage:
    """Return one's own tokens, newest first."""
    whose = owner or identity.principal.name
    if whose != identity.principal.name and not identity.principal.may(Permission.USERS_WRITE):
        raise Forbidden(f"the tokens of {whose} are theirs to see; ask an administrator")
    return TokenPage(tokens=tuple(_token(kept) for kept in context.people.credentials.list_tokens(whose)))


@routes.post("/tokens", Permission.SELF, "Make a personal token", 404, 409, status_code=201)
def make_token(context: InContext, body: TokenRequest, identity: InIdentity) -> NewToken:
    """Make a token of one's own, which is shown in this answer only."""
    refuse_tokens(identity.by, "makes no other tokens")
    if body.endpoints is not None:
        _require_endpoints(context.endpoints, identity.principal, sorted(body.endpoints))
    owner = context.people.accounts.get(identity.principal.name).noun.name
    made = context.people.credentials.make_token(owner, TokenSettings(**body.given()))
    return NewToken(token=made.text, info=_token(made.kept))


def _require_endpoints(endpoints: EndpointRequests | None, caller: Principal, names: Sequence[str]) -> None:
    """Refuse names of endpoints that a caller does not see: a token with a wrong letter would open nothing, ever.

    Raises:
        InvalidInput: with all of them.
    """
    problems: list[Problem] = []
    for name in names:
        try:
            if endpoints is None:
                raise NotFound("this server serves no endpoints")
            endpoints.get(caller, name)
        except NotFound as error:
            problems.append(Problem(field="endpoints", message=f"{error}; deploy it before you make its token"))
    if problems:
        raise InvalidInput(*problems)


@routes.delete("/tokens/{token_id}", Permission.SELF, "Revoke a personal token", 404, status_code=204)
def revoke_token(context: InContext, token_id: str, identity: InIdentity) -> None:
    """Make a token open nothing any more, at once; one's own, for administrators anybody's."""
    caller = identity.principal
    owner = None if caller.may(Permission.USERS_WRITE) else caller.name
    context.people.credentials.revoke_token(token_id, owner=owner)


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
        endpoints=token.endpoints,
        max_rate=token.max_rate,
        max_concurrent=token.max_concurrent,
    )
