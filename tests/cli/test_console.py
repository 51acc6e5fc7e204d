"""`pliant console`: a browser that is logged on, and what is printed where there is none."""

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.cli.conftest import Done, Run
from tests.server.browser import browser
from tests.server.played import Played

CODE = re.compile(r"#code=([0-9a-f]{64})$")


@pytest.fixture(autouse=True)
def no_screen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def who_is(pool: Played, url: str) -> str:
    """Return as whom a browser is logged on that opens a link."""
    found = CODE.search(url.strip())
    assert found is not None, url
    with browser(pool) as page:
        answer = page.post("/logon/link", json={"code": found[1]})
        assert answer.status_code == 200, answer.text
        return str(page.get("/me").json()["name"])


def test_it_prints_a_link_in_one_line(pool: Played, run: Run) -> None:
    pool.add_user("admin")
    done = run(pool, "console", "--no-browser")
    assert (done.code, done.err, done.out.count("\n")) == (0, "", 1)
    assert done.out.startswith(f"{pool.url}/logon#code=")
    assert who_is(pool, done.out) == "admin"
    shown = json.loads(run(pool, "console", "--no-browser", "--to", "/jobs/job-7", "--json").out)
    assert shown["url"].startswith(f"{pool.url}/logon?to=/jobs/job-7#code=")
    assert (shown["opened"], shown["expires_at"]) == (False, pool.clock.now() + 60)


def test_where_there_is_no_browser_it_says_what_to_do(pool: Played, run: Run) -> None:
    pool.add_user("admin")
    done = run(pool, "console")
    assert done.code == 0
    assert CODE.search(done.out.strip())
    assert "There is no browser here: open this address in one within a minute" in done.err
    assert f"ssh -L {pool.port}:127.0.0.1:{pool.port}" in done.err


@pytest.mark.parametrize("to", ["//evil.example", "https://evil.example", "jobs"])
def test_it_leads_to_no_other_server(run: Run, to: str) -> None:
    done: Done = run(None, "console", "--to", to)
    assert done.code == 2
    assert "--to: " in done.err


def test_a_personal_token_opens_none(pool: Played, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    client = pool.client_of("ada")
    monkeypatch.setattr(pool, "token", client.headers["Authorization"].split()[1])
    done = run(pool, "console", "--no-browser")
    assert done.code == 6
    assert "a personal token makes no links to log on" in done.err


def test_the_code_is_on_no_command_line(pool: Played, clean: Mapping[str, str], tmp_path: Path) -> None:
    pool.add_user("admin")
    started, script = tmp_path / "started", tmp_path / "browser.sh"
    script.write_text(f'#!/bin/sh\nprintf %s "$*" > {started}\n')
    script.chmod(0o700)
    env = {**clean, "PLIANT_URL": pool.url, "PLIANT_TOKEN": pool.token, "BROWSER": f"{script} %s"}
    command = [sys.executable, "-m", "pliant.cli.app", "console", "--to", "/jobs"]
    done = subprocess.run(command, env={**env, "XDG_CONFIG_HOME": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"The console opens in your browser, at {pool.url}/logon?to=/jobs.\n"
    page = Path(started.read_text().removeprefix("file://"))
    assert page == tmp_path / "pliant" / "console.html"
    assert stat.S_IMODE(os.stat(page).st_mode) == 0o600
    found = re.search(r'content="0; url=([^"]+)"', page.read_text())
    assert found is not None
    assert who_is(pool, found[1]) == "admin"
