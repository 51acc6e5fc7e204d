"""Every answer tells browsers to run, frame, guess and keep nothing of it: errors, streams and IBM's routes, too."""

import asyncio
import base64
import hashlib
import re
from typing import Any

import httpx
import pytest
from starlette.types import Message
from tests.plain_http import NO_TLS
from tests.server.conftest import PASSWORD
from tests.server.played import Played, set_scene
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from pliant.server.app import make_standby
from pliant.server.middleware.secure_headers import SecureHeaders

IBM = "/platform/rest/deeplearning/v1"
EXPECTED = {
    "cache-control": "no-store, max-age=0",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "cross-origin-embedder-policy": "require-corp",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "deny",
    "x-permitted-cross-domain-policies": "none",
}
"""OWASP's secure headers with what they have to say here."""
ANSWERS = {
    "a list": (200, "GET", "/v1/jobs"),
    "an open route": (200, "GET", "/v1/healthz"),
    "a log": (200, "GET", "/v1/jobs/job-1/logs"),
    "a result": (200, "GET", "/v1/jobs/job-1/result"),
    "the description": (200, "GET", "/openapi.json"),
    "nothing there": (404, "GET", "/no/such/thing"),
    "no such method": (405, "DELETE", "/v1/jobs"),
    "wrong input": (422, "POST", "/v1/users"),
    "not found": (404, "GET", "/v1/jobs/job-99"),
    "a list of IBM": (200, "GET", f"{IBM}/execs"),
    "an error of IBM": (404, "GET", f"{IBM}/execs/no"),
    "nothing of IBM": (404, "GET", "/platform/rest/no"),
}


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Any:
    pool = Played(tmp_path_factory.mktemp("pool"))
    yield set_scene(pool)
    pool.close()


def lacking(answer: httpx.Response, expected: dict[str, str] = EXPECTED) -> dict[str, str]:
    return {name: value for name, value in expected.items() if answer.headers.get(name) != value}


@pytest.mark.parametrize(("status", "method", "path"), ANSWERS.values(), ids=ANSWERS.keys())
def test_an_answer_carries_them(pool: Played, status: int, method: str, path: str) -> None:
    answer = httpx.request(method, pool.url + path, headers={"X-Auth-Token": pool.token}, timeout=30, verify=NO_TLS)
    assert answer.status_code == status, answer.text
    assert lacking(answer) == {}
    assert "camera=()" in answer.headers["permissions-policy"]
    assert "strict-transport-security" not in answer.headers, "it is for TLS alone"
    assert "server" not in answer.headers


def test_who_is_refused_gets_them_too(pool: Played) -> None:
    for path in ("/v1/jobs", f"{IBM}/execs", "/v1/backup"):
        answer = httpx.get(pool.url + path, timeout=30, verify=NO_TLS)
        assert answer.status_code == 401
        assert lacking(answer) == {}
    with pytest.raises(InvalidStatus) as refused, connect(f"ws://{pool.address}/v1/link?task=job-1.1"):
        pass
    assert refused.value.response.headers["X-Content-Type-Options"] == "nosniff"


def test_files_of_people_are_handed_out_as_files(pool: Played) -> None:
    answer = pool.http.get("/jobs/job-1/result")
    assert answer.headers["content-disposition"].startswith("attachment")
    assert "sandbox" in answer.headers["content-security-policy"]


def test_the_page_of_the_routes_has_its_own_style_and_runs_nothing(pool: Played) -> None:
    answer = httpx.get(f"{pool.url}/docs", timeout=30, verify=NO_TLS)
    policy = answer.headers["content-security-policy"]
    (style,) = re.findall(r"<style>(.*?)</style>", answer.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == (
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        f"style-src 'sha256-{digest}'; sandbox"
    )
    assert lacking(answer, {name: value for name, value in EXPECTED.items() if name != "content-security-policy"}) == {}


@pytest.mark.parametrize("path", ["/v1/logoff", "/auth/v1/logoff"])
def test_a_log_off_clears_what_a_browser_keeps(pool: Played, path: str) -> None:
    if pool.people.accounts.find("ada") is None:
        pool.add_user("ada")
    token = pool.http.post("/logon", json={"name": "ada", "password": PASSWORD}).json()["token"]
    answer = httpx.post(pool.url + path, headers={"X-Auth-Token": token}, timeout=30, verify=NO_TLS)
    assert answer.is_success, answer.text
    assert answer.headers["clear-site-data"] == '"cache", "cookies", "storage"'


def answered(app: Any, scheme: str = "http") -> dict[str, str]:
    """Return the headers of what an application answers."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b"", "scheme": scheme}
    asyncio.run(app(scope, receive, send))
    return {name.decode(): value.decode() for name, value in sent[0]["headers"]}


def test_a_standby_answers_with_them() -> None:
    assert answered(make_standby(lambda: None)).items() >= EXPECTED.items()


def test_over_tls_browsers_are_told_to_stay_with_it_and_a_route_keeps_its_own() -> None:
    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"cache-control", b"max-age=5")]})

    headers = answered(SecureHeaders(app), "https")
    assert headers["strict-transport-security"] == "max-age=31536000; includeSubDomains"
    assert headers["cache-control"] == "max-age=5"


def test_an_error_that_no_route_foresaw_carries_them(pool: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(pool.people.credentials, "list_tokens", fail)
    answer = pool.http.get("/tokens")
    assert answer.status_code == 500
    assert lacking(answer) == {}
