"""Logging on and off, users, tokens and passwords, over a real server."""

import threading
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.server.conftest import PASSWORD, TOKEN, Served

from pliant.core.access import Permission, Role
from pliant.core.people import TokenSettings, UserSettings
from pliant.people.attempts import AT_ADDRESS

DAY_S = 86400.0


@pytest.fixture
def server(module_server: Served) -> Iterator[Served]:
    yield module_server
    module_server.forget_people()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def log_on(server: Served, name: str, password: str = PASSWORD) -> httpx.Response:
    with server.client() as client:
        return client.post("/logon", json={"name": name, "password": password})


def session_of(server: Served, name: str) -> httpx.Client:
    return server.client(bearer(log_on(server, name).json()["token"]))


def problems(response: httpx.Response) -> dict[str, str]:
    assert response.headers["content-type"] == "application/problem+json"
    return {problem["field"]: problem["message"] for problem in response.json()["problems"]}


def test_a_user_logs_on_is_known_and_logs_off(server: Served) -> None:
    server.add_user("ada", Role.VIEWER)
    answer = log_on(server, "ada")
    assert answer.status_code == 200
    body = answer.json()
    assert (body["name"], body["role"], body["expires_at"]) == ("ada", "viewer", server.clock.now() + 8 * 3600)
    with server.client(bearer(body["token"])) as ada:
        assert ada.get("/me").json() == {
            "name": "ada",
            "role": "viewer",
            "permissions": ["data:read", "endpoints:read", "infer", "jobs:read", "models:read", "pool:read", "self"],
            "scopes": None,
            "by": "session",
            "expires_at": body["expires_at"],
        }
        assert ada.post("/logoff").status_code == 204
        assert ada.get("/me").status_code == 401
    assert server.http.get("/me").json()["by"] == "file"
    assert server.http.post("/logoff").status_code == 409


def test_wrong_names_and_wrong_passwords_are_refused_in_the_same_words(server: Served) -> None:
    server.add_user("ada")
    answers = [log_on(server, name, "wrong password") for name in ("ada", "bob", "No such, name", "ada\x00", "ä")]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.json()["detail"] for answer in answers}) == 1
    assert answers[0].headers["www-authenticate"] == 'Bearer realm="Pliant", Basic realm="Pliant", charset="UTF-8"'


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"name", "password"}),
        ({"name": "", "password": 7, "colour": "red"}, {"name", "password", "colour"}),
        ({"name": "ada", "password": "x" * 1001}, {"password"}),
        ([], {""}),
    ],
)
def test_a_wrong_logon_is_told_all_its_errors_and_shows_no_password(
    server: Served, body: Any, fields: set[str]
) -> None:
    with server.client() as client:
        answer = client.post("/logon", json=body)
        assert answer.status_code == 422
        assert set(problems(answer)) == fields
        assert "xxx" not in answer.text
        for raw in (b"", b"{", b'{"name": "\\ud800", "password": "\\ud800"}', b"\xff", b'{"name": NaN}'):
            answer = client.post("/logon", content=raw, headers={"Content-Type": "application/json"})
            assert answer.status_code in (401, 422), raw


def test_whoever_guesses_has_to_wait(server: Served) -> None:
    server.add_user("ada")
    for _ in range(AT_ADDRESS.num_free):
        assert log_on(server, "ada", "wrong password").status_code == 401
    for answer in (log_on(server, "ada"), log_on(server, "ada", "wrong password")):
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "5")
        assert "wait 5 s" in answer.json()["detail"]
    with server.client({"Authorization": basic("ada", PASSWORD)}) as client:
        assert client.get("/me").status_code == 429
    assert server.http.get("/me").status_code == 200, "a token does not wait"
    server.add_user("bob")
    assert log_on(server, "bob").status_code == 200, "nobody else waits behind the same address"
    server.clock.advance(5)
    assert log_on(server, "ada").status_code == 200


