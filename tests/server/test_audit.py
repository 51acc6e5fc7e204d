"""Who did or tried what is written down, without secrets."""

import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.server.conftest import PASSWORD, TOKEN, Served, packed
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from pliant.core.access import Role
from pliant.core.errors import Unavailable
from pliant.core.registry import AuditEntry
from pliant.core.upkeep import Material, Rule
from pliant.people.attempts import AT_ADDRESS
from pliant.server.audit_upkeep import forget_refusals
from pliant.server.middleware.refusals import MINUTE_S, NUM_ANONYMOUS

DAY_S = 86400.0


@pytest.fixture
def server(module_server: Served) -> Iterator[Served]:
    module_server.http.post("/nowhere/begin")
    module_server.clock.advance(MINUTE_S)  # so that what a test counts begins with the test
    yield module_server
    module_server.forget_people()


def entries(server: Served) -> list[tuple[str, str, str, int]]:
    """Return what the log holds of this test, oldest first: who, action, target, status."""
    found: list[tuple[str, str, str, int]] = []
    for entry in server.store.audit.entries(limit=1000):
        if entry.action == "POST /v1/nowhere/begin":
            break
        assert (entry.address, entry.at <= server.clock.now()) == ("127.0.0.1", True)
        found.insert(0, (entry.who, entry.action, entry.target, entry.status))
    return found


def basic(name: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(f"{name}:{password}".encode()).decode()}


def test_what_changes_something_is_written_and_what_reads_is_not(server: Served) -> None:
    job = server.submit().json()["id"]
    server.http.get("/jobs")
    server.http.patch(f"/jobs/{job}", json={"priority": 0}, params={"key": "secret"})
    server.http.delete(f"/jobs/{job}")
    server.http.put(f"/jobs/{job}")
    server.http.post("/nowhere%20at/all", content=b"secret")
    assert entries(server) == [
        ("admin", "POST /v1/jobs", "", 201),
        ("admin", f"PATCH /v1/jobs/{job}", "", 422),
        ("admin", f"DELETE /v1/jobs/{job}", "", 409),
        ("", f"PUT /v1/jobs/{job}", "", 405),
        ("", "POST /v1/nowhere%20at/all", "", 404),
    ]


def test_every_change_of_endpoints_and_tokens_is_written_and_no_token_is(server: Served) -> None:
    server.add_user("ada")
    session = server.people.credentials.open_session("ada").text
    with server.client({"Authorization": f"Bearer {session}"}) as ada:
        parts: dict[str, Any] = {"version": (None, "{}"), "code": ("c.tar.gz", packed({"serve.py": ""}))}
        ada.post("/endpoints/digits/versions", files=parts)
        server.load_model("digits")
        ada.patch("/endpoints/digits", json={"kernel_max": 3})
        ada.post("/endpoints/digits/stop")
        ada.post("/endpoints/digits/start")
        ada.post("/endpoints/digits/traffic", json={"traffic": {"1": 100}})
        ada.post("/endpoints/digits/rollback", json={})
        made = ada.post("/tokens", json={"label": "x", "scopes": ["infer"], "endpoints": ["digits"]}).json()
        with server.client({"Authorization": f"Bearer {made['token']}"}) as shop:
            shop.get("/endpoints/digits/address")
            shop.get("/endpoints/digits")
            shop.delete("/endpoints/digits")
        token_id = made["info"]["id"]
        ada.delete(f"/tokens/{token_id}")
        ada.delete("/endpoints/digits")
    found = entries(server)
    assert found == [
        ("ada", "POST /v1/endpoints/digits/versions", "", 201),
        ("ada", "PATCH /v1/endpoints/digits", "", 200),
        ("ada", "POST /v1/endpoints/digits/stop", "", 200),
        ("ada", "POST /v1/endpoints/digits/start", "", 200),
        ("ada", "POST /v1/endpoints/digits/traffic", "", 200),
        ("ada", "POST /v1/endpoints/digits/rollback", "", 409),
        ("ada", "POST /v1/tokens", "", 201),
        ("ada", "GET /v1/endpoints/digits", "", 403),
        ("ada", "DELETE /v1/endpoints/digits", "", 403),
        ("ada", f"DELETE /v1/tokens/{token_id}", "", 204),
        ("ada", "DELETE /v1/endpoints/digits", "", 204),
    ]
    assert made["token"] not in repr(found)


