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

import pytest

pytestmark = pytest.mark.slow

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


def test_the_server_comes_up_in_the_background_and_goes_down_again(home: Path) -> None:
    up = pliant(home, "up", "-d", "--port", "0", "--slots", "3", "--json")
    assert (up.returncode, up.stderr) == (0, "")
    record = json.loads(up.stdout)
    assert (home / "server.log").is_file()
    assert home.stat().st_mode & 0o777 == 0o700

    view = json.loads(pliant(home, "top", "--once", "--json").stdout)
    assert (view["url"], len(view["cluster"]["slots"])) == (record["url"], 3)

    again = pliant(home, "up", "-d", "--port", "0")
    assert again.returncode == 5
    assert f"a server runs for {home} already, at {record['url']}" in again.stderr

    down = pliant(home, "down")
    assert (down.returncode, down.stdout) == (0, f"The server at {record['url']} has ended; its jobs are saved.\n")
    assert not Path(f"/proc/{record['pid']}/cmdline").exists() or not Path(f"/proc/{record['pid']}/exe").exists()
    assert pliant(home, "ps").returncode == 4
    assert pliant(home, "down").returncode == 4


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
    up = pliant(tmp_path / "file" / "home", "up", "-d")
    assert up.returncode == 4
    assert "give another --home" in up.stderr


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
