"""An endpoint that is asked through the server: as the caller, with answer, status and time in one."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from tests.plain_http import NO_TLS
from tests.server.conftest import PASSWORD
from tests.server.played_gateway import PlayedGateway, ServedWithGateway
from tests.server.test_endpoints import deploy

from pliant.core.access import Permission, Role
from pliant.core.people import TokenSettings
from pliant.server.routes.predictions import MAX_ANSWER_BYTES


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWithGateway]:
    served = ServedWithGateway(Path(tmp_path_factory.mktemp("predictions")))
    deploy(served.http)
    yield served
    served.close()


@pytest.fixture
def gateway(server: ServedWithGateway) -> Iterator[PlayedGateway]:
    with closing(PlayedGateway()) as found:
        server.gateway_url = found.url
        yield found
    server.gateway_url = None


def test_the_body_goes_to_the_gateway_as_it_is_and_the_answer_is_shown_whole(
    server: ServedWithGateway, gateway: PlayedGateway
) -> None:
    answer = server.http.post("/endpoints/digits/predict?form=generate&version=3", content='{"x": [1.0, 2]}')

    assert answer.status_code == 200, answer.text
    shown = answer.json()
    assert shown.pop("took_s") >= 0
    assert shown == {
        "status": 200,
        "content_type": "application/json",
        "text": '{"x": [1.0, 2]}',
        "is_whole": True,
        "version": None,
    }
    server.http.post("/endpoints/digits/predict", json={})
    server.http.post("/endpoints/digits/predict?form=raw", json={})
    assert [scope["path"] for scope, _, _ in gateway.seen] == [
        "/v2/models/digits/versions/3/generate",
        "/v2/models/digits/infer",
        "/dlim/v1/inference/digits",
    ]
    assert not any("predict" in one.action for one in server.store.audit.entries())


def test_a_refusal_of_the_gateway_is_an_answer_like_others(server: ServedWithGateway, gateway: PlayedGateway) -> None:
    gateway.status = 429
    shown = server.http.post("/endpoints/digits/predict", content=b'{"error": "too many"}').json()
    assert (shown["status"], shown["text"]) == (429, '{"error": "too many"}')


def test_of_a_long_answer_the_beginning_is_shown(server: ServedWithGateway, gateway: PlayedGateway) -> None:
    shown = server.http.post("/endpoints/digits/predict", content=b"x" * (MAX_ANSWER_BYTES + 100)).json()
    assert (len(shown["text"]), shown["is_whole"]) == (MAX_ANSWER_BYTES, False)


def test_the_caller_asks_by_cookie_too_and_nobody_whose_it_is_not(
    server: ServedWithGateway, gateway: PlayedGateway
) -> None:
    server.add_user("ada", Role.ADMIN)
    server.add_user("ben")
    credentials = server.people.credentials
    url, page = f"http://{server.address}/v1/endpoints/digits/predict", {"X-Pliant-Console": "1"}
    with httpx.Client(verify=NO_TLS) as browser:
        logon = {"name": "ada", "password": PASSWORD, "cookie": True}
        assert browser.post(f"http://{server.address}/v1/logon", json=logon, headers=page).is_success
        assert browser.post(url, json={}).status_code == 403
        assert browser.post(url, json={}, headers=page).status_code == 200
        (session,) = browser.cookies.values()
    assert gateway.seen[-1][1]["authorization"] == f"Bearer {session}"
    assert httpx.post(url, json={}, auth=("ada", PASSWORD), verify=NO_TLS).status_code == 200
    assert gateway.seen[-1][1]["authorization"].startswith("Bearer plt_")
    num_asked = len(gateway.seen)
    ben = credentials.make_token("ben", TokenSettings(label="t")).text
    may_read = TokenSettings(label="r", scopes=frozenset({Permission.ENDPOINTS_READ}))
    reader = credentials.make_token("ada", may_read).text
    for token, status in ((ben, 404), (reader, 403)):
        shown = {"Authorization": f"Bearer {token}"}
        assert httpx.post(url, json={}, headers=shown, verify=NO_TLS).status_code == status
    assert len(gateway.seen) == num_asked


def test_what_cannot_be_asked_is_said(server: ServedWithGateway) -> None:
    assert server.http.post("/endpoints/digits/predict", json={}).status_code == 503
    server.gateway_url = "http://127.0.0.1:9"
    both = server.http.post("/endpoints/digits/predict?form=raw&version=1", json={})
    assert (both.status_code, both.json()["problems"][0]["field"]) == (422, "version")
    assert server.http.post("/endpoints/none/predict", json={}).status_code == 404
