"""What is wrong with a command is said as the command is written, and what was meant if it is near."""

import re
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.server.played import Played

from pliant.cli.spelling import in_commands, respell
from pliant.core.errors import Problem


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("sumbit x", "there is no command 'sumbit'; is 'submit' meant?"),
        ("queues ad x", "there is no command 'ad'; is 'add' meant?"),
        ("ps --al", "there is no option --al; is --all meant?"),
        ("files 1 --only", "there is no option --only"),
        ("env add x", "give exactly one of --requirements, --venv and --conda (got none)"),
        ("ps 3", "'3' is more than the command takes; leave it out"),
        ("plan", "--max is missing: The job grows up to this many tasks."),
        ("logs 1 -n -3", "--tail: '-3' is too small; give 0 or more"),
        ("top --every x", "--every: 'x' is no number"),
        (
            "users add x --role usr",
            "--role: 'usr' is not one of 'admin', 'operator', 'user', 'viewer'; is 'user' meant?",
        ),
        ("set 1 --priority 0", "--priority: 0 is too small; give 1 or more"),
        ("set 1", "nothing to change: give one of --priority, --min, --max, --queue, --tag, --after, --after-any"),
        (
            "users add Ann",
            "NAME: 'Ann' cannot be taken; give small letters, digits, '.', '_' and '-', 60 at most, a letter first",
        ),
        ("queues add x --max-tasks 0", "--max-tasks: 0 is too small; give 1 or more"),
        ("groups add x --label a=b*", "--label a: 'b*' cannot be taken; give letters, digits, '.', '_', '/' and '-'"),
        (
            "groups add x --slots gpu",
            "--slots: 'gpu': position 1: 'gpu' is not known; there are ngpus, ncpus, min, max",
        ),
        ("data add /tmp --size 0x3", "--size: 0 is too small; give 1 or more"),
        ("data add /tmp --validation 200", "--validation: 200.0 is too large; give less than 100"),
    ],
)
def test_a_wrong_call_is_answered_in_its_own_spelling(run: Run, words: str, said: str) -> None:
    done = run(None, *words.split())

    assert (done.code, done.err.splitlines()[0]) == (2, f"error: {said}")


def test_what_the_server_refuses_is_said_in_the_commands_spelling(run: Run, pool: Played) -> None:
    pool.add(name="digits")

    said = {
        words: run(pool, *words.split()).err
        for words in (
            "set 1 --queue nigth",
            "share 1 nobody",
            "data show x",
            "why digts",
            "queues add x --group y",
            "ps --array 7",
        )
    }

    assert said == {
        "set 1 --queue nigth": "error: --queue: there is no queue 'nigth'; there are default\n",
        "share 1 nobody": "error: USER: no user is named 'nobody'; ask them for their name\n",
        "data show x": "error: there is no data set 'x'; `pliant data list` lists those you may use\n",
        "why digts": "error: no job is called 'digts'; is 'digits' meant?\n",
        "queues add x --group y": "error: --group: there is no resource group 'y'; there are all\n",
        "ps --array 7": "error: no array is named '7'; `pliant ps --all` says which array each job is of\n",
    }


def test_of_a_job_that_has_ended_is_said_how_it_is_run_again(run: Run, pool: Played) -> None:
    job_id = pool.add(name="ended")
    assert run(pool, "stop", job_id, "--now").code == 0
    pool.until_ended(job_id)

    refused = pool.http.patch(f"/jobs/{job_id}", json={"priority": 7}).json()["detail"]

    assert re.fullmatch(
        rf"{job_id} has already been stopped at [-0-9]+ [:0-9]+ UTC; run it again if it is needed", refused
    )
    assert f"UTC; `pliant rerun {job_id}` runs it again" in run(pool, "set", job_id, "--priority", "7").err


@pytest.mark.parametrize("number", ["0", "-3", "1000000"])
@pytest.mark.parametrize("command", ["submit", "rerun"])
def test_a_number_that_cannot_be_is_said_of_the_option_that_gave_it(
    run: Run, pool: Played, tmp_path: Path, command: str, number: str
) -> None:
    (tmp_path / "train.py").write_text("import pliant.train\n")
    what = str(tmp_path / "train.py") if command == "submit" else pool.add()

    done = run(pool, command, what, f"--fixed={number}")

    assert (done.code, done.err.count("\n")) == (2, 1)
    assert done.err.startswith(f"error: --fixed: {number} is too ")


def test_a_path_that_is_not_there_is_told_with_what_lies_near(run: Run, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import pliant.train\n")

    near, far = (run(None, "submit", str(tmp_path / name)).err for name in ("trian.py", "folder/trian.py"))

    assert f"is neither a folder nor a file; is '{tmp_path / 'train.py'}' meant?" in near.replace("\n", " ")
    assert "is neither a folder nor a file; check the path" in far.replace("\n", " ")


def test_fields_within_fields_are_those_of_an_option() -> None:
    names = {"resource_group": "--group", "seed": "--seed", "weights": "--weights"}

    spelled = [
        respell(Problem(field=field, message="resource_group is given"), names)
        for field in (
            "resource_group",
            "split.seed",
            "weights.training",
            "hyperparameters.epochs",
            "hosts.names.0",
            "other",
        )
    ]

    assert [one.field for one in spelled] == [
        "--group",
        "--seed",
        "--weights training",
        "--set epochs",
        "--host",
        "other",
    ]
    assert {one.message for one in spelled} == {"--group is given"}


def test_rest_is_told_no_command_and_commands_no_rest(pool: Played) -> None:
    answer = pool.http.get("/datasets/x").json()["detail"]

    assert "pliant" not in answer
    assert in_commands(answer) == "there is no data set 'x'; `pliant data list` lists those you may use"
