"""`up` and `down` with the real server in a process of its own."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.e2e.pool import run_command
from tests.process_state import has_ended

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

_DEADLINE_S = 50.0


def pliant(home: Path, *args: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "pliant.cli.app", "--home", str(home), *args]
    return subprocess.run(argv, capture_output=True, text=True, timeout=_DEADLINE_S, check=False)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    home = tmp_path / "home"
    yield home
    if (home / "server.json").exists():
        os.kill(json.loads((home / "server.json").read_text())["pid"], signal.SIGKILL)


def leads(home: Path, pid: int) -> bool:
    try:
        return bool(json.loads((home / "server.json").read_text())["pid"] == pid)
    except FileNotFoundError:
        return False


def test_the_server_comes_up_in_the_background_a_standby_follows_it_and_goes_down_again(home: Path) -> None:
    up = pliant(home, "up", "-d", "--port", "0", "--slots", "3", "--json")
    assert up.returncode == 0, up.stderr
    record = json.loads(up.stdout)
    password = up.stderr.partition("password  ")[2].split()[0]
    assert f"address   {record['url']}\n  user      admin\n" in up.stderr
    assert httpx.get(f"{record['url']}/v1/me", auth=("admin", password), timeout=30).json()["role"] == "admin"
    assert password not in (home / "server.log").read_text()
    assert (home / "server.log").stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o777 == 0o700

    _, top, _ = run_command(home, "top", "--once", "--json")
    view = json.loads(top)
    assert (view["url"], len(view["cluster"]["slots"])) == (record["url"], 3)

    code, _, said = run_command(home, "up", "-d", "--port", "0")
    assert code == 5
    assert f"a server runs for {home} already, at {record['url']}" in said

    standby = pliant(home, "up", "-d", "--standby", "--port", "0", "--slots", "1")
    assert standby.returncode == 0, standby.stderr
    assert "The server stands by at http://127.0.0.1:" in standby.stdout
    waiting = json.loads((home / "standby.json").read_text())
    assert f"`kill {waiting['pid']}` ends it" in standby.stdout
    assert "end it with `pliant" not in standby.stdout
    os.kill(record["pid"], signal.SIGKILL)
    deadline = time.monotonic() + _DEADLINE_S
    while not leads(home, waiting["pid"]):
        assert time.monotonic() < deadline
        time.sleep(0.05)  # between two looks
    url = json.loads((home / "server.json").read_text())["url"]
    assert run_command(home, "ps")[0] == 0
    assert run_command(home, "down") == (0, f"The server at {url} has ended; its jobs are saved.\n", "")
    assert has_ended(waiting["pid"])
    assert run_command(home, "ps")[0] == 4
    assert run_command(home, "down")[0] == 4


def test_a_server_that_cannot_start_says_why(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        up = pliant(home, "up", "-d", "--port", str(port))
    assert up.returncode == 4
    assert up.stdout == ""
    assert "the server ended at once (code 2); it said:" in up.stderr
    assert f"port {port} of 127.0.0.1 is taken" in up.stderr


def test_a_home_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, said = run_command(tmp_path / "file" / "home", "up", "-d")
    assert code == 4
    assert "give another --home" in said


def test_the_server_in_the_foreground_ends_at_sigint(home: Path) -> None:
    argv = [sys.executable, "-m", "pliant.cli.app", "up", "--home", str(home), "--port", "0", "--slots", "1"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        deadline = time.monotonic() + _DEADLINE_S
        while not (home / "server.json").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert json.loads((home / "server.json").read_text())["pid"] == server.pid, "the command became the server"
        server.send_signal(signal.SIGINT)
        _, said = server.communicate(timeout=_DEADLINE_S)
    assert server.returncode == 0
    assert "the server listens at http://127.0.0.1:" in said


def test_a_database_s_password_on_the_command_line_is_refused_and_nothing_starts(home: Path) -> None:
    database = ("--database", "postgresql://ann:sesame@127.0.0.1/pliant")
    code, _, said = run_command(home, "up", "-d", "--port", "0", *database)
    assert code == 2
    assert "a password on a command line is seen by everybody who lists processes" in said
    assert "sesame" not in said
    assert not (home / "server.log").exists()