def basic(name: str, password: str, encoding: str = "utf-8") -> str:
    return "Basic " + b64encode(f"{name}:{password}".encode(encoding)).decode()


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({}, "no credentials were sent; send `Authorization: Bearer TOKEN`"),
        ({"Authorization": "Digest x"}, "neither Basic nor Bearer"),
        ({"Authorization": "Bearer"}, "neither Basic nor Bearer"),
        ({"Authorization": "Basic ???"}, "not NAME:PASSWORD in base64"),
        ({"Authorization": "Basic " + b64encode(b"ada").decode()}, "no colon"),
        ({"Authorization": "Bearer wrong"}, "wrong, has expired, or was revoked"),
        ({"X-Auth-Token": "plt_s0123456789abcdef_" + "0" * 48}, "wrong, has expired, or was revoked"),
        ({"Authorization": "Bearer wrong", "X-Auth-Token": TOKEN}, "wrong, has expired, or was revoked"),
        ({"Authorization": basic("ada", "wrong")}, "the name or the password is wrong"),
    ],
)
def test_a_refusal_says_how_to_get_in(server: Served, headers: dict[str, str], said: str) -> None:
    with server.client(headers) as client:
        answer = client.get("/me")
    assert answer.status_code == 401
    assert said in answer.json()["detail"]
    assert "wrong" not in headers.get("X-Auth-Token", "") or TOKEN not in answer.text


def test_basic_takes_passwords_in_both_encodings_and_tokens_in_their_place(server: Served) -> None:
    server.people.accounts.add(UserSettings(name="ada", role=Role.USER), "größer als zehn")
    for encoding in ("utf-8", "latin-1"):
        with server.client({"Authorization": basic("ada", "größer als zehn", encoding)}) as client:
            assert client.get("/me").json()["by"] == "password"
    token = server.people.credentials.make_token("ada", token_settings()).text
    with server.client({"Authorization": basic("ada", token)}) as client:
        assert client.get("/me").json()["by"] == "token"
    with server.client({"Authorization": basic("bob", token)}) as client:
        assert client.get("/me").status_code == 401
    assert log_on(server, "ada", token).status_code == 401, "a token begins no session: it may be limited"
    assert log_on(server, "admin", TOKEN).status_code == 401


@pytest.mark.parametrize("header", ["Authorization", "X-Auth-Token"])
@pytest.mark.parametrize("by", ["session", "token", "file"])
def test_both_headers_take_tokens_of_every_kind(server: Served, header: str, by: str) -> None:
    server.add_user("ada")
    text = {
        "session": server.people.credentials.open_session("ada").text,
        "token": server.people.credentials.make_token("ada", token_settings()).text,
        "file": TOKEN,
    }[by]
    with server.client({header: text if header == "X-Auth-Token" else f"Bearer {text}"}) as client:
        assert client.get("/me").json()["by"] == by


def token_settings() -> TokenSettings:
    return TokenSettings(label="test")


def test_users_are_made_listed_changed_and_removed(server: Served) -> None:
    http = server.http
    made = http.post("/users", json={"name": "ada", "role": "operator"})
    assert (made.status_code, made.headers["etag"]) == (201, '"1"')
    password = made.json()["password"]
    view = made.json()["user"]
    now = server.clock.now()
    assert view == {
        "name": "ada",
        "role": "operator",
        "active": True,
        "created_at": now,
        "changed_at": now,
        "password_changed_at": now,
        "revision": 1,
    }
    assert http.get("/users/ada").json() == view
    assert log_on(server, "ada", password).json()["role"] == "operator"
    given = http.post("/users", json={"name": "bob", "role": "user", "password": PASSWORD})
    assert given.json()["password"] is None
    assert http.post("/users", json={"name": "bob", "role": "user"}).status_code == 409
    assert http.get("/users", params={"limit": 1}).json() == {"users": [view], "next": "ada"}
    rest = http.get("/users", params={"after": "ada"}).json()
    assert ([user["name"] for user in rest["users"]], rest["next"]) == (["bob"], None)
    changed = http.patch("/users/bob", json={"role": "viewer"}, headers={"If-Match": '"1"'})
    assert (changed.json()["role"], changed.headers["etag"]) == ("viewer", '"2"')
    assert http.patch("/users/bob", json={"role": "user"}, headers={"If-Match": '"1"'}).status_code == 412
    assert http.delete("/users/bob", headers={"If-Match": '"1"'}).status_code == 412
    assert http.patch("/users/bob", json={"role": "user"}, headers={"If-Match": "new"}).status_code == 422
    assert http.delete("/users/bob", headers={"If-Match": '"2"'}).status_code == 204
    for method in ("GET", "PATCH", "DELETE"):
        body = {"role": "user"} if method == "PATCH" else None
        assert http.request(method, "/users/bob", json=body).status_code == 404
    assert "argon2" not in http.get("/users").text


