"""What if on the command line: `--dry-run` says who would get what, and changes nothing."""

import json
import re
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.server.played import Played


@pytest.fixture
def script(tmp_path: Path) -> str:
    (tmp_path / "train.py").write_text("import pliant.train\n")
    return str(tmp_path / "train.py")


def test_set_tells_who_would_get_what_and_changes_nothing(run: Run, pool: Played) -> None:
    for name in ("first", "second"):
        pool.add(name=name, max_tasks=4)
    last = pool.store.last_seq()
    done = run(pool, "set", "second", "--priority", "10000", "--dry-run")
    assert done.code == 0, done.err
    rows = {words[0]: words[1:4] for line in done.out.splitlines() if (words := line.split())[:1] and "job-" in line}
    assert rows["job-1"] == ["first", "2", "1"]
    assert rows["job-2"] == ["second", "2", "3"]
    assert "0 of 4 slots would be free. Nothing was changed" in done.out
    assert (pool.store.last_seq(), pool.job("job-2").priority) == (last, 5000)
    answer = json.loads(run(pool, "set", "2", "--priority", "10000", "--dry-run", "--json").out)
    assert {one["id"]: one["would_get"] for one in answer["workloads"]} == {"job-1": 1, "job-2": 3}


def test_what_would_be_refused_is_refused_as_without_it(run: Run, pool: Played) -> None:
    pool.add(fixed=True, min_tasks=2, max_tasks=2)
    for words in (("--max", "3"), ("--queue", "nowhere")):
        real, dry = (run(pool, "set", "1", *words, *more) for more in ((), ("--dry-run",)))
        assert dry.code == real.code != 0
        assert dry.err == real.err


def test_submit_tells_whether_it_would_start(run: Run, pool: Played, script: str) -> None:
    done = run(pool, "submit", script, "--max", "4", "--dry-run")
    assert done.code == 0, done.err
    assert done.out.startswith("It would start now with 1 slot, and have 4 slots.\n")
    pool.add(name="first", max_tasks=4)
    pool.tick(2.0)
    done = run(pool, "submit", script, "--max", "4", "--dry-run")
    assert re.match(r"It would start as soon as slots fall idle, and have 2 slots, which takes 2 of job-1", done.out)
    done = run(pool, "submit", script, "--min", "4", "--max", "4", "--dry-run")
    assert done.out.startswith("It would wait. It would be number 1 of 1 that wait in its queue.")
    assert "waits: its minimum needs 4 slots" in " ".join(done.out.split())
    assert [job.id for job in pool.store.jobs()] == ["job-1"]


def test_a_dry_run_refuses_what_it_cannot_foresee(run: Run, pool: Played, script: str, tmp_path: Path) -> None:
    array = run(pool, "submit", script, "--array", "lr=1,2", "--dry-run")
    assert (array.code, "--dry-run: it foresees one job" in array.err) == (2, True)
    saved = run(pool, "submit", script, "--save", str(tmp_path / "job.yaml"), "--dry-run")
    assert (saved.code, "--save: nothing is submitted with it" in saved.err) == (2, True)
    wrong = run(pool, "submit", script, "--queue", "nowhere", "--dry-run")
    assert (wrong.code, "--queue: there is no queue 'nowhere'" in wrong.err) == (2, True)
