"""Behind proxies: who is believed what of a request, and a server that is shown below a path."""

import asyncio
import ipaddress
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message, Receive, Scope, Send
from tests.plain_http import NO_TLS
from tests.server.browser import PAGE, browser, logged_on
from tests.server.conftest import PASSWORD, Served

from pliant.server.middleware.forwarded import ForwardedRequests
from pliant.server.site import Site

LOOPBACK = ipaddress.ip_network("127.0.0.0/8")
PROXIES = (LOOPBACK, ipaddress.ip_network("10.0.0.0/24"), ipaddress.ip_network("fd00::/64"))
BELOW = "/tools/pliant"


def seen(site: Site, client: str, *headers: tuple[str, str], path: str = "/v1/jobs", scheme: str = "http") -> Scope:
    """Return a request as the application sees it."""
    found: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        found.append(scope)

    async def never() -> Message:
        raise AssertionError

    async def ignore(message: Message) -> None:
        raise AssertionError(message)

    raw = [(b"host", b"inside:7311"), *((name.lower().encode(), value.encode("latin-1")) for name, value in headers)]
    scope: dict[str, Any] = {"type": "websocket" if scheme.startswith("ws") else "http", "client": (client, 5)}
    scope |= {"scheme": scheme, "path": path, "raw_path": path.encode(), "headers": raw}
    asyncio.run(ForwardedRequests(app, site)(scope, never, ignore))
    return found[0]


@pytest.mark.parametrize(
    ("client", "forwarded_for", "address"),
    [
        ("127.0.0.1", ["9.9.9.9"], "9.9.9.9"),
        ("127.0.0.1", ["1.1.1.1, 9.9.9.9"], "9.9.9.9"),
        ("127.0.0.1", ["1.1.1.1", "9.9.9.9, 10.0.0.7"], "9.9.9.9"),
        ("127.0.0.1", ["10.0.0.7"], "10.0.0.7"),
        ("127.0.0.1", ["1.1.1.1, unknown"], "127.0.0.1"),
        ("127.0.0.1", ["1.1.1.1, , 10.0.0.7"], "10.0.0.7"),
        ("127.0.0.1", ["9.9.9.9:4711"], "9.9.9.9"),
        ("127.0.0.1", ["[2001:db8::1]:80"], "2001:db8::1"),
        ("127.0.0.1", ["2001:db8::1"], "2001:db8::1"),
        ("::ffff:127.0.0.1", ["9.9.9.9"], "9.9.9.9"),
        ("fd00::5", ["::ffff:9.9.9.9"], "9.9.9.9"),
        ("127.0.0.1", [], "127.0.0.1"),
        ("8.8.8.8", ["9.9.9.9"], "8.8.8.8"),
        ("10.0.1.7", ["9.9.9.9"], "10.0.1.7"),
    ],
)
def test_who_sent_it_is_the_last_that_a_trusted_proxy_says(client: str, forwarded_for: list[str], address: str) -> None:
    site = Site(proxies=PROXIES)
    assert seen(site, client, *(("X-Forwarded-For", one) for one in forwarded_for))["client"][0] == address


@given(st.lists(st.ip_addresses().map(str) | st.text(max_size=20), max_size=5), st.ip_addresses().map(str))
def test_what_a_stranger_writes_never_counts(lies: list[str], stranger: str) -> None:
    """A proxy adds the address that it was asked from; whatever stood before it is not looked at."""
    site = Site(proxies=(LOOPBACK,))
    lie = ",".join(lies).encode("latin-1", "ignore").decode("latin-1")
    if site.trusts(stranger):
        return
    parsed = ipaddress.ip_address(stranger)
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    found = seen(site, "127.0.0.1", ("X-Forwarded-For", f"{lie}, {stranger}"))["client"][0]
    assert found == str(mapped or parsed)
    assert seen(site, stranger, ("X-Forwarded-For", lie))["client"][0] == stranger


@pytest.mark.parametrize(
    ("said", "scheme", "found"),
    [("https", "http", "https"), ("http, HTTPS", "ws", "wss"), ("http", "https", "http"), ("gopher", "http", "http")],
)
def test_a_trusted_proxy_says_whether_it_came_over_tls(said: str, scheme: str, found: str) -> None:
    header = ("X-Forwarded-Proto", said)
    assert seen(Site(proxies=PROXIES), "127.0.0.1", header, scheme=scheme)["scheme"] == found
    assert seen(Site(proxies=PROXIES), "8.8.8.8", header, scheme=scheme)["scheme"] == scheme
    assert seen(Site(), "127.0.0.1", header, scheme=scheme)["scheme"] == scheme


