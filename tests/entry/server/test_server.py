"""The server as a process: its folder, its address, its secrets, and how it ends."""

import io
import json
import os
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.e2e.pool import free_port

from pliant.entry.server.__main__ import main

pytestmark = pytest.mark.timeout(180)  # one test starts several servers

DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "elastic.py"


def command(home: Path, *args: str) -> list[str]:
    return [sys.executable, "-m", "pliant.entry.server", "--home", str(home), *args]


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
    with (home.parent / "server.log").open("ab") as log:
        process = subprocess.Popen(command(home, "--port", "0", "--slots", "2", *args), stderr=log)
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


def submit(http: httpx.Client, script: Path, **job: object) -> str:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        tar.add(script, arcname="train.py")
    body = json.dumps({"script": "train.py", **job})
    response = http.post("/jobs", files={"job": (None, body), "code": ("code.tar.gz", out.getvalue())})
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_training_outlives_a_killed_server_is_paused_by_sigterm_and_goes_on(home: Path) -> None:
    ports_and_patience = ("--port", str(free_port()), "--lease-s", "30")
    with running(home, *ports_and_patience) as first:
        with client(home) as http:
            job_id = submit(http, DIGITS, max_tasks=2, args=["--epochs", "100000", "--width", "4"])
            wait_for(lambda: len([task for task in _tasks(http, job_id) if task["state"] == "training"]) == 2)
            wait_for(lambda: _progress(http, job_id))
            pids = {task["pid"] for task in _tasks(http, job_id)}
        first.kill()
        first.wait(10)
    (home / "server.json").unlink()
    with running(home, *ports_and_patience) as second:
        with client(home) as http:
            before = _progress(http, job_id)["step"]
            wait_for(lambda: _progress(http, job_id)["step"] > before)
            assert pids <= {task["pid"] for task in _tasks(http, job_id)}
        second.send_signal(signal.SIGTERM)
        assert second.wait(45) == 0
    assert not any(_lives(pid) for pid in pids)
    with running(home, *ports_and_patience), client(home) as http:
        detail = http.get(f"/jobs/{job_id}").json()
        states = [event["data"]["to"] for event in _states(http, job_id)]
        assert "paused" in states
        saved = detail["job"]["progress"]["step"]
        wait_for(lambda: _progress(http, job_id)["step"] > saved)
        http.post(f"/jobs/{job_id}/stop")
        wait_for(lambda: http.get(f"/jobs/{job_id}").json()["job"]["state"] == "stopped")


def _progress(http: httpx.Client, job_id: str) -> Any:
    return http.get(f"/jobs/{job_id}").json()["job"]["progress"]


def _tasks(http: httpx.Client, job_id: str) -> list[dict[str, Any]]:
    return [task for task in http.get(f"/jobs/{job_id}").json()["tasks"] if task["ended_at"] is None]


def _states(http: httpx.Client, job_id: str) -> list[dict[str, Any]]:
    events = http.get("/events", params={"job_id": job_id, "limit": 10_000}).json()["events"]
    return [event for event in events if event["kind"] == "job.state"]


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
