"""Every route of the app, asked for by every role and by nobody, opens to whom the allow-list says and to nobody else.

A new route is covered as soon as the app has it: it has to be in the list.
"""

from base64 import b64encode
from typing import Any

import httpx
import pytest
from fastapi import Depends
from fastapi.routing import APIRouter, iter_route_contexts
from tests.server.conftest import PASSWORD, TOKEN, Served

from pliant.api.link import LINK_PATH
from pliant.api.people import TokenRequest
from pliant.core.access import ALLOWED, Permission, Role
from pliant.people.throttle import WINDOW_S
from pliant.server.middleware.access import NEEDED, OPEN, Route, allowed

REFUSED = (401, 403)
WAYS = {
    Role.ADMIN: "X-Auth-Token file",
    Role.OPERATOR: "X-Auth-Token token",
    Role.USER: "Authorization session",
    Role.VIEWER: "Authorization password",
}
LOGONS = {route for route in OPEN if route[1].endswith("/logon")}
"""They judge for themselves what is shown, and take nothing but name and password."""
LOGOFFS = {route for route in NEEDED if route[1].endswith("/logoff")}
NOT_HERE = 501
"""What IBM's server has and this one has not."""


@pytest.fixture(scope="module")
def served(module_server: Served) -> Served:
    for role in Role:
        module_server.add_user(f"one-{role.value}", role)
    return module_server


@pytest.fixture(scope="module")
def routes(served: Served) -> list[Route]:
    """Every method and path that the app answers at, its control link apart."""
    found = [
        (method, route.path)
        for route in iter_route_contexts(served.app.routes)
        if route.path is not None and route.path != LINK_PATH
        for method in (route.methods or ())
        if method not in ("HEAD", "OPTIONS")
    ]
    return sorted(found)


def ask(client: httpx.Client, route: Route) -> int:
    """Ask for a route with dummy values and no body; return the status without waiting for the end of events."""
    method, path = route
    while "{" in path:
        before, _, rest = path.partition("{")
        path = f"{before}1{rest.partition('}')[2]}"
    with client.stream(method, httpx.URL(client.base_url).copy_with(path=path)) as response:
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.read()
        return response.status_code


def test_the_allow_list_names_every_route_and_no_other(routes: list[Route]) -> None:
    assert sorted(routes) == sorted([*NEEDED, *OPEN])
    assert not set(NEEDED) & OPEN


@pytest.mark.parametrize("role", Role)
def test_a_role_may_what_the_list_says(served: Served, routes: list[Route], role: Role) -> None:
    """Each role comes by another way, so that every route is asked by every way, too."""
    with served.client(shown(served, WAYS[role], f"one-{role.value}")) as client:
        found = {route: ask(client, route) for route in routes if route not in LOGONS | LOGOFFS}
    for route in LOGOFFS:
        with served.client(shown(served, WAYS[role], f"one-{role.value}")) as client:
            found[route] = ask(client, route)
    may = {route for route in found if route in OPEN or NEEDED[route] in ALLOWED[role]}
    assert {route for route, status in found.items() if status not in REFUSED} == may
    assert {status for route, status in found.items() if route not in may} <= {403}
    assert {route: status for route, status in found.items() if status >= 500 and status != NOT_HERE} == {}


def test_nobody_may_more_than_log_on(served: Served, routes: list[Route]) -> None:
    with served.client() as client:
        found = {route: ask(client, route) for route in routes}
    assert {route for route, status in found.items() if status != 401} - LOGONS == OPEN - LOGONS
    assert {route: status for route, status in found.items() if status >= 500 and status != NOT_HERE} == {}


@pytest.mark.parametrize("bit", range(len(Permission).bit_length()))
def test_a_scope_opens_its_routes_only(served: Served, routes: list[Route], bit: int) -> None:
    """Every two scopes are told apart by one of these tokens, and so are the routes that they open."""
    scopes = frozenset(permission for number, permission in enumerate(Permission, 1) if number >> bit & 1)
    made = served.people.tokens.make("one-admin", TokenRequest(label="x", scopes=scopes))
    with served.client({"Authorization": f"Bearer {made.text}"}) as client:
        found = {route: ask(client, route) for route in routes}
    may = {route for route in routes if route in OPEN or NEEDED[route] in scopes} - LOGONS
    assert {route for route, status in found.items() if status not in REFUSED} - LOGONS == may


def basic(name: str, password: str) -> str:
    return "Basic " + b64encode(f"{name}:{password}".encode()).decode()


def shown(served: Served, way: str, name: str) -> dict[str, str]:
    """Return the headers that show a user in one of the ways."""
    header, _, what = way.partition(" ")
    if what == "password":
        return {header: basic(name, PASSWORD)}
    text = {
        "session": lambda: served.people.sessions.open(name).token,
        "token": lambda: served.people.tokens.make(name, TokenRequest(label="x")).text,
        "file": lambda: TOKEN,
    }[what]()
    return {header: f"Bearer {text}" if header == "Authorization" else text}


@pytest.mark.parametrize("route", sorted(LOGONS))
def test_every_logon_opens_to_name_and_password_and_to_nothing_else(served: Served, route: Route) -> None:
    method, path = route
    served.clock.advance(WINDOW_S)
    for password, status in ((PASSWORD, 200), ("wrong", 401), (TOKEN, 401)):
        with served.client({"Authorization": basic("one-viewer", password)}) as client:
            url = httpx.URL(client.base_url).copy_with(path=path)
            body = {"name": "one-viewer", "password": password} if method == "POST" else None
            assert client.request(method, url, json=body).status_code == status
    with served.client({"Authorization": f"Bearer {TOKEN}"}) as client:
        assert client.request(method, httpx.URL(client.base_url).copy_with(path=path)).status_code in (401, 422)


def test_a_jobs_own_token_opens_no_route(served: Served, routes: list[Route]) -> None:
    headers = served.link_headers("job-1")
    with served.client(headers) as client:
        assert {ask(client, route) for route in routes if route not in OPEN} == {401}
    with served.client({"X-Auth-Token": headers["Authorization"].split()[1]}) as client:
        assert client.get("/jobs").status_code == 401


def test_a_route_that_nobody_listed_is_open_to_nobody(server: Any) -> None:
    router = APIRouter()
    router.add_api_route("/v1/unlisted", lambda: "secret")
    server.app.include_router(router, dependencies=[Depends(allowed)])
    answer = server.http.get("/unlisted")
    assert answer.status_code == 403
    assert "GET /v1/unlisted is open to nobody" in answer.json()["detail"]


def test_the_description_says_where_credentials_are_needed(served: Served) -> None:
    described = httpx.get(f"http://{served.address}/openapi.json", timeout=30).json()
    schemes = described["components"]["securitySchemes"]
    assert [(scheme["type"], scheme.get("scheme") or scheme["name"]) for scheme in schemes.values()] == [
        ("http", "basic"),
        ("http", "bearer"),
        ("apiKey", "X-Auth-Token"),
    ]
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            expected: list[dict[str, list[str]]] = (
                [] if (method.upper(), path) in OPEN else [{scheme: []} for scheme in schemes]
            )
            assert operation.get("security", []) == expected, (method, path)
