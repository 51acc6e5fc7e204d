"""The client and people: a real server, sessions, users, tokens and shares; and the file of stored logins."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.server.conftest import PASSWORD, TOKEN, Served

from pliant.api.jobs import JobRequest
from pliant.api.people import TokenRequest, UserPatch, UserRequest
from pliant.api.trust import Trust
from pliant.client import Client
from pliant.client.http.credentials import Credentials, Login, same_url
from pliant.core.access import Permission, Role
from pliant.core.errors import Conflict, Forbidden, InvalidInput, NotFound, Stale, Unauthorized, Unavailable


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server = Served(tmp_path_factory.mktemp("served"))
    yield server
    server.close()


@pytest.fixture
def admin(served: Served) -> Iterator[Client]:
    with Client(f"http://{served.address}", TOKEN) as client:
        yield client
    served.forget_people()


def log_on(admin: Client, name: str, role: Role = Role.USER) -> Client:
    """Make a user and return a client of theirs."""
    admin.people.add_user(UserRequest(name=name, role=role, password=PASSWORD))
    with Client(admin.url, None) as nobody:
        return Client(admin.url, nobody.people.log_on(name, PASSWORD).token)


def test_a_session_begins_with_a_password_and_ends(admin: Client) -> None:
    with log_on(admin, "ann") as ann:
        me = ann.people.me()
        assert (me.name, me.role, me.by, Permission.JOBS_WRITE in me.permissions) == ("ann", Role.USER, "session", True)
        ann.people.set_password(PASSWORD, "another password")
        ann.people.log_off()
        with pytest.raises(Unauthorized, match="the token opens nothing here"):
            ann.people.me()
    with Client(admin.url, None) as nobody:
        with pytest.raises(Unauthorized, match="the name or the password is wrong"):
            nobody.people.log_on("ann", PASSWORD)
        assert nobody.people.log_on("ann", "another password").name == "ann"
        with pytest.raises(Unauthorized, match="no credentials were sent"):
            nobody.jobs()
        assert nobody.healthy()
    with pytest.raises(Conflict, match="there is no session to end"):
        admin.people.log_off()


def test_users_are_made_listed_changed_and_removed(admin: Client) -> None:
    made = admin.people.add_user(UserRequest(name="ann", role=Role.VIEWER))
    assert made.password is not None
    with Client(admin.url, None) as nobody:
        assert nobody.people.log_on("ann", made.password).role is Role.VIEWER
    admin.people.add_user(UserRequest(name="bob", role=Role.USER, password=PASSWORD))
    assert [user.name for user in admin.people.users()] == ["ann", "bob"]
    ann = admin.people.user("ann")
    assert (
        admin.people.change_user("ann", UserPatch.model_validate({"role": Role.USER}), revision=ann.revision).role
        is Role.USER
    )
    with pytest.raises(Stale):
        admin.people.change_user("ann", UserPatch(active=False), revision=ann.revision)
    assert admin.people.user("ann").active
    admin.people.remove_user("bob")
    with pytest.raises(NotFound):
        admin.people.user("bob")
    with log_on(admin, "cem") as cem, pytest.raises(Forbidden, match="a user does not have"):
        cem.people.users()


def test_more_users_than_a_page_holds_are_all_listed(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pliant.client.nouns.people._PAGE", 2)
    names = ["ann", "bob", "cem", "dan", "eve"]
    for name in names:
        admin.people.add_user(UserRequest(name=name, role=Role.VIEWER, password=PASSWORD))
    assert [user.name for user in admin.people.users()] == names


def test_tokens_are_made_listed_and_revoked(admin: Client) -> None:
    with log_on(admin, "ann") as ann:
        scopes = frozenset({Permission.JOBS_READ})
        made = ann.people.make_token(TokenRequest(label="nightly", scopes=scopes))
        assert [token.id for token in ann.people.tokens()] == [made.info.id]
        assert admin.people.tokens("ann") == ann.people.tokens()
        with Client(admin.url, made.token) as limited:
            assert limited.jobs().jobs == ()
            with pytest.raises(Forbidden, match="needs the scope 'pool:read'"):
                limited.cluster()
            ann.people.revoke_token(made.info.id)
            with pytest.raises(Unauthorized):
                limited.jobs()
        assert ann.people.tokens() == ()


def test_the_audit_log_is_read_in_pages(admin: Client) -> None:
    with log_on(admin, "ann") as ann:
        ann.people.make_token(TokenRequest(label="x"))
    newest = admin.people.audit(limit=2)
    assert len(newest.entries) == 2
    assert newest.next is not None
    older = admin.people.audit(before=newest.next, limit=1000)
    assert older.entries[0].seq == newest.entries[-1].seq - 1
    assert {entry.who for entry in admin.people.audit(who="ann").entries} == {"ann"}


def test_a_job_is_shared_and_taken_back(admin: Client, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print()")
    with log_on(admin, "ann") as ann, log_on(admin, "bob") as bob:
        job = ann.submit(tmp_path / "train.py", JobRequest(script="train.py"))
        with pytest.raises(NotFound):
            bob.job(job.id)
        shared = ann.share(job.id, ["bob"], revision=ann.shares(job.id).revision)
        assert (shared.shared_with, shared.revision) == (("bob",), 1)
        assert bob.job(job.id).job.owner == "ann"
        assert [one.id for one in bob.jobs().jobs] == [job.id]
        with pytest.raises(Forbidden, match="ask ann to change it"):
            bob.stop(job.id)
        with pytest.raises(InvalidInput) as caught:
            ann.share(job.id, ["zoe", "bob", "yan"])
        assert [problem.field for problem in caught.value.problems] == ["shared_with.0", "shared_with.2"]
        with pytest.raises(Stale):
            ann.share(job.id, [], revision=7)
        ann.share(job.id, [])
        with pytest.raises(NotFound):
            bob.why(job.id)
        ann.stop(job.id)


LOGIN = Login(url="https://pool.example.org:7311", name="ann", token="secret", expires_at=2e9)


@pytest.fixture
def credentials(tmp_path: Path) -> Credentials:
    return Credentials(tmp_path / "config" / "pliant" / "credentials.json")


def test_logins_are_kept_by_server_where_nobody_else_can_read_them(credentials: Credentials, tmp_path: Path) -> None:
    assert credentials.find(LOGIN.url) is None
    trusted = replace(LOGIN, trust=Trust(certificate=tmp_path / "ca.pem", server_name="pool"))
    credentials.keep(trusted)
    credentials.keep(replace(LOGIN, url="http://127.0.0.1:1", name="bob"))
    assert credentials.find("HTTPS://Pool.example.org:7311/") == trusted
    credentials.keep(replace(LOGIN, token="newer"))
    found = credentials.find(LOGIN.url)
    assert found is not None
    assert (found.token, found.trust) == ("newer", Trust())
    folder = tmp_path / "config" / "pliant"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    credentials.forget(LOGIN.url)
    assert credentials.find(LOGIN.url) is None
    assert credentials.find("http://127.0.0.1:1") is not None
    assert "secret" not in repr(LOGIN)


def test_a_file_that_others_can_read_or_that_is_damaged_is_not_used(credentials: Credentials, tmp_path: Path) -> None:
    credentials.keep(LOGIN)
    file = tmp_path / "config" / "pliant" / "credentials.json"
    file.chmod(0o644)
    with pytest.raises(Unavailable, match="others can read"):
        credentials.find(LOGIN.url)
    file.chmod(0o600)
    file.write_text("{")
    with pytest.raises(Unavailable, match="damaged; remove it and log in again"):
        credentials.find(LOGIN.url)


def test_commands_that_log_in_at_the_same_time_do_not_lose_each_other(credentials: Credentials) -> None:
    urls = [f"http://127.0.0.1:{port}" for port in range(1, 9)]
    threads = [
        threading.Thread(target=lambda url=url: credentials.keep(replace(LOGIN, url=url, expires_at=time.time() + 1)))
        for url in urls
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [credentials.find(url) is not None for url in urls] == [True] * 8


def test_a_url_has_one_form() -> None:
    assert same_url(" HTTP://LocalHost:81/ ") == "http://localhost:81"
    assert same_url("http://localhost:81") != same_url("http://localhost")