def test_a_change_of_a_user_is_of_what_people_have_set_whatever_that_user_does_meanwhile(server: Served) -> None:
    server.add_user("ada")
    shown = server.http.get("/users/ada").headers["etag"]
    assert log_on(server, "ada", "wrong password").status_code == 401
    with session_of(server, "ada") as ada:
        server.clock.advance(DAY_S / 4)
        assert ada.put("/me/views", json={"views": []}).status_code == 200
        token = ada.post("/tokens", json={"label": "ci"}).json()["token"]
        with server.client(bearer(token)) as program:
            assert program.get("/me").status_code == 200
        assert ada.post("/logoff").status_code == 204
    assert server.http.get("/users/ada").headers["etag"] == shown
    changed = server.http.patch("/users/ada", json={"role": "viewer"}, headers={"If-Match": shown})
    assert (changed.status_code, changed.json()["role"]) == (200, "viewer")


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"name", "role"}),
        ({"name": "Ada!", "role": "king", "password": "short"}, {"name", "role", "password"}),
        ({"name": "ada", "role": "user", "password": "x" * 1001, "colour": 1}, {"password", "colour"}),
        ({"name": "ada.ada.ada", "role": "user", "password": "Ada.ada.ada"}, {"password"}),
        ({"name": "ada", "role": "user", "password": "plt_0123456789"}, {"password"}),
        ({"name": "a" * 61, "role": "user"}, {"name"}),
        ({"name": "ada\n", "role": "user"}, {"name"}),
    ],
)
def test_a_wrong_user_is_told_all_its_errors_at_once(server: Served, body: Any, fields: set[str]) -> None:
    answer = server.http.post("/users", json=body)
    assert answer.status_code == 422
    assert set(problems(answer)) == fields
    if "password" in body:
        assert body["password"] not in answer.text
    assert server.http.get("/users").json()["users"] == []


def test_a_change_of_nothing_or_of_the_wrong_kind_is_refused(server: Served) -> None:
    server.add_user("ada")
    for body in ({}, {"active": "yes"}, {"role": None}, {"name": "bob"}, {"password": "ada"}):
        answer = server.http.patch("/users/ada", json=body)
        assert answer.status_code == 422, body
    assert server.http.patch("/users/ada", json={"password": "short-pass", "colour": "red"}).text.count("short-") == 0


def test_administrators_cannot_shut_themselves_or_everybody_out(server: Served) -> None:
    server.add_user("ada", Role.ADMIN)
    server.add_user("bob", Role.ADMIN)
    with session_of(server, "ada") as ada:
        for body in ({"role": "user"}, {"active": False}):
            assert ada.patch("/users/ada", json=body).status_code == 409
        assert ada.delete("/users/ada").status_code == 409
        assert ada.delete("/users/bob").status_code == 204
    for answer in (
        server.http.patch("/users/ada", json={"role": "user"}),
        server.http.patch("/users/ada", json={"active": False}),
        server.http.delete("/users/ada"),
    ):
        assert answer.status_code == 409
        assert "ada is the last active administrator" in answer.json()["detail"]


