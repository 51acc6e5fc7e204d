"""The session of a browser: what its cookie opens, what it does not, and which pages may send it."""

import re
from collections.abc import Iterator
from http.cookies import SimpleCookie

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response
from tests.server.browser import PAGE, browser, logged_on
from tests.server.conftest import PASSWORD, TOKEN, Served
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from pliant.core.access import Role
from pliant.core.people import TokenSettings
from pliant.ibm.rest.api import IBM
from pliant.people.credentials import MAX_SESSIONS
from pliant.server.app import make_routes
from pliant.server.middleware.authorisation import Needs, declared_access
from pliant.server.middleware.session_cookie import set_cookie
from pliant.server.site import Site

CHANGING = sorted(
    route
    for route, access in declared_access(make_routes(IBM)).items()
    if isinstance(access, Needs) and route[0] not in ("GET", "HEAD")
)
"""Every route that changes something and needs a permission."""


@pytest.fixture
def server(module_server: Served) -> Iterator[Served]:
    yield module_server
    module_server.forget_people()


def test_a_browser_gets_its_session_as_a_cookie_alone(server: Served) -> None:
    server.add_user("ada")
    with browser(server) as page:
        answer = page.post("/logon", json={"name": "ada", "password": PASSWORD, "cookie": True})
        assert answer.status_code == 200
        assert answer.json() == {
            "token": None,
            "expires_at": server.clock.now() + 8 * 3600,
            "name": "ada",
            "role": "user",
        }
        (cookie,) = SimpleCookie(answer.headers["set-cookie"]).values()
        assert cookie.key == f"pliant_{server.site.port}"
        assert (cookie["path"], cookie["max-age"], cookie["samesite"]) == ("/", "28800", "strict")
        assert (bool(cookie["httponly"]), bool(cookie["secure"])) == (True, False)
        me = page.get("/me").json()
        assert (me["name"], me["by"]) == ("ada", "session")


@pytest.mark.parametrize(("scheme", "is_secure"), [("http", False), ("https", True)])
def test_the_cookie_is_for_tls_alone_if_it_came_over_it(server: Served, scheme: str, is_secure: bool) -> None:
    response = Response()
    set_cookie(Request({"type": "http", "app": server.app, "scheme": scheme, "headers": []}), response, "x", 8.0)
    assert ("; Secure" in response.headers["set-cookie"]) is is_secure


def test_logging_off_removes_the_cookie_and_no_other_servers(server: Served) -> None:
    with logged_on(server, "ada") as page:
        kept = page.cookies.get(server.site.cookie)
        answer = page.post("/logoff")
        assert answer.status_code == 204
        assert "clear-site-data" not in answer.headers
        assert not page.cookies
        assert page.get("/me").status_code == 401
    with browser(server, {"Cookie": f"{server.site.cookie}={kept}"}) as thief:
        assert thief.get("/me").status_code == 401, "the session has ended, too"


def test_other_credentials_go_before_the_cookie(server: Served) -> None:
    with logged_on(server, "ada") as page:
        for headers in ({"Authorization": f"Bearer {TOKEN}"}, {"X-Auth-Token": TOKEN}):
            assert page.get("/me", headers=headers).json()["name"] == "admin"
        for headers in ({"Authorization": "Bearer wrong"}, {"X-Auth-Token": "wrong"}, {"Authorization": ""}):
            assert page.get("/me", headers=headers).status_code == 401, "and are not mended by it"


def test_only_a_session_is_one(server: Served) -> None:
    server.add_user("ada")
    token = server.people.credentials.make_token("ada", TokenSettings(label="x")).text
    for text in (TOKEN, token, "", "x", "plt_s0123456789abcdef_" + "0" * 48):
        with browser(server, {**PAGE, "Cookie": f"{server.site.cookie}={text}"}) as page:
            assert page.get("/me").status_code == 401, text


def changing(page: httpx.Client, **headers: str | None) -> int:
    """Return the status of a change with some headers changed, or left out."""
    request = page.build_request("DELETE", "/tokens/t0123456789abcdef")
    for name, value in headers.items():
        key = name.replace("_", "-")
        if value is None:
            del request.headers[key]
        else:
            request.headers[key] = value
    return page.send(request).status_code


