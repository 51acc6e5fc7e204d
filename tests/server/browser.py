"""A browser as the server sees one: it keeps cookies, and says which page asks."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import httpx
from tests.plain_http import NO_TLS
from tests.server.conftest import PASSWORD, Served

from pliant.core.access import Role

PAGE = {"X-Pliant-Console": "1", "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
"""What a page of the console sends, beside its origin."""


@contextmanager
def browser(served: Served, headers: Mapping[str, str] = PAGE, *, below: str = "") -> Iterator[httpx.Client]:
    """Open a browser on a page of this server, that lies below a path."""
    origin = f"http://{served.address}"
    with httpx.Client(
        base_url=f"{origin}{below}/v1", headers={"Origin": origin, **headers}, timeout=30, verify=NO_TLS
    ) as client:
        yield client


@contextmanager
def logged_on(served: Served, name: str, *, below: str = "", role: Role = Role.USER) -> Iterator[httpx.Client]:
    """Open a browser in which a user, who is made if need be, has logged on with their password."""
    if served.people.accounts.find(name) is None:
        served.add_user(name, role)
    with browser(served, below=below) as client:
        answer = client.post("/logon", json={"name": name, "password": PASSWORD, "cookie": True})
        assert answer.status_code == 200, answer.text
        yield client
