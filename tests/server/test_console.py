"""The console as it is served: its page at every path that is nobody else's, and what the page loads."""

import gzip
import http.client
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.plain_http import NO_TLS
from tests.server.conftest import TOKEN, Served

from pliant.ibm.rest.api import IBM
from pliant.server.accept import encodings_of, wants_page
from pliant.server.app import make_routes
from pliant.server.middleware.authorisation import declared_access
from pliant.server.site import API_FOLDERS, Site

INDEX = """<!doctype html><html><head><base href="/">
<meta property="csp-nonce" nonce="__CSP_NONCE__"><style nonce="__CSP_NONCE__">p{}</style></head></html>"""
SCRIPT = b"console.log(1)\n"
HTML = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
"""As browsers ask for a page."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    bundle = tmp_path_factory.mktemp("bundle")
    (bundle / "assets").mkdir()
    (bundle / "index.html").write_text(INDEX)
    (bundle / "favicon.svg").write_text("<svg/>")
    (bundle / "notes.txt").write_text("not for others")
    (bundle / "assets" / "index-a1.js").write_bytes(SCRIPT)
    (bundle / "assets" / "index-a1.js.gz").write_bytes(gzip.compress(SCRIPT, mtime=0))
    (bundle / "assets" / "index-a1.js.br").write_bytes(b"brotli")
    (bundle / "assets" / "inter-b2.woff2").write_bytes(b"font")
    (bundle / "assets" / ".hidden.js").write_bytes(b"hidden")
    (bundle / "assets" / "page.html").write_bytes(b"<script>")
    (bundle / "assets" / "folder.js").mkdir()
    server = Served(tmp_path_factory.mktemp("served"), site=Site(bundle=bundle))
    yield server
    server.close()


def get(served: Served, path: str, headers: dict[str, str] = HTML, method: str = "GET") -> httpx.Response:
    """Ask for a path as it is written."""
    url = httpx.URL(f"http://{served.address}").copy_with(raw_path=path.encode())
    with httpx.Client(verify=NO_TLS, timeout=30) as client:
        request = client.build_request(method, url, headers={"Accept-Encoding": "identity", **headers})
        return client.send(request)


@pytest.mark.parametrize("path", ["/", "/jobs/job-7/metrics", "/logon?to=%2Fjobs", "/v1x", "/a%2F..%2Fb", "//evil"])
def test_every_path_of_a_page_is_the_page(served: Served, path: str) -> None:
    answer = get(served, path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.headers["cache-control"] == "no-store, max-age=0"
    (nonce,) = set(re.findall(r'nonce="([^"]*)"', answer.text))
    assert len(nonce) >= 22
    assert answer.headers["content-security-policy"] == (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data: blob:; "
        "font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; form-action 'self'; "
        "base-uri 'self'; frame-ancestors 'none'; object-src 'none'"
    )
    assert {answer.headers[f"cross-origin-{what}-policy"] for what in ("opener", "resource")} == {"same-origin"}
    assert (answer.headers["referrer-policy"], answer.headers["x-content-type-options"]) == ("no-referrer", "nosniff")
    assert "clipboard-write=(self)" in answer.headers["permissions-policy"]
    assert '<base href="/">' in answer.text
    assert nonce not in get(served, path).text, "another one for every answer"


def test_only_its_root_is_a_page_for_who_does_not_ask_for_one(served: Served) -> None:
    for headers in ({"Accept": "*/*"}, {"Accept": "application/json"}, {"Accept": "text/html;q=0"}, {"Accept": ""}):
        assert get(served, "/", headers).status_code == 200
        answer = get(served, "/jobs/job-7", headers)
        assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1", 404),
        ("GET", "/assets", 307),
        ("GET", "/assets/nothing-c3.js", 404),
        ("GET", "/platform/rest/nothing", 404),
        ("GET", "/v1/jobs/job-1/stop", 405),
        ("POST", "/jobs", 404),
        ("DELETE", "/", 405),
        ("POST", "/nothing", 404),
    ],
)
def test_what_is_no_page_is_none_to_browsers_either(served: Served, method: str, path: str, status: int) -> None:
    answer = get(served, path, {**HTML, "X-Auth-Token": TOKEN}, method)
    assert answer.status_code == status
    assert "<html" not in answer.text
    assert answer.headers["content-security-policy"].endswith("sandbox")


@pytest.mark.parametrize(
    ("accepted", "encoding", "content"),
    [
        ("gzip, deflate, br, zstd", "br", b"brotli"),
        ("gzip", "gzip", gzip.compress(SCRIPT, mtime=0)),
        ("br;q=0, gzip;q=0.5", "gzip", gzip.compress(SCRIPT, mtime=0)),
        ("gzip;q=0.000, BR;q=0.", None, SCRIPT),
        ("", None, SCRIPT),
    ],
)
def test_a_file_is_sent_as_it_was_compressed(
    served: Served, accepted: str, encoding: str | None, content: bytes
) -> None:
    with httpx.Client(verify=NO_TLS, timeout=30) as client:
        url = f"http://{served.address}/assets/index-a1.js"
        with client.stream("GET", url, headers={"Accept-Encoding": accepted}) as answer:
            raw = b"".join(answer.iter_raw())
    assert (answer.status_code, answer.headers.get("content-encoding")) == (200, encoding)
    assert len(raw) == len(content)
    assert raw == content or encoding == "gzip"
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["vary"] == "Accept-Encoding"
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_files_have_their_types_and_are_found_by_head_too(served: Served) -> None:
    assert get(served, "/assets/inter-b2.woff2").headers["content-type"] == "font/woff2"
    icon = get(served, "/favicon.svg")
    assert (icon.headers["content-type"], icon.headers["cache-control"]) == ("image/svg+xml", "public, max-age=3600")
    assert "sandbox" in icon.headers["content-security-policy"], "it runs nothing, also by itself"
    for path in ("/", "/jobs", "/assets/inter-b2.woff2", "/favicon.svg"):
        head = get(served, path, method="HEAD")
        assert (head.status_code, head.content) == (200, b"")
    assert get(served, "/assets/nothing.js", method="HEAD").status_code == 404
    assert get(served, "/manifest.webmanifest").status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "/assets/..%2findex.html",
        "/assets/..%2F..%2F..%2Fapp.py",
        "/assets/%2e%2e/notes.txt",
        "/assets/..%5cnotes.txt",
        "/assets//etc/passwd",
        "/assets/%2Fetc%2Fpasswd",
        "/assets/.hidden.js",
        "/assets/index-a1.js%00.txt",
        "/assets/index-a1.js.gz",
        "/assets/index-a1.js/",
        "/assets/page.html",
        "/assets/folder.js",
        "/assets/" + "x" * 300 + ".js",
        "/assets/%ff.js",
        "/assets/",
    ],
)
def test_no_path_leads_out_of_the_folder_or_to_what_is_not_served(served: Served, path: str) -> None:
    answer = get(served, path)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json"), answer.text


def test_dots_lead_nowhere_though_no_client_tidies_them_up(served: Served) -> None:
    for path in ("/assets/../notes.txt", "/assets/../../app.py", "/assets/./../notes.txt"):
        connection = http.client.HTTPConnection("127.0.0.1", served.site.port, timeout=30)
        connection.putrequest("GET", path)
        connection.putheader("Accept", HTML["Accept"])
        connection.endheaders()
        answer = connection.getresponse()
        assert (answer.status, answer.headers["content-type"]) == (404, "application/problem+json"), path
        connection.close()


def test_a_checkout_without_a_built_console_says_how_to_build_it(module_server: Served, tmp_path: Path) -> None:
    module_server.app.state.site = Site(bundle=tmp_path / "nothing")
    answer = get(module_server, "/jobs")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "<code>make console</code>" in answer.text
    assert answer.headers["content-security-policy"].endswith("sandbox")
    assert get(module_server, "/assets/x.js").status_code == 404


def test_no_route_of_an_api_is_taken_for_a_page() -> None:
    folders = {path.split("/")[1] for _, path in declared_access(make_routes(IBM)) if path.count("/") > 1}
    assert folders | {"docs", "metrics", "openapi.json"} == API_FOLDERS


def test_what_is_accepted_is_read_as_it_is_written() -> None:
    assert wants_page("application/json, TEXT/HTML;charset=utf-8 ;q=0.5")
    assert not wants_page("text/htmlx, */*, text/html; q=0.0")
    assert encodings_of("gzip ; q=1.0, br;q=0,,deflate") == {"gzip", "deflate"}