def test_a_change_by_cookie_is_asked_for_by_a_page_of_this_server(server: Served) -> None:
    passed = 404
    with logged_on(server, "ada") as page:
        assert changing(page) == passed
        assert changing(page, origin=None, sec_fetch_site=None) == passed, "a browser may say neither"
        assert changing(page, x_pliant_console=None) == 403
        assert changing(page, x_pliant_console="0") == 403
        for origin in (
            "null",
            "",
            "http://evil.example",
            f"https://{server.address}",
            "http://127.0.0.1:1",
            "http://127.0.0.1",
            f"http://localhost:{server.site.port}",
            f"http://{server.address}.evil.example",
            f"http://evil.example@{server.address}x",
            "http://127.0.0.1:x",
        ):
            assert changing(page, origin=origin) == 403, origin
        for site in ("cross-site", "same-site", "none"):
            assert changing(page, sec_fetch_site=site) == 403, site
        assert page.get("/me", headers={"Origin": "http://evil.example", "X-Pliant-Console": ""}).status_code == 200


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"X-Pliant-Console": ""}, "needs the header"),
        ({"Origin": "http://evil.example"}, "a page of another server"),
        ({"Sec-Fetch-Site": "cross-site"}, "a page that is not this server's"),
    ],
)
def test_no_route_that_changes_something_is_open_to_other_pages(
    server: Served, changed: dict[str, str], why: str
) -> None:
    """Not even to an administrator's browser, who may all of it; other APIs do not look at the cookie."""
    with logged_on(server, "alan", role=Role.ADMIN) as page:
        for method, path in CHANGING:
            url = httpx.URL(page.base_url).copy_with(path=re.sub(r"{[^}]*}", "1", path))
            answer = page.request(method, url, headers=changed)
            if path.startswith("/v1/"):
                assert (answer.status_code, why in answer.json()["detail"]) == (403, True), (method, path, answer.text)
            else:
                assert answer.status_code == 401, (method, path, answer.text)
        assert page.get("/me").json()["name"] == "alan"
        assert server.num_shutdowns == 0


def test_a_refused_change_says_why_and_stands_in_the_audit_log(server: Served) -> None:
    with logged_on(server, "ada") as page:
        answer = page.post("/logoff", headers={"Origin": "http://evil.example"})
    assert answer.status_code == 403
    assert "a page of another server asked for this: http://evil.example" in answer.json()["detail"]
    newest = server.http.get("/audit").json()["entries"][0]
    assert (newest["action"], newest["status"]) == ("POST /v1/logoff", 403)


def test_a_page_of_another_server_logs_nobody_on(server: Served) -> None:
    server.add_user("ada")
    body = {"name": "ada", "password": PASSWORD, "cookie": True}
    for headers in ({}, {**PAGE, "Origin": "http://evil.example"}, {**PAGE, "Sec-Fetch-Site": "cross-site"}):
        with browser(server, headers) as page:
            answer = page.post("/logon", json=body)
            assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)
    with browser(server, {}) as program:
        assert program.post("/logon", json={**body, "cookie": False}).json()["token"].startswith("plt_s")


def test_the_cookie_opens_nothing_of_other_apis(server: Served) -> None:
    with logged_on(server, "ada") as page:
        root = httpx.URL(page.base_url)
        for path in (
            "/platform/rest/deeplearning/v1/execs",
            "/platform/rest/conductor/v1/consumers",
            "/dlim/v1/deployment",
            "/metrics",
        ):
            assert page.get(root.copy_with(path=path)).status_code == 401, path
        for path in ("/platform/rest/conductor/v1/auth/logoff", "/auth/v1/logoff"):
            assert page.post(root.copy_with(path=path)).status_code == 401, path
        held = page.cookies[server.site.cookie]
        ibm = page.get(root.copy_with(path="/platform/rest/deeplearning/v1/execs"), headers={"X-User-Token": held})
        assert ibm.status_code == 200, "the session itself is one as any other"


@pytest.mark.parametrize("path", ["/v1/link?task=job-1.1", "/v1/tunnels/x", "/v1/gateway"])
def test_the_cookie_opens_no_websocket(server: Served, path: str) -> None:
    with logged_on(server, "ada") as page:
        headers = {"Cookie": f"{server.site.cookie}={page.cookies[server.site.cookie]}"}
    with (
        pytest.raises(InvalidStatus) as refused,
        connect(f"ws://{server.address}{path}", additional_headers=headers, origin=None) as link,
    ):
        link.recv(timeout=10)
    assert refused.value.response.status_code in (401, 403, 404)