def test_log_ons_are_written_whether_they_succeed_or_not(server: Served) -> None:
    server.add_user("ada")
    with server.client() as client:
        client.post("/logon", json={"name": "ada", "password": PASSWORD})
        client.post("/logon", json={"name": "ada", "password": "wrong"})
        client.post("/logon", json={"name": "my-password-by-mistake", "password": "ada"})
        client.post("/logon", json={"name": "ada"})
    assert entries(server) == [
        ("ada", "log on", "ada", 200),
        ("", "log on", "ada", 401),
        ("", "log on", "", 401),
        ("", "POST /v1/logon", "", 422),
    ]


def test_a_password_sent_with_a_request_is_a_log_on_once_it_is_compared(server: Served) -> None:
    server.add_user("ada")
    with server.client(basic("ada", PASSWORD)) as ada:
        for _ in range(3):
            ada.get("/me")
        ada.post("/logoff")
        ada.get("/users")
    with server.client(basic("ada", "wrong")) as wrong:
        wrong.get("/me")
        wrong.post("/jobs")
    assert entries(server) == [
        ("ada", "log on", "ada", 200),
        ("ada", "POST /v1/logoff", "", 409),
        ("ada", "GET /v1/users", "", 403),
        ("", "log on", "ada", 401),
        ("", "GET /v1/me", "", 401),
        ("", "log on", "ada", 401),
        ("", "POST /v1/jobs", "", 401),
    ]


def test_refusals_are_written_also_those_who_have_to_wait(server: Served) -> None:
    server.add_user("ada", Role.VIEWER)
    with server.client() as nobody, server.client_of("ada") as ada:
        nobody.get("/jobs")
        ada.get("/audit")
        for _ in range(AT_ADDRESS.num_free + 1):
            nobody.post("/logon", json={"name": "ada", "password": "wrong"})
    assert entries(server) == [
        ("", "GET /v1/jobs", "", 401),
        ("ada", "GET /v1/audit", "", 403),
        *[("", "log on", "ada", 401)] * AT_ADDRESS.num_free,
        ("", "log on", "ada", 429),
    ]


def test_a_body_that_is_too_long_and_a_bug_are_written(server: Served) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    server.app.add_api_route("/v1/bug", fail, methods=["POST"])
    assert server.http.post("/logoff", content=b"x" * (2 << 20)).status_code == 413
    assert server.http.post("/bug", headers={"Connection": "close"}).status_code == 500  # the server closes it anyway
    assert entries(server) == [("", "POST /v1/logoff", "", 413), ("", "POST /v1/bug", "", 500)]


def test_a_control_link_that_is_refused_is_written_and_one_that_opens_is_not(server: Served) -> None:
    server.submit()
    server.tick()
    with connect(server.link_url("job-1.1"), additional_headers=server.link_headers("job-1")):
        pass
    for task, headers in (("job-1.1", server.link_headers("job-2", "job-1.1")), ("job-1.1", {}), ("%00secret", {})):
        with pytest.raises(InvalidStatus), connect(server.link_url(task), additional_headers=headers):
            pass
    with pytest.raises(InvalidStatus), connect(f"ws://{server.address}/v1/elsewhere?task=job-1.1"):
        pass
    assert entries(server)[1:] == [
        ("", "LINK /v1/link", "job-1.1", 401),
        ("", "LINK /v1/link", "job-1.1", 401),
        ("", "LINK /v1/link", "", 401),
        ("", "LINK /v1/elsewhere", "job-1.1", 403),
    ]


def test_no_secret_is_in_the_log(server: Served) -> None:
    server.http.post("/users", json={"name": "ada", "role": "user", "password": PASSWORD})
    with server.client() as client:
        session = client.post("/logon", json={"name": "ada", "password": PASSWORD}).json()["token"]
    with server.client({"Authorization": f"Bearer {session}"}) as ada:
        made = ada.post("/tokens", json={"label": "ci"}).json()["token"]
        ada.put("/me/password", json={"old_password": PASSWORD, "new_password": "battery staple"})
        ada.post("/jobs", params={"token": made})
    written = repr(server.store.audit.entries())
    for secret in (PASSWORD, "battery staple", session, made, TOKEN):
        assert secret not in written
        assert secret.split("_")[-1] not in written


