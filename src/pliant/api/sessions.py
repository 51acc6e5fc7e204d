"""The REST bodies about one-time links and sessions. A code is in the one answer that gives it, and never again."""

import re
from dataclasses import dataclass, field
from typing import Annotated, Final
from urllib.parse import quote, urlsplit

from pydantic import Field

from pliant.api.request import Request
from pliant.core.errors import InvalidInput

MAX_TO: Final = 1000
_INSIDE: Final = re.compile(r"/(?!/)[!-\[\]-~]*")
"""A path of printable ASCII, without backslashes, that does not begin like the name of another server."""


class LogonLinkRequest(Request):
    """Somebody who comes by a one-time link."""

    code: Annotated[str, Field(min_length=1, max_length=200, repr=False)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogonLinkView:
    """A one-time link that was made."""

    code: str = field(repr=False)
    """`ADDRESS/ROOT_PATH/logon#code=CODE` logs a browser on; it is shown this once."""
    expires_at: float
    root_path: str
    """Below which the pages of this server lie, such as `/pliant`; empty if they lie below no path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    """A session, without its token."""

    id: str
    created_at: float
    expires_at: float
    last_used_at: float | None
    """To the minute; null: not yet."""
    by: str
    """How it was begun: `password`, or `link` for a one-time link."""
    address: str
    """Where it was begun; empty: not known."""
    current: bool
    """It is the one that this was asked with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPage:
    """All sessions of a user that go on, newest first: 50 at most."""

    sessions: tuple[SessionView, ...]


def link_url(url: str, link: LogonLinkView, to: str | None = None) -> str:
    """Return the address that logs a browser on, and leads it to a page of the console.

    The code stands behind `#`, so that it comes into no log and no `Referer`.

    Args:
        url: of the server, with or without the path that its pages lie below.
        link: that was made.
        to: the path of the page, below that path.

    Raises:
        InvalidInput: it is no path, or leads to another server.
    """
    base = url.rstrip("/")
    if not urlsplit(base).path.endswith(link.root_path):
        base += link.root_path
    query = "" if to is None else f"?to={quote(inside(to), safe='/')}"
    return f"{base}/logon{query}#code={link.code}"


def inside(to: str) -> str:
    """Return the path of a page if it leads nowhere else.

    Raises:
        InvalidInput: it is no path, or leads to another server.
    """
    steps = urlsplit(to).path.split("/") if to.startswith("/") and not to.startswith("//") else [".."]
    if len(to) > MAX_TO or not _INSIDE.fullmatch(to) or not {".", ".."}.isdisjoint(steps):
        raise InvalidInput.at("to", f"{to!r:.80} is no page of this server; give a path like /jobs/job-7")
    return to
