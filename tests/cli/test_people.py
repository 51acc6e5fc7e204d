"""Commands about people against a real server: logging in and out, users, tokens, the audit log, sharing a job."""

import io
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Done
from tests.server.conftest import PASSWORD, TOKEN, Served

from pliant.api.people import LogonRequest
from pliant.cli.app import main
from pliant.cli.jobs.frame import View, draw
from pliant.cli.screen import console
from pliant.client import Client
from pliant.client.http.credentials import Credentials
from pliant.core.access import Role

Run = Callable[..., Done]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server = Served(tmp_path_factory.mktemp("served"))
    yield server
    server.close()


@pytest.fixture
def home(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder whose server is the served one, and a person's own configuration."""
    for name in [name for name in os.environ if name.startswith("PLIANT_")]:
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    (home / "token").write_text(TOKEN)
    (home / "server.json").write_text(json.dumps({"url": f"http://{served.address}", "pid": os.getpid()}))
    monkeypatch.setenv("PLIANT_HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return home


@pytest.fixture
def run(
    served: Served, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Run]:
    def command(*args: str, lines: str = "") -> Done:
        monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
        with pytest.raises(SystemExit) as ended:
            main(args)
        captured = capsys.readouterr()
        code = ended.value.code
        assert code is None or isinstance(code, int)
        return Done(code=code or 0, out=captured.out, err=captured.err)

    yield command
    served.forget_people()


@pytest.fixture
def credentials(tmp_path: Path) -> Credentials:
    return Credentials(tmp_path / "config" / "pliant" / "credentials.json")


def log_in(run: Run, name: str) -> None:
    done = run("login", "--user", name, lines=f"{PASSWORD}\n")
    assert done.code == 0, done.err


def test_without_a_login_the_token_of_the_home_folder_counts(run: Run) -> None:
    assert run("whoami").out.startswith("admin (admin) at http://127.0.0.1:")
    assert json.loads(run("whoami", "--json").out)["by"] == "file"


def test_a_login_counts_until_it_is_ended(run: Run, served: Served, credentials: Credentials) -> None:
    served.add_user("ann")
    done = run("login", "--user", "ann", lines=f"{PASSWORD}\n")
    assert re.fullmatch(r"ann \(user\) is logged in at http://127.0.0.1:\d+ until .*\.\n", done.out)
    kept = credentials.find(f"http://{served.address}")
    assert kept is not None
    assert kept.token not in done.out + done.err
    who = run("whoami").out
    assert who.startswith("ann (user) at ")
    assert "by a session until" in who
    assert "may data:read, data:write, endpoints:read, endpoints:write, infer, jobs:read" in who
    out = run("logout").out
    assert out == f"ann is logged out at http://{served.address}.\n"
    with Client(kept.url, kept.token) as client, pytest.raises(Exception, match="opens nothing here"):
        client.people.me()
    assert run("whoami").out.startswith("admin ")
    again = run("logout")
    assert (again.code, "nobody is logged in" in again.err) == (3, True)


def test_a_token_that_is_given_goes_before_the_login(run: Run, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    served.add_user("ann")
    log_in(run, "ann")
    assert run("--token", TOKEN, "whoami").out.startswith("admin ")
    monkeypatch.setenv("PLIANT_TOKEN", TOKEN)
    assert run("whoami").out.startswith("admin ")


def test_a_login_that_has_expired_is_told_and_not_replaced_by_more(run: Run, served: Served) -> None:
    served.add_user("ann")
    log_in(run, "ann")
    served.clock.advance(8 * 3600.0 + 1)
    done = run("ps")
    assert (done.code, done.out) == (6, "")
    assert "has expired, or was revoked; log on again" in done.err
    ended = run("logout")
    assert (ended.code, ended.err) == (0, "The session had ended already.\n")
    assert run("ps").code == 0


def test_who_may_not_gets_the_exit_code_for_that(run: Run, served: Served) -> None:
    served.add_user("ann")
    wrong = run("login", "--user", "ann", lines="wrong\n")
    assert (wrong.code, "the name or the password is wrong" in wrong.err) == (6, True)
    log_in(run, "ann")
    refused = run("users")
    assert (refused.code, "ask an administrator" in refused.err) == (6, True)
    assert run("login", "--user", "ann").code == 2


def test_the_home_token_is_told_to_no_other_machine(run: Run) -> None:
    done = run("--url", "https://pool.example.org:7311", "ps")
    assert done.code == 6
    assert "nobody is logged in at https://pool.example.org:7311; use `pliant login" in done.err


def test_a_password_is_not_sent_in_the_clear(run: Run) -> None:
    done = run("login", "--url", "http://pool.example.org:7311", "--user", "ann", lines="x\n")
    assert (done.code, "does not begin with https" in done.err) == (2, True)


def test_a_new_user_is_told_the_address_that_others_use(run: Run, home: Path) -> None:
    alone = run("users", "add", "ann")
    assert "others reach a server that was started with --host and --tls" in alone.out

    record = json.loads((home / "server.json").read_text())
    (home / "server.json").write_text(json.dumps(record | {"public_url": "https://gpu1.example.org:7311"}))
    made = run("users", "add", "eve")
    assert made.out.startswith("eve (user) can log in: `pliant login --url https://gpu1.example.org:7311 --user eve`\n")
    assert "others" not in made.out


def test_users_are_made_changed_listed_and_removed(run: Run, served: Served) -> None:
    made = run("users", "add", "ann", "--role", "viewer")
    password = made.out.rpartition("The password, shown this once: ")[2].strip()
    assert made.out.startswith(f"ann (viewer) can log in: `pliant login --url http://{served.address} --user ann`")
    assert run("login", "--user", "ann", lines=f"{password}\n").code == 0
    assert run("logout").code == 0
    chosen = json.loads(run("users", "add", "bob", "-p", "--json", lines=f"{PASSWORD}\n").out)
    assert (chosen["user"]["role"], chosen["password"]) == ("user", None)
    assert run("users", "add", "Bad Name").code == 2
    assert run("users", "add", "bob").code == 5
    assert run("users", "set", "ann", "--role", "operator").out == "ann: operator, active\n"
    assert run("users", "set", "ann", "--disable").out == "ann: operator, disabled\n"
    assert run("users", "set", "bob", "-p", lines="another password\n").code == 0
    assert run("login", "--user", "bob", lines="another password\n").code == 0
    run("logout")
    assert run("users", "set", "ann").code == 2
    rows = run("users").out.splitlines()
    assert rows == run("users", "list").out.splitlines()
    assert [row.split()[:3] for row in rows] == [
        ["NAME", "ROLE", "STATE"],
        ["ann", "operator", "disabled"],
        ["bob", "user", "active"],
    ]
    assert [user["name"] for user in json.loads(run("users", "--json").out)["users"]] == ["ann", "bob"]
    assert run("users", "remove", "ann").out == "ann is removed; what they own stays.\n"
    assert json.loads(run("users", "remove", "bob", "--json").out) == {"name": "bob", "removed": True}
    assert run("users", "remove", "bob").code == 3


def test_tokens_are_made_listed_and_revoked(run: Run, served: Served) -> None:
    served.add_user("ann")
    log_in(run, "ann")
    assert "`pliant tokens add LABEL`" in run("tokens").out
    made = run("tokens", "add", "nightly run", "--scope", "jobs:read", "--scope", "self").out
    token = made.rpartition("The token, shown this once: ")[2].strip()
    assert run("--token", token, "ps").code == 0
    assert run("--token", token, "top", "--once").code == 6
    (row,) = run("tokens", "list").out.splitlines()[1:]
    assert "nightly run" in row
    assert "jobs:read, self" in row
    (listed,) = json.loads(run("tokens", "--json").out)["tokens"]
    assert "token" not in listed
    assert run("tokens", "revoke", listed["id"]).out == f"{listed['id']} opens nothing any more.\n"
    assert run("--token", token, "ps").code == 6
    assert run("tokens", "revoke", listed["id"]).code == 3
    assert run("tokens", "add", "x", "--days", "-1").code == 2
    run("logout")
    assert run("tokens", "list", "--owner", "ann").code == 0


def test_the_audit_log_is_printed(run: Run, served: Served) -> None:
    served.add_user("ann")
    log_in(run, "ann")
    run("logout")
    head, *rows = run("audit", "-n", "2").out.splitlines()
    assert head.split() == ["TIME", "WHO", "STATUS", "ACTION", "TARGET", "FROM"]
    assert len(rows) == 2
    entries = [json.loads(line) for line in run("audit", "--who", "ann", "--json").out.splitlines()]
    assert {entry["who"] for entry in entries} == {"ann"}
    assert "holds nothing of that" in run("audit", "--who", "nobody").out


def test_a_password_is_changed(run: Run, served: Served) -> None:
    served.add_user("ann")
    log_in(run, "ann")
    assert run("passwd", lines=f"wrong\n{PASSWORD}x\n").code == 2
    assert run("passwd", lines=f"{PASSWORD}\nanother password\n").out.startswith("The password is changed")
    assert run("whoami").out.startswith("ann ")
    assert run("login", "--user", "ann", lines=f"{PASSWORD}\n").code == 6
    assert run("login", "--user", "ann", lines="another password\n").code == 0


def test_a_job_is_shared_and_taken_back(run: Run, served: Served, tmp_path: Path) -> None:
    for name in ("ann", "bob"):
        served.add_user(name)
    log_in(run, "ann")
    (tmp_path / "digits.py").write_text("print()")
    job_id = json.loads(run("submit", str(tmp_path / "digits.py"), "--json").out)["id"]
    served.tick()
    assert run("share", "digits.py").out == f"{job_id} is ann's and shared with nobody\n"
    assert run("share", "digits.py", "bob").out == f"{job_id} is ann's and shared with bob\n"
    assert json.loads(run("share", job_id, "*", "--json").out)["shared_with"] == ["bob", "*"]
    assert run("share", job_id, "*", "--remove").out == f"{job_id} is ann's and shared with bob\n"
    unknown = run("share", job_id, "zoe", "yan")
    assert (unknown.code, unknown.err.count("no user is named")) == (2, 2)
    log_in(run, "bob")
    assert run("ps").out.splitlines()[1].startswith(job_id)
    assert run("set", job_id, "--priority", "7").code == 6
    assert run("share", job_id, "bob", "--remove").code == 6
    log_in(run, "ann")
    assert run("share", job_id, "bob", "--remove").code == 0
    log_in(run, "bob")
    assert run("show", job_id).code == 3
    _others_hold_a_slot(served)
    run("logout")
    assert run("stop", job_id).code == 0


def _others_hold_a_slot(served: Served) -> None:
    """The live view draws slots of jobs that are hidden as taken."""
    with Client(f"http://{served.address}", None) as nobody:
        token = nobody.people.log_on("bob", PASSWORD).token
    with Client(nobody.url, token) as bob:
        view = View(cluster=bob.cluster(), jobs=(), events=(), url=bob.url)
    screen = console()
    with screen.capture() as drawn:
        screen.print(draw(view, width=80, height=20))
    text = drawn.get()
    assert "1/4 slots held" in text
    assert "█ others 1" in text


def test_at_a_terminal_a_password_is_not_shown(served: Served, run: Run, home: Path) -> None:
    served.add_user("ann", Role.USER)
    parent, child = pty.openpty()
    argv = [sys.executable, "-m", "pliant.cli.app", "login", "--user", "ann"]
    process = subprocess.Popen(argv, stdin=child, stdout=child, stderr=child, start_new_session=True)
    os.close(child)
    shown = b""
    while b"Password: " not in shown:
        shown += os.read(parent, 1000)
    os.write(parent, LogonRequest(name="ann", password=PASSWORD).password.encode() + b"\n")
    while chunk := _read(parent):
        shown += chunk
    os.close(parent)
    assert process.wait(30) == 0
    assert b"ann (user) is logged in at" in shown
    assert PASSWORD.encode() not in shown


def _read(descriptor: int) -> bytes:
    """Return what a terminal shows next; nothing when the last process has let go of it."""
    try:
        return os.read(descriptor, 1000)
    except OSError:
        return b""