def test_administrators_read_the_log_in_pages(server: Served) -> None:
    server.add_user("ada")
    with server.client_of("ada") as ada:
        for _ in range(3):
            ada.post("/logoff")
        assert ada.get("/audit").status_code == 403
    server.http.post("/logoff")
    page = server.http.get("/audit", params={"limit": 2}).json()
    assert [(entry["who"], entry["action"]) for entry in page["entries"]] == [
        ("admin", "POST /v1/logoff"),
        ("ada", "GET /v1/audit"),
    ]
    rest = server.http.get("/audit", params={"before": page["next"]}).json()
    assert [entry["seq"] for entry in rest["entries"][:3]] == [page["next"] - back for back in (1, 2, 3)]
    assert rest["entries"][0] == {
        "at": server.clock.now(),
        "who": "ada",
        "action": "POST /v1/logoff",
        "target": "",
        "status": 409,
        "address": "127.0.0.1",
        "seq": page["next"] - 1,
    }
    assert (rest["next"], rest["entries"][-1]["seq"]) == (None, 1)
    mine = server.http.get("/audit", params={"who": "ada", "limit": 4}).json()
    assert ({entry["who"] for entry in mine["entries"]}, len(mine["entries"])) == ({"ada"}, 4)
    for wrong in ({"limit": 0}, {"before": 0}, {"before": 2**40}, {"who": "\x00"}):
        assert server.http.get("/audit", params=wrong).status_code == 422


def test_every_entry_is_there_when_its_answer_is(server: Served) -> None:
    before = len(entries(server))
    server.add_user("ada")

    def work(wrong: list[Any]) -> None:
        with server.client_of("ada") as client:
            for _ in range(10):
                answer = client.post("/logoff")
                if answer.status_code != 409:
                    wrong.append(answer)

    wrong: list[Any] = []
    threads = [threading.Thread(target=work, args=(wrong,)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert entries(server)[before:] == [("ada", "POST /v1/logoff", "", 409)] * 50


def test_a_log_that_cannot_be_written_does_not_hide_what_was_done(
    server: Served, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(entry: AuditEntry) -> AuditEntry:
        raise Unavailable("the disk is full")

    monkeypatch.setattr(server.store.audit, "append", full)
    assert server.http.post("/logoff").status_code == 409
    (record,) = [record for record in caplog.records if record.name == "pliant.server.middleware.audit"]
    assert "POST /v1/logoff" in record.getMessage()


def test_many_refused_requests_leave_a_few_entries_and_a_count(server: Served) -> None:
    with server.client() as nobody:
        for _ in range(300):
            assert nobody.get("/jobs").status_code == 401
        server.clock.advance(MINUTE_S)
        nobody.post("/jobs")
    assert entries(server) == [
        *[("", "GET /v1/jobs", "", 401)] * NUM_ANONYMOUS,
        ("", "290 more refused: GET /v1/jobs", "", 401),
        ("", "POST /v1/jobs", "", 401),
    ]


def test_what_was_counted_is_written_though_nobody_asks_again(
    server: Served, eventually: Callable[[Callable[[], Any]], Any]
) -> None:
    with server.client() as nobody:
        for _ in range(NUM_ANONYMOUS + 2):
            nobody.get("/jobs")
    server.clock.advance(MINUTE_S)
    eventually(lambda: ("", "2 more refused: GET /v1/jobs", "", 401) in entries(server))


@pytest.mark.parametrize(("rule_days", "kept"), [(None, 30), (400, 400), (3, 3)])
def test_refusals_without_a_name_are_kept_for_a_time(server: Served, rule_days: int | None, kept: int) -> None:
    rules = () if rule_days is None else (Rule(material=Material.AUDIT, max_age_s=rule_days * DAY_S),)
    context = server.app.state.context
    context.upkeep.change(rules)
    now = server.clock.now()
    ages = (kept - 1, kept + 1)
    for age in ages:
        for who, status in (("", 401), ("ada", 403), ("", 200)):
            at = now - age * DAY_S
            server.store.audit.append(AuditEntry(at=at, who=who, action=f"{age}", status=status, address="127.0.0.1"))
    forget_refusals(context)
    context.upkeep.change(())
    left = [(entry.action, entry.who, entry.status) for entry in server.store.audit.entries(limit=6)]
    assert (f"{kept - 1}", "", 401) in left
    assert (f"{kept + 1}", "", 401) not in left
    for action in ages:
        assert (f"{action}", "ada", 403) in left
        assert (f"{action}", "", 200) in left


def test_the_log_is_searched_by_what_was_done_and_what_came_of_it(server: Served) -> None:
    server.http.post("/nowhere/searched")
    server.http.put("/jobs/searched")
    found = server.http.get("/audit", params={"q": "SEARCHED", "outcome": "refused"}).json()
    assert [entry["action"] for entry in found["entries"]][:2] == ["PUT /v1/jobs/searched", "POST /v1/nowhere/searched"]
    assert server.http.get("/audit", params={"q": "searched", "outcome": "done"}).json()["entries"] == []
    assert server.http.get("/audit", params={"outcome": "perhaps"}).status_code == 422
    assert server.http.get("/audit", params={"q": "x" * 101}).status_code == 422
