"""A one-time link over HTTP: who makes one, which browser it logs on, what it leaves behind."""

from collections.abc import Iterator

import pytest
from tests.server.browser import PAGE, browser, logged_on
from tests.server.conftest import PASSWORD, TOKEN, Served

from pliant.core.people import TokenSettings
from pliant.entry.server.rooms.people import recall_addresses
from pliant.people.attempts import AT_ADDRESS
from pliant.people.logon_links import LINK_S


@pytest.fixture
def server(module_server: Served) -> Iterator[Served]:
    yield module_server
    module_server.forget_people()


def code_of(served: Served, name: str) -> str:
    """Return the code of a link that a user made with a session, as `pliant console` does."""
    if served.people.accounts.find(name) is None:
        served.add_user(name)
    session = served.people.credentials.open_session(name).text
    with served.client({"Authorization": f"Bearer {session}"}) as client:
        made = client.post("/logon/links")
    assert made.status_code == 201, made.text
    assert made.json() == {
        "code": made.json()["code"],
        "expires_at": served.clock.now() + LINK_S,
        "root_path": "",
    }
    return str(made.json()["code"])


def test_a_link_logs_a_browser_on_once(server: Served) -> None:
    code = code_of(server, "ada")
    with browser(server) as page:
        answer = page.post("/logon/link", json={"code": code})
        assert answer.status_code == 200
        assert (answer.json()["name"], answer.json()["token"]) == ("ada", None)
        assert page.get("/me").json()["by"] == "session"
        (mine,) = [one for one in page.get("/me/sessions").json()["sessions"] if one["current"]]
        assert mine["by"] == "link"
    with browser(server) as late:
        again = late.post("/logon/link", json={"code": code})
        assert (again.status_code, "set-cookie" in again.headers) == (401, False)
        assert code not in again.text


def test_a_link_that_comes_late_opens_nothing(server: Served) -> None:
    code = code_of(server, "ada")
    server.clock.advance(LINK_S)
    with browser(server) as page:
        assert page.post("/logon/link", json={"code": code}).status_code == 401


def test_the_token_of_the_file_makes_links_and_a_personal_token_does_not(server: Served) -> None:
    server.add_user("admin")
    assert server.http.post("/logon/links").status_code == 201
    server.add_user("ada")
    token = server.people.credentials.make_token("ada", TokenSettings(label="x")).text
    with server.client({"X-Auth-Token": token}) as client:
        refused = client.post("/logon/links")
    assert (refused.status_code, "makes no links to log on" in refused.json()["detail"]) == (403, True)
    with server.client() as nobody:
        assert nobody.post("/logon/links").status_code == 401


def test_no_browser_becomes_somebody_elses(server: Served) -> None:
    code = code_of(server, "bob")
    with logged_on(server, "ada") as page:
        refused = page.post("/logon/link", json={"code": code})
        assert (refused.status_code, page.get("/me").json()["name"]) == (409, "ada")
        assert "logged on as ada, and the link is bob's; log off first" in refused.json()["detail"]
        own = page.post("/logon/links").json()["code"]
        assert page.post("/logon/link", json={"code": own}).json()["name"] == "ada"
        page.post("/logoff")
        assert page.post("/logon/link", json={"code": code}).json()["name"] == "bob", "it was worth as much as before"


def test_a_page_of_another_server_redeems_none(server: Served) -> None:
    code = code_of(server, "ada")
    for headers in ({}, {**PAGE, "Origin": "http://evil.example"}, {**PAGE, "Sec-Fetch-Site": "same-site"}):
        with browser(server, headers) as page:
            assert page.post("/logon/link", json={"code": code}).status_code == 403
    with browser(server) as page:
        assert page.post("/logon/link", json={"code": code}).status_code == 200, "nor spoils it"
        for body in ({}, {"code": ""}, {"code": "x" * 201}, {"code": code, "to": "//evil.example"}):
            assert page.post("/logon/link", json=body).status_code == 422


def test_it_stands_in_the_audit_log_and_proves_no_password(server: Served) -> None:
    code = code_of(server, "ada")
    with browser(server) as page:
        page.post("/logon/link", json={"code": "0" * 64})
        page.post("/logon/link", json={"code": code})
    entries = server.http.get("/audit", params={"limit": 2}).json()["entries"]
    found = [(entry["action"], entry["who"], entry["target"], entry["status"]) for entry in entries]
    assert found == [("log on by link", "ada", "ada", 200), ("log on by link", "", "", 401)]
    assert code not in str(entries)
    recall_addresses(server.people, server.store.audit)
    with server.client() as guesser:
        for _ in range(AT_ADDRESS.num_free):
            guesser.post("/logon", json={"name": "ada", "password": "wrong password"})
        assert guesser.post("/logon", json={"name": "ada", "password": PASSWORD}).status_code == 429
    assert TOKEN not in str(entries)