def test_a_browser_is_not_asked_for_a_password_in_a_window_of_its_own(server: Served) -> None:
    for headers in (PAGE, {"Accept": "text/event-stream"}, {"Sec-Fetch-Mode": "cors"}):
        with browser(server, headers) as page:
            assert page.get("/me").headers["www-authenticate"] == 'Bearer realm="Pliant"'
            wrong = page.post("/logon", json={"name": "ada", "password": "wrong password"})
            assert wrong.headers["www-authenticate"] == 'Bearer realm="Pliant"'


def test_a_stream_ends_with_its_session(server: Served) -> None:
    with logged_on(server, "ada") as page, page.stream("GET", "/events/stream", timeout=20) as stream:
        assert stream.status_code == 200
        assert stream.headers["x-accel-buffering"] == "no"
        assert page.post("/logoff").status_code == 204
        for _ in stream.iter_raw():
            pass  # it ends by itself


def test_people_see_and_end_their_sessions(server: Served) -> None:
    with logged_on(server, "ada") as one, logged_on(server, "ada") as other:
        server.clock.advance(61)
        (newest, oldest) = one.get("/me/sessions").json()["sessions"]
        assert {"created_at", "expires_at", "id", "address", "by", "current", "last_used_at"} == set(oldest)
        mine = next(session for session in (newest, oldest) if session["current"])
        others = next(session for session in (newest, oldest) if not session["current"])
        assert (mine["by"], mine["address"], mine["last_used_at"]) == ("password", "127.0.0.1", server.clock.now())
        assert others["last_used_at"] is None
        assert one.delete(f"/me/sessions/{others['id']}").status_code == 204
        assert other.get("/me").status_code == 401
        assert one.delete(f"/me/sessions/{others['id']}").status_code == 404
        assert one.delete(f"/me/sessions/{mine['id']}").status_code == 204
        assert one.get("/me").status_code == 401


def test_nobody_sees_or_ends_the_sessions_of_others_but_administrators(server: Served) -> None:
    with logged_on(server, "ada") as ada, logged_on(server, "bob") as bob:
        (session,) = ada.get("/me/sessions").json()["sessions"]
        assert bob.delete(f"/me/sessions/{session['id']}").status_code == 404
        assert bob.get("/users/ada/sessions").status_code == 403
        assert bob.delete(f"/users/ada/sessions/{session['id']}").status_code == 403
        assert ada.get("/me").status_code == 200
        (seen,) = server.http.get("/users/ada/sessions").json()["sessions"]
        assert (seen["id"], seen["current"]) == (session["id"], False)
        assert server.http.delete(f"/users/bob/sessions/{session['id']}").status_code == 404
        assert server.http.delete(f"/users/ada/sessions/{session['id']}").status_code == 204
        assert ada.get("/me").status_code == 401
    for path in ("/users/nobody/sessions", "/users/ada/sessions/x"):
        assert server.http.request("GET" if path.endswith("s") else "DELETE", path).status_code == 404


def test_the_list_of_sessions_is_bounded_and_holds_no_token(server: Served) -> None:
    server.add_user("eve", Role.VIEWER)
    made = [server.people.credentials.open_session("eve", address="x" * 200) for _ in range(MAX_SESSIONS + 3)]
    answer = server.http.get("/users/eve/sessions")
    assert len(answer.json()["sessions"]) == MAX_SESSIONS
    assert not any(session.text.rpartition("_")[2] in answer.text for session in made)
    assert {len(session["address"]) for session in answer.json()["sessions"]} == {64}


def test_two_servers_of_one_machine_do_not_log_each_other_out() -> None:
    names = [Site(port=1), Site(port=2), Site(port=1, root_path="/a"), Site(port=1, root_path="/a/b")]
    assert [site.cookie for site in names] == ["pliant_1", "pliant_2", "pliant_1~a", "pliant_1~a~b"]
    assert [site.base for site in names] == ["/", "/", "/a/", "/a/b/"]
