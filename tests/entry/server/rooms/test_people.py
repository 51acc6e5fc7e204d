"""The first administrator of a new server, and a new password for one who forgot it."""

import os
import re
import signal
from pathlib import Path

import httpx
import pytest
from tests.entry.server.test_server import client, running

from pliant.core.access import Role
from pliant.core.errors import NotFound, TooMany, Unauthorized
from pliant.core.people import UserSettings
from pliant.core.registry import AuditEntry
from pliant.entry.clock import SystemClock
from pliant.entry.server.home import Home
from pliant.entry.server.process import main
from pliant.entry.server.rooms.people import open_people, print_once, recall_addresses, reset_administrator
from pliant.people.attempts import OF_ACCOUNT
from pliant.sim.clock import VirtualClock
from pliant.store.sql import SqlStore

PASSWORD = re.compile(r"^  password  ([0-9a-f-]{24})$", re.MULTILINE)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "token").write_text("file-token")
    return Home(path=tmp_path / "home", token="file-token", secret=b"s" * 32, challenge="c")


def database(home: Home) -> str:
    return f"sqlite:///{home.path}/pliant.db"


def told_at_start(home: Home) -> str:
    """Return what a server tells about its people when it starts."""
    reading, writing = os.pipe()
    store = SqlStore(database(home))
    try:
        open_people(store.registry, store.audit, SystemClock(), home, url="http://127.0.0.1:1", login_fd=writing)
        with os.fdopen(reading) as file:
            return file.read()
    finally:
        store.close()


def test_a_new_server_tells_once_how_to_log_on(home: Home) -> None:
    said = told_at_start(home)
    (password,) = PASSWORD.findall(said)
    assert "address   http://127.0.0.1:1\n  user      admin\n" in said
    assert told_at_start(home) == ""
    for file in home.path.rglob("*"):
        assert password.encode() not in file.read_bytes(), file


def test_without_a_descriptor_it_is_told_on_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    print_once("one line\n" * 10_000, None)
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "one line\n" * 10_000)


def test_a_reader_that_is_gone_is_no_matter(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    print_once("secret", writing)
    assert "--reset-admin gives a new one" in caplog.text
    assert "secret" not in caplog.text
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.close(writing)


def test_a_folder_that_is_no_home_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="is not the state folder of a server"):
        reset_administrator(tmp_path / "nowhere", f"sqlite:///{tmp_path}/nowhere/pliant.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_administrator_logs_on_forgets_the_password_and_logs_on_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    with running(home) as server:
        log = tmp_path / "server.log"
        (first,) = PASSWORD.findall(log.read_text())
        with client(home) as http:
            assert http.get("/me").json()["by"] == "file"
            url = str(http.base_url)
        assert httpx.get(f"{url}me", auth=("admin", first), timeout=30).json()["role"] == "admin"
        session = httpx.post(f"{url}logon", json={"name": "admin", "password": first}, timeout=30).json()["token"]
        assert main(["--home", str(home), "--reset-admin"]) == 0
        said = capfd.readouterr()
        (second,) = PASSWORD.findall(said.err)
        assert (first == second, said.out) == (False, "")
        assert httpx.get(f"{url}me", auth=("admin", first), timeout=30).status_code == 401
        assert httpx.get(f"{url}me", headers={"X-Auth-Token": session}, timeout=30).status_code == 401
        assert httpx.get(f"{url}me", auth=("admin", second), timeout=30).json()["by"] == "password"
        with client(home) as http:
            entries = http.get("/audit").json()["entries"]
        assert [(entry["action"], entry["status"]) for entry in entries] == [
            ("log on", 200),
            ("GET /v1/me", 401),
            ("GET /v1/me", 401),
            ("log on", 401),
            ("log on", 200),
            ("log on", 200),
        ]
        server.send_signal(signal.SIGTERM)
        assert server.wait(45) == 0
    assert main(["--home", str(tmp_path / "nowhere"), "--reset-admin"]) == 2
    assert not (tmp_path / "nowhere").exists()
    assert "is not the state folder of a server" in capfd.readouterr().err


def test_a_server_that_starts_again_knows_where_people_have_logged_on(home: Home) -> None:
    clock, store = VirtualClock(1e6), SqlStore(database(home))
    try:
        reading, writing = os.pipe()
        people = open_people(store.registry, store.audit, clock, home, url="http://127.0.0.1:1", login_fd=writing)
        os.close(reading)
        people.accounts.add(UserSettings(name="ada", role=Role.USER), "correct horse")
        for action, address, status in (
            ("log on", "10.0.0.9", 200),
            ("log on", "10.0.0.1", 401),
            ("x", "10.0.0.2", 200),
        ):
            store.audit.append(AuditEntry(at=1e6, who="ada", action=action, status=status, address=address))
        recall_addresses(people, store.audit)
        for number in range(OF_ACCOUNT.num_free):
            with pytest.raises(Unauthorized):
                people.authenticator.authenticate_password("ada", "wrong", f"10.1.{number}.1")
        for address in ("10.0.0.1", "10.0.0.2"):
            with pytest.raises(TooMany):
                people.authenticator.authenticate_password("ada", "correct horse", address)
        assert people.authenticator.authenticate_password("ada", "correct horse", "10.0.0.9").logged_on
    finally:
        store.close()
