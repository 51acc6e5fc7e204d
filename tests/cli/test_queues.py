"""`pliant queues` and `pliant groups` against a real server over a simulated cluster."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.server.conftest import TOKEN, Served

from pliant.cli.app import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = Served(tmp_path_factory.mktemp("home"))
    yield served
    served.close()


@pytest.fixture
def run(server: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setenv("PLIANT_URL", f"http://{server.address}")
    monkeypatch.setenv("PLIANT_TOKEN", TOKEN)
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setenv("NO_COLOR", "1")

    def command(*args: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(args)
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return command


def test_from_a_group_to_a_job_that_waits_in_its_queue(run: Run, server: Served, tmp_path: Path) -> None:
    assert run("groups", "add", "few", "--host", "local", "--slots", "max(2, ngpus)")[0] == 0
    code, out, _ = run("queues", "add", "batch", "--group", "few", "--policy", "fifo", "--no-preemption")
    assert code == 0
    assert out.split()[-9:] == ["fifo", "no", "1", "0", "0", "0", "0", "2", "open"] or "fifo" in out

    (tmp_path / "train.py").write_text("print()\n")
    assert run("submit", str(tmp_path / "train.py"), "--queue", "batch", "--max", "4")[0] == 0
    server.tick(1.0)

    _, out, _ = run("queues")
    row = next(line.split() for line in out.splitlines() if line.startswith("batch"))
    assert row[:10] == ["batch", "few", "fifo", "no", "1", "0", "1", "1", "2", "2"]
    _, out, _ = run("ps")
    assert "QUEUE" in out
    assert "batch" in out
    assert "queue batch has no preemption" in run("why", "1")[1]
    _, out, _ = run("groups")
    assert next(line.split() for line in out.splitlines() if line.startswith("few"))[:2] == ["few", "local"]
    assert "max(2, ngpus)" in out

    assert run("queues", "set", "batch", "--weight", "3", "--closed", "--preemption")[0] == 0
    assert run("groups", "set", "few", "--slots", "1")[0] == 0
    _, out, _ = run("queues", "--json")
    batch = next(view for view in json.loads(out)["queues"] if view["queue"]["name"] == "batch")
    assert batch["queue"]["weight"] == 3
    assert batch["queue"]["open"] is False
    assert batch["num_slots"] == 1

    _, _, said = run("groups", "set", "few", "--slots", "ngpus")
    assert said.startswith("note: group few has no slots now: slots per host are `ngpus`, which is 0 here: local has")
    assert run("queues", "set", "batch", "--weight", "2")[2] == said
    _, _, said = run("set", "1", "--min", "2")
    assert said.startswith("note: it waits for hosts that may come: its minimum needs 2 slots and queue batch (group f")

    assert run("set", "1", "--queue", "default")[1].rstrip().endswith("queue default")
    assert run("queues", "remove", "batch")[0] == 0
    assert run("groups", "remove", "few")[0] == 0


def test_errors_have_words_and_codes(run: Run, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print()\n")

    code, _, err = run("submit", str(tmp_path / "train.py"), "--queue", "fast")
    assert (code, "there is no queue 'fast'; there are default" in err) == (2, True)
    code, _, err = run("groups", "add", "g", "--slots", "ngpus +")
    assert (code, "position 8" in err) == (2, True)
    code, _, err = run("groups", "add", "g", "--label", "kind")
    assert (code, "give it as NAME=VALUE" in err) == (2, True)
    assert run("queues", "set", "default")[0] == 2
    assert run("queues", "remove", "default")[0] == 5
    assert run("queues", "remove", "other")[0] == 3
