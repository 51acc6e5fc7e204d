"""Every route of the app, asked for by every role and by nobody, opens to whom it says and to nobody else.

A new route is covered as soon as the app has it: an app with a route that does not say it does not start.
"""

from base64 import b64encode
from collections import Counter
from pathlib import Path

import httpx
import pytest
from fastapi.routing import APIRoute
from tests.server.conftest import PASSWORD, TOKEN, Served

from pliant.core.access import ALLOWED, Permission, Role
from pliant.core.people import TokenSettings
from pliant.entry.routes import page
from pliant.ibm.rest.api import IBM
from pliant.people.attempts import FORGOTTEN_S
from pliant.server.app import OtherApi, make_app, make_routes
from pliant.server.console.bundle import ROOT_FILES
from pliant.server.middleware.authorisation import Needs, Route, declared_access
from pliant.server.routing import Routes, declare

REFUSED = (401, 403)
WAYS = {
    Role.ADMIN: "X-Auth-Token file",
    Role.OPERATOR: "X-Auth-Token token",
    Role.USER: "Authorization session",
    Role.VIEWER: "Authorization password",
}
DECLARED = declared_access(make_routes(IBM))
NEEDED = {route: access.permission for route, access in DECLARED.items() if isinstance(access, Needs)}
OPEN = {route for route in DECLARED if route not in NEEDED and route[0] != "WEBSOCKET"}
LOGONS = {route for route in OPEN if route[1].endswith(("/logon", "/auth/token"))}
"""They judge for themselves what is shown, and take nothing but name and password."""
CONSOLE = {
    (method, path)
    for method in ("GET", "HEAD")
    for path in ("/", "/{path:path}", "/assets/{name:path}", *(f"/{name}" for name in ROOT_FILES))
}
"""Its page and what that loads hold nothing that is anybody's."""
NOT_BY_TOKEN = {("POST", "/v1/logon/links")}
"""A personal token is never worth more than it was made for."""
LOGOFFS = {route for route in NEEDED if route[1].endswith("/logoff")}
NOT_HERE = 501
"""What IBM's server has and this one has not."""
PAGE = Path(__file__).parents[2] / "docs" / "routes.md"


@pytest.fixture(scope="module")
def served(module_server: Served) -> Served:
    for role in Role:
        module_server.add_user(f"one-{role.value}", role)
    return module_server


@pytest.fixture(scope="module")
def routes() -> list[Route]:
    """Every method and path that the app answers at, its control link apart."""
    return sorted({*NEEDED, *OPEN})


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


def test_few_routes_are_open() -> None:
    apis = {("GET", path) for path in ("/v1/healthz", "/docs", "/openapi.json")}
    assert apis | CONSOLE | {("POST", "/v1/logon/link")} == OPEN - LOGONS
    assert {
        ("POST", "/v1/logon"),
        ("GET", "/auth/v1/logon"),
        ("GET", "/platform/rest/conductor/v1/auth/logon"),
        ("POST", "/dlim/v1/auth/token"),
    } == LOGONS
    assert len(NEEDED) > 200


def test_no_route_is_there_twice() -> None:
    routes = [route for route in make_routes(IBM).routes if isinstance(route, APIRoute)]
    ways = Counter((route.path, method) for route in routes for method in route.methods or ())
    assert {way: num for way, num in ways.items() if num > 1} == {}


def test_the_page_for_auditors_is_what_the_routes_declare() -> None:
    assert PAGE.read_text() == page(), "run: python -m pliant.entry.routes > docs/routes.md"


@pytest.mark.parametrize("role", Role)
def test_a_role_may_what_the_list_says(served: Served, routes: list[Route], role: Role) -> None:
    """Each role comes by another way, so that every route is asked by every way, too."""
    with served.client(shown(served, WAYS[role], f"one-{role.value}")) as client:
        found = {route: ask(client, route) for route in routes if route not in LOGONS | LOGOFFS}
    for route in LOGOFFS:
        with served.client(shown(served, WAYS[role], f"one-{role.value}")) as client:
            found[route] = ask(client, route)
    may = {route for route in found if route in OPEN or NEEDED[route] in ALLOWED[role]}
    if WAYS[role].endswith("token"):
        may -= NOT_BY_TOKEN
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
    made = served.people.credentials.make_token("one-admin", TokenSettings(label="x", scopes=scopes))
    with served.client({"Authorization": f"Bearer {made.text}"}) as client:
        found = {route: ask(client, route) for route in routes}
    may = {route for route in routes if route in OPEN or NEEDED[route] in scopes} - LOGONS - NOT_BY_TOKEN
    assert {route for route, status in found.items() if status not in REFUSED} - LOGONS == may


def basic(name: str, password: str) -> str:
    return "Basic " + b64encode(f"{name}:{password}".encode()).decode()


def shown(served: Served, way: str, name: str) -> dict[str, str]:
    """Return the headers that show a user in one of the ways."""
    header, _, what = way.partition(" ")
    if what == "password":
        return {header: basic(name, PASSWORD)}
    text = {
        "session": lambda: served.people.credentials.open_session(name).text,
        "token": lambda: served.people.credentials.make_token(name, TokenSettings(label="x")).text,
        "file": lambda: TOKEN,
    }[what]()
    return {header: f"Bearer {text}" if header == "Authorization" else text}


@pytest.mark.parametrize("route", sorted(LOGONS))
def test_every_logon_opens_to_name_and_password_and_to_nothing_else(served: Served, route: Route) -> None:
    method, path = route
    served.clock.advance(FORGOTTEN_S)
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


def planted(*, dependencies: int) -> OtherApi:
    """Return an API with a route that declares so many times who may use it."""
    routes = Routes("/v1/planted")
    again = [one for _ in range(dependencies) for one in declare(Permission.SELF)]
    routes.router.add_api_route("", lambda: "secret", dependencies=again)
    return OtherApi(routes=(routes,), middleware=lambda app: app)


@pytest.mark.parametrize("dependencies", [0, 2])
def test_an_application_with_a_route_that_does_not_say_who_may_use_it_does_not_start(
    served: Served, dependencies: int
) -> None:
    with pytest.raises(RuntimeError, match=r"GET /v1/planted does not say who may use it"):
        make_app(served.app.state.context, planted(dependencies=dependencies))
    assert make_app(served.app.state.context, planted(dependencies=1)).routes


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