def test_who_is_disabled_or_demoted_feels_it_at_the_next_request(server: Served) -> None:
    server.add_user("ada", Role.OPERATOR)
    token = server.http  # the administrator
    with (
        session_of(server, "ada") as session,
        server.client_of("ada") as by_token,
        server.client({"Authorization": basic("ada", PASSWORD)}) as by_password,
    ):
        clients = (session, by_token, by_password)
        assert [client.post("/shutdown").status_code for client in clients] == [202] * 3
        token.patch("/users/ada", json={"role": "user"})
        assert [client.post("/shutdown").status_code for client in clients] == [403] * 3
        token.patch("/users/ada", json={"active": False})
        assert [client.get("/me").status_code for client in clients] == [401] * 3
        assert "disabled" in by_password.get("/me").json()["detail"]
        token.patch("/users/ada", json={"active": True})
        assert [client.get("/me").status_code for client in clients] == [401, 200, 200]
        token.delete("/users/ada")
        assert [client.get("/me").status_code for client in clients] == [401] * 3


def test_a_new_password_of_ones_own_needs_the_old_one_and_ends_other_sessions(server: Served) -> None:
    server.add_user("ada")
    with session_of(server, "ada") as mine, session_of(server, "ada") as other:
        wrong = {"old_password": "wrong", "new_password": "battery staple"}
        answer = mine.put("/me/password", json=wrong)
        assert (answer.status_code, set(problems(answer))) == (422, {"old_password"})
        short = mine.put("/me/password", json={"old_password": PASSWORD, "new_password": "short-1"})
        assert (short.status_code, set(problems(short))) == (422, {"new_password"})
        assert "short-1" not in short.text
        right = {"old_password": PASSWORD, "new_password": "battery staple"}
        assert mine.put("/me/password", json=right).status_code == 204
        assert (mine.get("/me").status_code, other.get("/me").status_code) == (200, 401)
        assert log_on(server, "ada").status_code == 401
        assert log_on(server, "ada", "battery staple").status_code == 200
        with server.client_of("ada") as token:
            assert token.put("/me/password", json=right).status_code == 403
        for _ in range(AT_ADDRESS.num_free):
            mine.put("/me/password", json=wrong)
        assert mine.put("/me/password", json=wrong).status_code == 429


def test_an_administrator_sets_passwords_of_others_and_only_the_file_ones_own(server: Served) -> None:
    server.add_user("admin", Role.ADMIN)
    server.add_user("ada")
    for _ in range(AT_ADDRESS.num_free):
        log_on(server, "ada", "wrong")
    with server.client_of("admin") as admin, session_of_other_address(server, "ada") as ada:
        assert admin.patch("/users/admin", json={"password": "battery staple"}).status_code == 409
        assert admin.patch("/users/ada", json={"password": "battery staple"}).status_code == 200
        assert ada.get("/me").status_code == 401
    assert server.http.patch("/users/admin", json={"password": "horse battery"}).status_code == 200
    assert server.people.authenticator.authenticate_password("admin", "horse battery", "10.0.0.9").by == "password"
    assert server.people.authenticator.authenticate_password("ada", "battery staple", "10.0.0.9").by == "password", (
        "it does not wait"
    )


def session_of_other_address(server: Served, name: str) -> httpx.Client:
    """Return a client with a session that was begun from where nobody has failed."""
    return server.client(bearer(server.people.credentials.open_session(name).text))


