"""The commands about templates, models and trainings against a real server."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import TOKEN

from pliant.cli.app import main

Served = Any
Run = Callable[..., str]

TEMPLATE = """
name = "nets"
description = "small nets"
engines = ["elastic", "single"]

[[parameters]]
name = "width"
kind = "int"
default = 8
maximum = 64
description = "Channels."

[[parameters]]
name = "label"
kind = "text"
default = "x"
"""


@pytest.fixture
def run(server: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command and return what it printed; see that its exit code is the one that is expected."""
    monkeypatch.setenv("PLIANT_URL", f"http://{server.address}")
    monkeypatch.setenv("PLIANT_TOKEN", TOKEN)

    def command(*args: str, code: int = 0) -> str:
        with pytest.raises(SystemExit) as ended:
            main(args)
        captured = capsys.readouterr()
        assert (ended.value.code or 0) == code, captured.err
        return captured.out if code == 0 else captured.err

    return command


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "main.py").write_text("print('one')\n")
    (folder / "template.toml").write_text(TEMPLATE)
    return folder


def test_from_a_template_to_a_training(server: Served, run: Run, code: Path, tmp_path: Path) -> None:
    assert "no templates yet" in run("templates", "list")
    assert "no models yet" in run("models", "list")
    assert "nets is a template" in run("templates", "add", str(code))
    assert "there is a template 'nets' already" in run("templates", "add", str(code), code=5)
    assert json.loads(run("templates", "add", str(code), "--replace", "--json"))["revision"] == 2
    assert run("templates", "list").splitlines()[1].split()[:3] == ["nets", "PyTorch", "elastic,single"]
    shown = run("templates", "show", "nets")
    assert "small nets" in shown
    assert ["width", "int", "8", "…64", "Channels."] in [line.split() for line in shown.splitlines()]
    assert "holds the files of nets" in run("templates", "fetch", "nets", "--to", str(tmp_path / "fetched"))
    assert sorted(path.name for path in (tmp_path / "fetched").iterdir()) == ["main.py", "template.toml"]

    sets = ("--set", "optimizer=adam", "--set", "epochs=3", "--set", "width=16", "--set", "label=7")
    assert "net is a model" in run("models", "add", "net", "--template", "nets", "--max", "2", *sets)
    assert run("models", "list").splitlines()[1].split()[:5] == ["net", "nets", "–", "elastic", "2"]
    settings = json.loads(run("models", "show", "net", "--json"))["settings"]
    assert (settings["parameters"], settings["hyperparameters"]["optimizer"]) == ({"width": 16, "label": "7"}, "Adam")
    assert "revision 2" in run("models", "set", "net", "--set", "width=null", "--priority", "9000")
    shown = run("models", "show", "net")
    assert "priority 9000" in shown
    assert ["width", "(the", "template's)", "8"] in [line.split() for line in shown.splitlines()]
    told = run("models", "set", "net", "--set", "width=99", "--set", "momentum=0.5", code=2)
    assert "--set width: 99 is above 64" in told
    assert "--set momentum: Adam has no such parameter" in told

    assert "net/first is job-1; `pliant logs -f job-1` follows it" in run("train", "net", "--name", "first")
    row = run("trainings", "net").splitlines()[1].split()
    assert row[:4] == ["first", "job-1", "pending", "elastic"]
    assert "net/first" in run("trainings", "net", "first")
    assert "used by the model net" in run("templates", "remove", "nets", code=5)
    assert "being trained" in run("models", "remove", "net", code=5)


def test_trainings_are_fetched_and_go_on(server: Served, run: Run, code: Path, tmp_path: Path) -> None:
    run("templates", "add", str(code))
    run("models", "add", "net", "--template", "nets")
    assert "was not trained yet" in run("trainings", "net")
    run("train", "net", "--set", "epochs=2")
    first = Path(str(server.control.settings.folders("job-1").weights))
    assert "no weights" in run("train", "net", "--weights", "training-1", code=2)
    assert "has no weights" in run("trainings", "net", "training-1", "--weights", str(tmp_path / "none.pt"), code=3)
    assert not (tmp_path / "none.pt").exists()
    first.write_bytes(b"PK the weights")
    fetched, ran = tmp_path / "fetched.pt", tmp_path / "ran"
    run("trainings", "net", "training-1", "--weights", str(fetched), "--code", str(ran))
    assert fetched.read_bytes() == b"PK the weights"
    assert "epoch=2\n" in (ran / "ps.conf").read_text()
    for given in ("training-1", "net/training-1", "job-1"):
        view = json.loads(run("train", "net", "--weights", given, "--json"))
        assert view["weights_from"]["source"] in ("net/training-1", "job-1")
    assert "torch.save" in run("train", "net", "--weights", str(fetched), code=2)
    server.http.post("/jobs/job-1/stop")
    server.tick()
    server.tick(2)
    assert "forgotten" in run("trainings", "net", "training-1", "--remove")
    assert "has no training" in run("trainings", "net", "training-1", code=3)
    assert "name the training that is meant" in run("trainings", "net", "--remove", code=2)


def test_a_folder_without_a_description_is_described_by_options(run: Run, code: Path) -> None:
    (code / "template.toml").unlink()
    assert "name" in run("templates", "add", str(code), code=2)
    run("templates", "add", str(code), "--name", "plain", "--main", "main.py", "--description", "none")
    assert json.loads(run("templates", "show", "plain", "--json"))["description"] == "none"
    (code / "template.toml").write_text("name = plain")
    assert "not TOML" in run("templates", "add", str(code), code=2)
    assert "plain is removed" in run("templates", "remove", "plain")
