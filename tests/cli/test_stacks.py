"""`pliant stacks`: of a job that runs, and of one that has ended."""

import json
from pathlib import Path

from tests.cli.conftest import Run
from tests.server.played import Played


def test_who_does_not_answer_in_time_is_named(run: Run, pool: Played) -> None:
    pool.add(max_tasks=1)
    done = run(pool, "stacks", "1", "--timeout", "0")
    assert (done.code, done.err) == (0, "")
    assert done.out == "job-1.1\nIt did not answer: it is still starting, or runs no Python script.\n"


def test_what_was_recorded_is_shown_when_the_job_has_ended(run: Run, pool: Played) -> None:
    pool.add(max_tasks=1)
    assert pool.http.post("/jobs/job-1/stacks").json()["task_ids"] == ["job-1.1"]
    pool.tick(1.0)
    pool.fail("job-1")
    assert run(pool, "stacks", "1").out == "job-1.1: sim.py:1 in train\nThread MainThread:\n"
    (stacks,) = json.loads(run(pool, "stacks", "1", "--json").out)
    assert stacks == {"task_id": "job-1.1", "line": "sim.py:1 in train", "waits": False, "text": "Thread MainThread:\n"}


def test_a_job_of_which_nothing_was_recorded_says_so(run: Run, pool: Played) -> None:
    pool.add(max_tasks=1)
    pool.fail("job-1")
    done = run(pool, "stacks", "1")
    assert done.code == 3
    assert "job-1 has ended, and nobody asked where its threads were" in done.err


def test_how_long_a_step_may_take_can_be_anything(run: Run, taking: Played, tmp_path: Path) -> None:
    script = str(tmp_path / "train.py")
    Path(script).write_text("import pliant.train\n")
    for given, stall_after_s in (("90s", 90.0), ("off", 0.0), ("0", 0.0)):
        done = run(taking, "submit", script, "--stall-after", given, "--json")
        assert (done.code, json.loads(done.out)["spec"]["stall_after_s"]) == (0, stall_after_s), done.err


def test_a_length_of_time_that_is_none_is_refused_with_the_option(run: Run, pool: Played) -> None:
    done = run(pool, "submit", __file__, "--time-limit", "soon")
    assert done.code == 2
    assert "--time-limit: 'soon' is no length of time; give one like 90s, 30m, 1h30m or 2d" in done.err