def test_tokens_are_made_listed_used_and_revoked(server: Served) -> None:
    server.add_user("ada")
    with session_of(server, "ada") as ada:
        made = ada.post("/tokens", json={"label": "ci", "scopes": ["jobs:read", "self"]})
        assert made.status_code == 201
        token, info = made.json()["token"], made.json()["info"]
        now = server.clock.now()
        assert info == {
            "id": token.split("_")[1],
            "label": "ci",
            "owner": "ada",
            "scopes": ["jobs:read", "self"],
            "endpoints": None,
            "max_rate": None,
            "max_concurrent": None,
            "created_at": now,
            "expires_at": now + 90 * DAY_S,
            "last_used_at": None,
        }
        with server.client({"X-Auth-Token": token}) as program:
            me = program.get("/me").json()
            assert (me["by"], me["permissions"], me["scopes"]) == (
                "token",
                ["jobs:read", "self"],
                ["jobs:read", "self"],
            )
            refused = program.get("/cluster")
            assert refused.status_code == 403
            assert "needs the scope 'pool:read', which the token lacks" in refused.json()["detail"]
            assert program.post("/tokens", json={"label": "more"}).status_code == 403
            assert ada.get("/tokens").json()["tokens"] == [info | {"last_used_at": now}]
            assert token.split("_")[2] not in ada.get("/tokens").text
            assert ada.delete(f"/tokens/{info['id']}").status_code == 204
            assert program.get("/me").status_code == 401
        assert ada.delete(f"/tokens/{info['id']}").status_code == 404
        assert ada.get("/tokens").json()["tokens"] == []
    with server.client() as nobody:
        assert nobody.get("/me", headers=bearer(token)).status_code == 401


def test_tokens_of_others_are_not_there_but_for_administrators(server: Served) -> None:
    server.add_user("ada")
    server.add_user("bob", Role.OPERATOR)
    token_id = server.people.credentials.make_token("ada", token_settings()).kept.noun.name
    with session_of(server, "bob") as bob:
        assert bob.get("/tokens", params={"owner": "ada"}).status_code == 403
        assert bob.delete(f"/tokens/{token_id}").status_code == 404
    listed = server.http.get("/tokens", params={"owner": "ada"}).json()["tokens"]
    assert [token["id"] for token in listed] == [token_id]
    assert server.http.delete(f"/tokens/{token_id}").status_code == 204


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"label"}),
        ({"label": "", "scopes": ["jobs:fly"], "expires_at": -1, "owner": "bob"}, {"label", "expires_at", "owner"}),
        ({"label": "a\nb", "scopes": []}, {"label", "scopes"}),
        ({"label": "x", "expires_at": 1.0}, {"expires_at"}),
        ({"label": "x", "expires_at": 1e12}, {"expires_at"}),
    ],
)
def test_a_wrong_token_is_told_all_its_errors_at_once(server: Served, body: Any, fields: set[str]) -> None:
    server.add_user("ada")
    with session_of(server, "ada") as ada:
        answer = ada.post("/tokens", json=body)
        assert answer.status_code == 422
        assert {field for field in problems(answer) if not field.startswith("scopes.")} == fields
        assert ("jobs:fly" in answer.text) is (body.get("scopes") == ["jobs:fly"])
        assert ada.get("/tokens").json()["tokens"] == []


def test_scopes_are_what_permissions_are_called(server: Served) -> None:
    server.add_user("ada", Role.ADMIN)
    with session_of(server, "ada") as ada:
        every = [permission.value for permission in Permission]
        made = ada.post("/tokens", json={"label": "all", "scopes": every}).json()
    with server.client(bearer(made["token"])) as program:
        assert program.get("/me").json()["permissions"] == sorted(every)


def test_the_file_makes_tokens_for_the_administrator_if_there_is_one(server: Served) -> None:
    assert server.http.post("/tokens", json={"label": "x"}).status_code == 404
    server.add_user("admin", Role.ADMIN)
    assert server.http.post("/tokens", json={"label": "x"}).status_code == 201


def test_hashing_a_password_keeps_nobody_else_waiting(server: Served) -> None:
    """While many log on at once, others are served; all of those who are right get in."""
    server.add_user("ada")
    found: list[int] = []

    def come() -> None:
        with server.client({"Authorization": basic("ada", PASSWORD)}) as client:
            found.append(client.get("/me").status_code)

    threads = [threading.Thread(target=come) for _ in range(20)]
    for thread in threads:
        thread.start()
    assert server.http.get("/me").status_code == 200
    for thread in threads:
        thread.join()
    assert found == [200] * 20