@pytest.mark.parametrize(
    ("said", "host"),
    [
        ("pool.example.org", b"pool.example.org"),
        ("evil.example, pool.example.org:8443", b"pool.example.org:8443"),
        ("[2001:db8::1]:80", b"[2001:db8::1]:80"),
        ("a/b", b"inside:7311"),
        ("user@evil.example", b"inside:7311"),
        ("", b"inside:7311"),
    ],
)
def test_a_trusted_proxy_says_which_name_was_asked(said: str, host: bytes) -> None:
    header = ("X-Forwarded-Host", said)
    headers = seen(Site(proxies=PROXIES), "127.0.0.1", header)["headers"]
    assert [value for name, value in headers if name == b"host"] == [host]
    assert (b"host", b"inside:7311") in seen(Site(proxies=PROXIES), "8.8.8.8", header)["headers"]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (f"{BELOW}/v1/jobs", "/v1/jobs"),
        ("/v1/jobs", "/v1/jobs"),
        (BELOW, "/"),
        (f"{BELOW}/", "/"),
        (f"{BELOW}x/v1", f"{BELOW}x/v1"),
        (f"/x{BELOW}/v1", f"/x{BELOW}/v1"),
        (f"{BELOW}{BELOW}/v1", f"{BELOW}/v1"),
        (f"{BELOW}//evil", "//evil"),
    ],
)
def test_a_server_below_a_path_answers_with_it_and_without(path: str, found: str) -> None:
    scope = seen(Site(root_path=BELOW), "8.8.8.8", path=path)
    assert (scope["path"], scope["raw_path"]) == (found, found.encode())
    assert seen(Site(), "8.8.8.8", path=path)["path"] == path


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server behind a proxy on its machine, below a path."""
    bundle = tmp_path_factory.mktemp("bundle")
    (bundle / "assets").mkdir()
    (bundle / "index.html").write_text('<html><base href="/"></html>')
    (bundle / "assets" / "a-1.css").write_text("p{}")
    site = Site(root_path=BELOW, proxies=(LOOPBACK,), bundle=bundle)
    served = Served(tmp_path_factory.mktemp("served"), site=site)
    yield served
    served.close()


@pytest.fixture
def server(proxied: Served) -> Iterator[Served]:
    yield proxied
    proxied.forget_people()


def ask(served: Served, path: str, **headers: str) -> httpx.Response:
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.get(f"http://{served.address}{path}", headers=headers, timeout=30, verify=NO_TLS)


@pytest.mark.parametrize("below", [BELOW, ""])
def test_all_of_it_is_there_whether_the_proxy_takes_the_path_away_or_not(server: Served, below: str) -> None:
    page = ask(server, f"{below}/jobs/job-1", accept="text/html")
    assert (page.status_code, f'<base href="{BELOW}/">' in page.text) == (200, True)
    assert ask(server, f"{below}/assets/a-1.css").text == "p{}"
    assert "style-src 'sha256-" in ask(server, f"{below}/docs").headers["content-security-policy"]
    assert ask(server, f"{below}/openapi.json").status_code == 200
    assert ask(server, f"{below}/platform/rest/deeplearning/v1/execs").status_code == 401
    led = httpx.get(f"http://{server.address}{below}/v1/healthz/", timeout=30, verify=NO_TLS)
    assert (led.status_code, led.headers.get("location")) == (307, f"{BELOW}/v1/healthz")


def test_a_cookie_is_for_what_lies_below_the_path(server: Served) -> None:
    server.add_user("ada")
    with logged_on(server, "ada", below=BELOW) as page:
        assert page.get("/me").json()["name"] == "ada"
        assert page.post("/logon/links").json()["root_path"] == BELOW
        (cookie,) = page.cookies.jar
        assert (cookie.name, cookie.path) == (server.site.cookie, f"{BELOW}/")
        assert page.get(f"http://{server.address}/v1/me").status_code == 401, "a browser does not send it elsewhere"
        assert page.post("/logoff").status_code == 204
        assert not page.cookies


def test_a_page_behind_a_proxy_is_the_servers_own_by_the_name_that_was_asked(server: Served) -> None:
    server.add_user("ada")
    body = {"name": "ada", "password": PASSWORD, "cookie": True}
    outside = {"X-Forwarded-Host": "pool.example.org", "X-Forwarded-Proto": "https"}
    with browser(server, {**PAGE, **outside, "Origin": "https://pool.example.org"}) as page:
        answer = page.post("/logon", json=body)
        assert (answer.status_code, "; Secure" in answer.headers["set-cookie"]) == (200, True)
        assert "strict-transport-security" not in answer.headers, "that is the proxy's to say"
    for origin in (f"http://{server.address}", "http://pool.example.org", "https://evil.example"):
        with browser(server, {**PAGE, **outside, "Origin": origin}) as page:
            assert page.post("/logon", json=body).status_code == 403, origin


def test_a_guesser_behind_the_proxy_keeps_only_themselves_out(server: Served) -> None:
    server.add_user("ada")

    def guess(address: str, password: str = "wrong password") -> int:
        body = {"name": "ada", "password": password}
        with server.client({"X-Forwarded-For": address}) as client:
            return client.post("/logon", json=body).status_code

    assert guess("9.9.9.9", PASSWORD) == 200
    assert [guess("8.8.8.8") for _ in range(6)] == [401] * 5 + [429]
    assert guess("9.9.9.9", PASSWORD) == 200
    entries = server.http.get("/audit", params={"limit": 2}).json()["entries"]
    assert [entry["address"] for entry in entries] == ["9.9.9.9", "8.8.8.8"]
