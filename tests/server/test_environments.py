"""The routes of environments, and the commands over them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import Served

from pliant import __version__
from pliant.cli.app import main

Eventually = Callable[[Callable[[], Any]], Any]
Cli = Callable[..., str]


@pytest.fixture
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose interpreter says that it has all that a task needs."""
    folder = tmp_path_factory.mktemp("venv")
    (folder / "pyvenv.cfg").touch()
    python = folder / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f"""#!/bin/sh\necho '["{__version__}", "2"]'\n""")
    python.chmod(0o755)
    return folder


def hold(venv: Path) -> Path:
    """Let the interpreter answer only once there is a file; return that."""
    python, may_end = venv / "bin" / "python", venv / "may-end"
    python.write_text(python.read_text().replace("\n", f"\nuntil [ -e {may_end} ]; do sleep 0.02; done\n", 1))
    return may_end


@pytest.fixture
def cli(server: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.setenv("PLIANT_URL", f"http://{server.address}")
    monkeypatch.setenv("PLIANT_TOKEN", "the-token")

    def command(*args: str, code: int = 0) -> str:
        with pytest.raises(SystemExit) as ended:
            main(args)
        captured = capsys.readouterr()
        assert (ended.value.code or 0) == code, captured.out + captured.err
        return captured.err if code else captured.out

    return command


def test_an_environment_from_its_registration_to_its_end(server: Served, venv: Path, eventually: Eventually) -> None:
    may_end = hold(venv)
    made = server.http.post("/environments", json={"name": "mine", "venv": str(venv)})
    assert made.status_code == 201, made.text
    assert made.headers["ETag"] == '"1"'
    assert made.json() | {"why": "", "created_at": 0} == {
        "name": "mine",
        "owner": "admin",
        "kind": "venv",
        "source": str(venv),
        "state": "building",
        "why": "",
        "output": [],
        "key": made.json()["key"],
        "python": "",
        "builder": "",
        "num_bytes": 0,
        "built_at": None,
        "last_used_at": None,
        "created_at": 0,
        "shared_with": [],
        "revision": 1,
    }
    may_end.touch()
    assert server.http.post("/environments", json={"name": "mine", "venv": str(venv)}).status_code == 409
    eventually(lambda: server.http.get("/environments/mine").json()["state"] == "ready")
    assert [one["name"] for one in server.http.get("/environments").json()["environments"]] == ["mine"]
    assert server.http.get("/environments/mine/log").text == ""
    assert server.http.post("/environments/mine/rebuild").status_code == 202
    assert server.http.delete("/environments/mine", headers={"If-Match": '"9"'}).status_code == 412
    assert server.http.delete("/environments/mine").status_code == 204
    assert server.http.get("/environments/mine").status_code == 404


def test_it_is_hidden_from_others_until_it_is_shared(server: Served, venv: Path) -> None:
    with server.client_of("ada") as ada, server.client_of("bob") as bob:
        assert ada.post("/environments", json={"name": "mine", "venv": str(venv)}).status_code == 201
        assert bob.get("/environments").json() == {"environments": [], "next": None}
        for method, path in (("GET", ""), ("GET", "/log"), ("DELETE", ""), ("POST", "/rebuild")):
            assert bob.request(method, f"/environments/mine{path}").status_code == 404
        unseen = server.submit(environment="mine")
        assert unseen.status_code == 201, "an administrator sees it"
        assert ada.put("/environments/mine/shares", json={"shared_with": ["bob"]}).json()["shared_with"] == ["bob"]
        assert bob.get("/environments/mine").status_code == 200
        assert bob.delete("/environments/mine").status_code == 403
        used = ada.delete("/environments/mine")
        assert (used.status_code, "is used by job-1" in used.json()["detail"]) == (409, True)


def test_what_is_wrong_is_told_at_once(server: Served) -> None:
    asked = {"name": "x", "requirements": "-e .\ny @ https://x\n", "shared_with": ["nobody"]}
    answer = server.http.post("/environments", json=asked)
    assert answer.status_code == 422
    assert len(answer.json()["problems"]) == 3
    both = server.http.post("/environments", json={"name": "x", "venv": "/a", "conda": "b"})
    assert "exactly one of" in both.json()["detail"]
    for environment, because in {
        "nowhere": "there is no environment 'nowhere'",
        "/nowhere": "is not there",
        "conda:nowhere": "no conda environment",
        "requirements:none.txt": "no such plain file",
        "requirements:../x.txt": "outside the code folder",
        "a b": "is no environment",
    }.items():
        refused = server.submit(environment=environment)
        assert (refused.status_code, because in refused.json()["detail"]) == (422, True), refused.text
    twice = server.submit(environment="x", python="/usr/bin/python3")
    assert "python and environment both" in twice.json()["detail"]


def test_a_job_waits_at_the_gate_and_goes_on(server: Served, venv: Path, eventually: Eventually) -> None:
    may_end = hold(venv)
    job_id = server.submit(environment=str(venv)).json()["id"]
    server.tick()
    assert server.http.get(f"/jobs/{job_id}/why").json()["sentence"].startswith("waits for its environment: tries ")
    assert server.http.get(f"/jobs/{job_id}").json()["tasks"] == []
    may_end.touch()

    def started() -> bool:
        server.tick()
        return bool(server.http.get(f"/jobs/{job_id}").json()["tasks"])

    eventually(started)


def test_the_commands(cli: Cli, venv: Path, tmp_path: Path) -> None:
    assert "pliant env add" in cli("env", "list")
    assert "mine is registered" in cli("env", "add", "mine", "--venv", str(venv))
    assert "mine" in cli("env", "list")
    assert str(venv) in "".join(cli("env", "show", "mine").split())
    assert cli("env", "log", "mine") == ""
    assert "exactly one of" in cli("env", "add", "other", code=2)
    assert "no user is named" in cli("env", "share", "mine", "eve", code=2)
    assert "shared with *" in cli("env", "share", "mine", "*")
    assert "is built anew" in cli("env", "rebuild", "mine")

    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text("")
    (code / "requirements.txt").write_text("")
    outside = tmp_path / "outside.txt"
    outside.write_text("")
    assert "lies outside" in cli("submit", str(code), "--requirements", str(outside), code=2)
    assert "no file 'none.txt'" in cli("submit", str(code), "--requirements", "none.txt", code=2)
    both = ("--requirements", "requirements.txt", "--environment", "mine")
    assert "leave one of the two out" in cli("submit", str(code), *both, code=2)
    assert "job-1" in cli("submit", str(code / "train.py"), "--requirements", str(code / "requirements.txt"))
    assert "requirements:requirements.txt" in cli("show", "job-1")
    assert "job-2" in cli("submit", str(code), "--environment", "mine")
    assert "is used by job-2" in cli("env", "remove", "mine", code=5)
    cli("stop", "job-2")
    assert "mine is removed" in cli("env", "remove", "mine")
