"""`pliant rerun`: what is asked for, and what is said of it; `tests/server/test_rerun.py` shows what comes of it."""

import json

import pytest
from tests.cli.conftest import Run
from tests.server.played import Played


@pytest.fixture(scope="module")
def first(taking: Played) -> str:
    return taking.add(name="digits", args=["--lr", "0.1"], max_tasks=2, env={"A": "1", "MY_TOKEN": "geheim"})


def test_a_job_is_run_again_as_it_was_submitted(run: Run, taking: Played, first: str) -> None:
    done = run(taking, "rerun", first)

    new = taking.store.jobs(limit=1)[0]
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        f"{new.id} runs {first} again, as it was submitted\n"
        f"{new.id} (digits) is submitted; `pliant logs -f {new.id}` follows it\n"
    )
    assert new.spec == taking.job(first).spec
    assert f"\nruns again       {first}\n" in run(taking, "show", new.id).out
    assert "runs again" not in run(taking, "show", first).out


def test_what_is_otherwise_is_said_as_it_was_typed(run: Run, taking: Played, first: str) -> None:
    options = ["--max", "4", "--env", "A=2", "--env", "MY_TOKEN=neu", "--no-tracking", "--weights", "1"]
    done = run(taking, "rerun", first, *options, "--after-any", first, "--", "--lr", "0.01")

    new = taking.store.jobs(limit=1)[0]
    weights = taking.home / "jobs" / "job-1" / "result" / "model" / "model.pt"
    assert done.out.splitlines()[:-1] == [
        f"{new.id} runs {first} again, but for:",
        "  ARGS: --lr 0.1 → --lr 0.01",
        "  --max: 2 → 4",
        f"  --after-any: – → {first}",
        "  --weights: – → job-1",
        "  --tracking: true → false",
        "  --env A: 1 → 2",
        "  --env MY_TOKEN: (hidden) → (hidden)",
    ]
    assert (new.spec.args, new.spec.max_tasks, new.spec.weights) == (("--lr", "0.01"), 4, str(weights))
    assert new.spec.env == {"A": "2", "MY_TOKEN": "neu"}


def test_limits_names_and_paths_are_taken_away(run: Run, taking: Played) -> None:
    limited = taking.add(name="limited", time_limit_s=60.0, memory_bytes=1 << 32, weights="job-1", stall_after_s=30.0)

    limits = ["--time-limit", "off", "--memory", "OFF", "--stall-after", "off"]
    done = run(taking, "rerun", limited, *limits, "--weights", "")

    spec = taking.store.jobs(limit=1)[0].spec
    assert (done.code, done.err) == (0, "")
    assert (spec.time_limit_s, spec.memory_bytes, spec.weights, spec.stall_after_s) == (None, None, None, 0.0)
    assert "  --time-limit: 60 → –\n" in done.out


def test_a_limit_that_is_none_names_off(run: Run, taking: Played, first: str) -> None:
    done = run(taking, "rerun", first, "--time-limit", "none")
    assert done.err == "error: --time-limit: 'none' is no length of time; give one like 90s, 30m, 1h30m or 2d, or off\n"


def test_json_has_the_differences(run: Run, taking: Played, first: str) -> None:
    made = json.loads(run(taking, "rerun", first, "--fixed", "2", "--json").out)
    assert (made["rerun_of"], made["spec"]["fixed"], made["spec"]["max_tasks"]) == (first, True, 2)
    assert [one["field"] for one in made["differences"]] == ["min_tasks", "fixed"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--max", "0"], "--max: 0 is too small; give 1 or more"),
        (["--max", "9", "--virtual-workers", "8"], "--max 9 is above --virtual-workers 8"),
        (["--fixed", "4", "--max", "3"], "leave --min and --max out"),
        (["--dataset", "none"], "--dataset: there is no data set 'none'"),
        (["--requirements", "r.txt"], "there is no option --requirements"),
        (["--maxx", "3"], "is --max meant?"),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_the_command(
    run: Run, taking: Played, first: str, options: list[str], said: str
) -> None:
    done = run(taking, "rerun", first, *options)
    assert (done.code, said in done.err) == (2, True), done.err


def test_a_job_that_is_not_there_is_said(run: Run, taking: Played) -> None:
    assert run(taking, "rerun", "nobody").code == 3
    assert run(taking, "rerun", "999").code == 3
