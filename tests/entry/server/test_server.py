"""The server as a process: its folder, its address, its secrets, and how it ends."""

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from pliant.entry.server.process import main

pytestmark = pytest.mark.timeout(180)


Refused = Callable[..., str]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    """Give what a server says that cannot start; that its process ends so, `tests.cli.test_server` sees."""

    def said(home: Path, *args: str) -> str:
        assert main(["--home", str(home), *args]) == 2
        said = capsys.readouterr().err
        assert len(said.splitlines()) == 1, said
        return said

    return said


def wait_for(condition: Callable[[], Any], seconds: float = 50.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.02)
    return found


@contextmanager
def running(home: Path, *args: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server until the end of the block."""
    command = [sys.executable, "-m", "pliant.entry.server", "--home", str(home), "--port", "0", "--slots", "2", *args]
    with (home.parent / "server.log").open("ab") as log:
        process = subprocess.Popen(command, stderr=log)
    try:
        wait_for(lambda: process.poll() is not None or (home / "server.json").exists())
        assert process.poll() is None, (home.parent / "server.log").read_text()
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(45)


def client(home: Path) -> httpx.Client:
    url = json.loads((home / "server.json").read_text())["url"]
    token = (home / "token").read_text()
    return httpx.Client(base_url=f"{url}/v1", headers={"Authorization": f"Bearer {token}"}, timeout=20)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_a_server_makes_its_folder_and_leaves_it_in_order(home: Path, refused: Refused) -> None:
    with running(home) as process:
        info = json.loads((home / "server.json").read_text())
        assert info["pid"] == process.pid
        assert httpx.get(f"{info['url']}/v1/healthz", timeout=30).status_code == 200
        assert home.stat().st_mode & 0o777 == 0o700
        for name in ("token", "secret", "lock", "server.json"):
            assert (home / name).stat().st_mode & 0o777 == 0o600, name
        assert len((home / "secret").read_bytes()) == 32
        token = (home / "token").read_text()
        with client(home) as http:
            assert http.get("/cluster").json()["policy"] == "fairshare"
            assert f"another Pliant server (pid {process.pid}) uses this state folder" in refused(home, "--port", "0")
            assert (home / "server.json").exists()
            assert http.post("/shutdown").status_code == 202
        assert process.wait(30) == 0
    assert not (home / "server.json").exists()
    assert (home / "token").read_text() == token
    assert token not in (home.parent / "server.log").read_text()


def test_a_port_that_is_taken_is_named(home: Path, refused: Refused) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert f"port {port} of 127.0.0.1 is taken" in refused(home, "--port", str(port))


def test_values_out_of_range_are_refused_all_at_once(home: Path, refused: Refused) -> None:
    said = refused(home, "--host", "0.0.0.0", "--port", "70000", "--slots", "0")
    assert "'0.0.0.0' is no loopback address" in said
    assert "--port: 70000" in said
    assert "--slots: 0" in said
    assert not home.exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot be used" in refused(tmp_path / "file" / "home", "--port", "0")
