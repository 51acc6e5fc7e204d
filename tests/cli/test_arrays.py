"""Jobs that run after others, and arrays, on the command line."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.server.played import Played


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "train.py"
    path.write_text("import pliant.train\n")
    return str(path)


def test_a_job_is_submitted_after_others_by_name_number_and_id(run: Run, pool: Played, script: str) -> None:
    pool.add(name="first")
    pool.add(name="second")

    done = run(pool, "submit", script, "--after", "first", "--after-any", "2", "--json")

    made = json.loads(done.out)
    assert (made["after"], made["after_any"]) == (["job-1"], ["job-2"])
    assert "waits for job-1 to complete, and job-2 to end" in run(pool, "why", "3").out
    shown = run(pool, "show", "3").out
    assert "after            job-1 completed; job-2 ended" in shown
    assert "no job is called 'nobody'" in run(pool, "submit", script, "--after", "nobody").err


def test_what_it_waits_for_is_changed(run: Run, pool: Played, script: str) -> None:
    pool.add(name="first")
    pool.add(name="second")
    run(pool, "submit", script, "--after", "first", "--name", "third")

    changed = run(pool, "set", "third", "--after", "second")
    assert "waits for job-2 to complete" in changed.out
    assert "leave one or the other out" in run(pool, "set", "third", "--after", "1", "--no-after").err
    freed = json.loads(run(pool, "set", "third", "--no-after", "--json").out)
    assert (freed["after"], freed["after_any"]) == ([], [])
    pool.tick(1.0)
    refused = run(pool, "set", "third", "--after", "1")
    assert (refused.code, "job-3 has started" in refused.err) == (5, True)


def test_a_wait_ends_with_what_it_waited_for(run: Run, pool: Played, script: str) -> None:
    pool.add(name="first")
    run(pool, "submit", script, "--after", "1")
    pool.fail("job-1")

    assert "job-1 failed, and job-2 was to run after it had completed" in run(pool, "show", "2").out
    assert "job-1 failed; a job that is to run after it" in run(pool, "submit", script, "--after", "1").err


def test_an_array_is_submitted_listed_shown_and_stopped(run: Run, pool: Played, script: str) -> None:
    values = ("--array", "lr=0.1,0.01", "--array", "batch=32,64", "--array-max", "2")
    done = run(pool, "submit", script, *values, "--name", "sweep", "--", "--epochs", "3")
    assert done.out.startswith("array-1 (sweep) is submitted: 4 jobs, job-1 to job-4; `pliant show array-1`")
    pool.tick(2.0)
    pool.add(name="other")

    listed = run(pool, "ps").out.splitlines()
    assert listed[0].split()[-1] == "ARRAY"
    assert [line.split()[-1] for line in listed[1:]] == ["–", *["array-1"] * 4]
    assert len(run(pool, "ps", "--array", "array-1").out.splitlines()) == 5
    shown = run(pool, "show", "array-1").out.splitlines()
    assert shown[1].split(maxsplit=1)[1] == "4 jobs: 2 pending, 2 running"
    assert shown[-1].split()[:4] == ["job-4", "0.01", "64", "pending"]
    assert "values           lr=0.01 batch=64" in run(pool, "show", "4").out
    assert run(pool, "stop", "array-1", "--now").out == "array-1 (sweep): 2 stopping, 2 stopped\n"
    pool.tick(10.0)
    assert run(pool, "ps", "--array", "array-1").out.startswith("No job waits")
    assert len(json.loads(run(pool, "ps", "--all", "--array", "array-1", "--json").out)["jobs"]) == 4
    assert json.loads(run(pool, "show", "array-1", "--json").out)["states"] == {"stopped": 4}


def test_a_list_without_arrays_has_no_column_for_them(run: Run, pool: Played) -> None:
    pool.add()
    assert "ARRAY" not in run(pool, "ps").out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--array", "=1"], "--array: '=1' has no name; give it as NAME=VALUE,VALUE"),
        (["--array", "lr"], "--array: 'lr' has no values; give it as NAME=VALUE,VALUE"),
        (["--array", "lr=1", "--array", "lr=2"], "--array: 'lr' is given twice; give all its values at once"),
        (["--array", "lr=1,1"], "'lr' has the value '1' twice"),
        (["--array", "lr=1", "--array-max", "0"], "--array-max: 0 is too small"),
        (["--array-max", "3"], "--array: it is missing"),
        (["--array", "lr=1", "--follow"], "use --wait"),
    ],
)
def test_what_is_wrong_with_values_is_said_before_anything_is_sent(
    run: Run, script: str, options: list[str], said: str
) -> None:
    done = run(None, "submit", script, *options)
    assert (done.code, said in done.err) == (2, True), done.err


def test_waiting_for_an_array_ends_with_code_1_unless_all_completed(run: Run, pool: Played, script: str) -> None:
    run(pool, "submit", script, "--array", "lr=1,2")
    pool.tick(2.0)
    pool.complete("job-1")
    pool.fail("job-2")

    ended = json.loads(run(pool, "show", "array-1", "--json").out)["states"]
    assert ended == {"completed": 1, "failed": 1}
    refused = run(pool, "stop", "array-1", "--wait")
    assert (refused.code, "all jobs of array-1 have ended already" in refused.err) == (5, True)


def test_metrics_of_an_array_stand_side_by_side_with_its_values(run: Run, pool: Played, script: str) -> None:
    run(pool, "submit", script, "--array", "optimizer=SGD,Adam")
    pool.measure("job-1", 3.0, 2.0)
    pool.measure("job-2", 5.0, 4.0)

    table = run(pool, "metrics", "array-1", "--rows", "0").out.splitlines()
    assert table[0].split("  ")[1:] == ["job-1 optimizer=SGD loss", "job-2 optimizer=Adam loss"]
    assert run(pool, "metrics", "array-1", "--csv").out.splitlines()[:2] == [
        "step,job-1 optimizer=SGD loss,job-2 optimizer=Adam loss",
        "1,3.0,5.0",
    ]


def test_one_job_is_meant_where_an_array_is_named(run: Run, pool: Played, script: str) -> None:
    run(pool, "submit", script, "--array", "lr=1,2")
    done = run(pool, "logs", "array-1")
    assert (done.code, "array-1 is an array; name one of its jobs" in done.err) == (5, True)
    assert "no array is named 'array-7'" in run(pool, "show", "array-7").err
