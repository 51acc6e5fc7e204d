"""The routes about people: logging on and off, oneself, users, personal tokens, and the audit log."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from pliant.api.people import (
    AuditPage,
    Logon,
    LogonRequest,
    Me,
    NewToken,
    NewUser,
    PasswordRequest,
    SavedViewList,
    SavedViewRequest,
    SavedViewsRequest,
    TokenPage,
    TokenRequest,
    TokenView,
    UserPage,
    UserPatch,
    UserRequest,
    UserView,
)
from pliant.api.sessions import LogonLinkView, SessionPage, SessionView
from pliant.client.http.connection import Connection, parse
from pliant.client.http.lazy_adapter import LazyAdapter
from pliant.client.http.pages import pages

_PAGE: Final = 1000

_LOGON: Final = LazyAdapter(Logon)
_LOGON_LINK: Final = LazyAdapter(LogonLinkView)
_SESSION_PAGE: Final = LazyAdapter(SessionPage)
_ME: Final = LazyAdapter(Me)
_USER: Final = LazyAdapter(UserView)
_NEW_USER: Final = LazyAdapter(NewUser)
_USER_PAGE: Final = LazyAdapter(UserPage)
_TOKEN_PAGE: Final = LazyAdapter(TokenPage)
_NEW_TOKEN: Final = LazyAdapter(NewToken)
_VIEWS: Final = LazyAdapter(SavedViewList)
_AUDIT_PAGE: Final = LazyAdapter(AuditPage)


class PeopleClient:
    """Asks a server about people. Errors are those of the client."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def log_on(self, name: str, password: str) -> Logon:
        """Begin a session; its token is for a client of its own.

        Raises:
            Unauthorized: name or password is wrong.
            TooMany: too many attempts have failed; it says how long to wait.
        """
        body = LogonRequest(name=name, password=password)
        return parse(_LOGON, self._connection.send("POST", "/logon", body))

    def log_off(self) -> None:
        """End the session whose token this client sends.

        Raises:
            Conflict: it sends no session's token.
        """
        self._connection.call("POST", "/logoff")

    def make_logon_link(self) -> LogonLinkView:
        """Make a link that logs a browser on as us, once, within a minute.

        Raises:
            Forbidden: we send a personal token.
        """
        return parse(_LOGON_LINK, self._connection.call("POST", "/logon/links"))

    def sessions(self, user: str | None = None) -> tuple[SessionView, ...]:
        """Return our sessions that go on, or somebody else's, newest first."""
        return self._connection.get(_SESSION_PAGE, f"{_whose(user)}/sessions").sessions

    def end_session(self, session_id: str, user: str | None = None) -> None:
        """End a session of ours, or of somebody else's, at once."""
        self._connection.call("DELETE", f"{_whose(user)}/sessions/{quote(session_id, safe='')}")

    def me(self) -> Me:
        """Return who we are to the server, and what we may do."""
        return self._connection.get(_ME, "/me")

    def set_password(self, old_password: str, new_password: str) -> None:
        """Change our own password; our other sessions end."""
        body = PasswordRequest(old_password=old_password, new_password=new_password)
        self._connection.send("PUT", "/me/password", body)

    def views(self) -> SavedViewList:
        """Return the views of the list of jobs that we have saved."""
        return self._connection.get(_VIEWS, "/me/views")

    def save_views(self, views: Mapping[str, str], *, revision: int | None = None) -> SavedViewList:
        """Keep these views, queries by their names, and no others.

        Raises:
            InvalidInput: there are too many, or one is too long.
            Stale: they are not at this revision any more.
        """
        body = SavedViewsRequest(views=tuple(SavedViewRequest(name=name, query=views[name]) for name in views))
        return parse(_VIEWS, self._connection.send("PUT", "/me/views", body, revision))

    def users(self) -> tuple[UserView, ...]:
        """Return all users in the order of their names."""
        asked = pages(lambda after: self._connection.get(_USER_PAGE, "/users", {"after": after, "limit": _PAGE}))
        return tuple(user for page in asked for user in page.users)

    def user(self, name: str) -> UserView:
        """Return a user."""
        return self._connection.get(_USER, _user(name))

    def add_user(self, request: UserRequest) -> NewUser:
        """Make a user; a password that is not given is made up and in the answer."""
        return parse(_NEW_USER, self._connection.send("POST", "/users", request))

    def change_user(self, name: str, patch: UserPatch, *, revision: int | None = None) -> UserView:
        """Change a user.

        Raises:
            Stale: they are not at this revision any more.
        """
        return parse(_USER, self._connection.send("PATCH", _user(name), patch, revision))

    def remove_user(self, name: str) -> None:
        """Remove a user; what they own stays."""
        self._connection.call("DELETE", _user(name))

    def tokens(self, owner: str | None = None) -> tuple[TokenView, ...]:
        """Return our personal tokens, or somebody else's, newest first."""
        return self._connection.get(_TOKEN_PAGE, "/tokens", {"owner": owner}).tokens

    def make_token(self, request: TokenRequest) -> NewToken:
        """Make a personal token; its text is in this answer only."""
        return parse(_NEW_TOKEN, self._connection.send("POST", "/tokens", request))

    def revoke_token(self, token_id: str) -> None:
        """Make a personal token open nothing any more."""
        self._connection.call("DELETE", f"/tokens/{quote(token_id, safe='')}")

    def audit(self, *, before: int | None = None, who: str | None = None, limit: int = 100) -> AuditPage:
        """Return who did or tried what, newest first."""
        return self._connection.get(_AUDIT_PAGE, "/audit", {"before": before, "who": who, "limit": limit})


def _whose(user: str | None) -> str:
    return "/me" if user is None else _user(user)


def _user(name: str) -> str:
    return f"/users/{quote(name, safe='')}"
