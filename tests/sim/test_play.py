"""The command: what it prints, twice the same, and what it says of bad input."""

import json
from pathlib import Path

import pytest

from pliant.sim.play import main
from pliant.sim.trace import story


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "story.json"
    path.write_text(story().model_dump_json(exclude_none=True))
    return str(path)


def test_without_a_trace_two_stories_are_played_under_each_policy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "3"]) == 0

    said = capsys.readouterr().out
    assert "A long job and a short one: 8 slots, 2 jobs, policy fairshare" in said
    assert "A mixed day (seed 3): 16 slots, 36 jobs, policy fairshare" in said
    assert all(said.count(f"\n{policy} ") == 2 for policy in ("fairshare", "priority", "fifo"))


def test_the_same_command_prints_the_same_twice(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    """That a mixed day is the same every time stands in `test_run`."""
    assert main([trace]) == 0
    first = capsys.readouterr().out
    assert main([trace]) == 0

    assert capsys.readouterr().out == first


def test_a_trace_is_played_on_the_pool_that_is_asked_for(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([trace, "--policy", "fifo", "--nodes", "2", "--slots", "2"]) == 0

    assert "story.json: 4 slots, 2 jobs, policy fifo" in capsys.readouterr().out


def test_everything_comes_as_json(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([trace, "--json"]) == 0

    policies = json.loads(capsys.readouterr().out)["story.json"]
    assert set(policies) == {"fairshare", "priority", "fifo"}
    assert policies["fairshare"]["utilisation"] <= 1
    assert [job["state"] for job in policies["fairshare"]["jobs"]] == ["completed", "completed"]
    assert policies["fairshare"]["mean_completion_s"] < policies["fifo"]["mean_completion_s"]


def test_all_that_is_wrong_with_a_trace_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.json"
    path.write_text('{"jobs": [{"name": "A", "at_s": -1, "slot_hours": 0}]}')

    assert main([str(path)]) == 2

    said = capsys.readouterr()
    assert [line.partition(":")[0] for line in said.err.splitlines()] == ["jobs.0.at_s", "jobs.0.slot_hours"]
    assert said.out == ""


def test_a_trace_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.json")]) == 2

    assert "none.json cannot be read: No such file" in capsys.readouterr().err


def test_a_pool_without_slots_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--slots", "0"])

    assert "0 is not within 1 to 1000" in capsys.readouterr().err
