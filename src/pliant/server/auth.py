"""Who may: one administrator's token for the REST routes, compared in constant time."""

import hmac
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from pliant.core.errors import Unauthorized

OWNER = "admin"
"""Owner of every job until there are users."""

_BEARER = HTTPBearer(auto_error=False, description="The token in the file `token` of the server's state folder.")


def same(given: str, expected: str) -> bool:
    """Compare two secrets in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), expected.encode())


def require_token(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]
) -> None:
    """Refuse a request without the token.

    Raises:
        Unauthorized: no token, or a wrong one.
    """
    if credentials is None:
        raise Unauthorized("no token was sent; send `Authorization: Bearer TOKEN` with the token of the state folder")
    if not same(credentials.credentials, request.app.state.token):
        raise Unauthorized("the token is not this server's; use the one in the file `token` of its state folder")


def bearer_of(header: str) -> str:
    """Return the token of an Authorization header; empty if it holds none."""
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
