"""The command `delete`: one job at once, several after a question, and what is refused."""

import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.server.played import Played


def ended(pool: Played, number: int) -> list[str]:
    ids: list[str] = [pool.add(name=f"digits-{n}") for n in range(number)]
    for job_id in ids:
        pool.fail(job_id)
    return ids


def there(pool: Played) -> list[str]:
    return [job.id for job in pool.store.jobs()]


class Terminal:
    """A person at a terminal, who says this."""

    def __init__(self, said: str) -> None:
        self._said = said

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        return self._said


def test_a_job_is_deleted_and_told_of_afterwards(run: Run, pool: Played) -> None:
    ended(pool, 1)
    done = run(pool, "delete", "digits-0")
    assert (done.code, done.out, there(pool)) == (0, "job-1 is deleted\n", [])
    done = run(pool, "show", "job-1")
    assert (done.code, done.err.startswith("error: job-1 was deleted by admin at ")) == (3, True)
    assert run(pool, "delete", "2").err == "error: no job is named 'job-2'; `pliant ps --all` lists those you may use\n"


def test_several_are_deleted_only_if_somebody_says_so(run: Run, pool: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = ended(pool, 3)
    done = run(pool, "delete", *ids)
    assert done.code == 2
    assert done.err == "error: --yes: 3 jobs would be deleted for good; give --yes if that is meant\n"
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    done = run(pool, "delete", *ids)
    assert (done.code, "nothing is deleted" in done.err, there(pool)) == (1, True, ids[::-1])
    assert "Delete 3 jobs for good, with their results: job-1, job-2, job-3? [y/N]" in done.err + done.out
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert run(pool, "delete", *ids[:2]).out.endswith("job-1 is deleted\njob-2 is deleted\n")
    assert run(pool, "delete", "--yes", "3", "job-3").out == "job-3 is deleted\n"
    assert there(pool) == []


def test_what_is_refused_is_told_and_the_others_are_deleted(run: Run, pool: Played) -> None:
    ended(pool, 2)
    running = pool.add(name="running")
    done = run(pool, "delete", "-y", "1", running, "2")
    assert (done.code, done.out) == (5, "job-1 is deleted\njob-2 is deleted\n")
    assert done.err == "error: job-3 is running; stop it first, or wait for its end\n"
    assert there(pool) == [running]


def test_an_array_is_deleted_with_all_of_its_jobs(run: Run, pool: Played, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import pliant.train\n")
    assert run(pool, "submit", str(tmp_path), "--array", "lr=1,2").code == 0
    pool.tick(1.0)
    refused = run(pool, "delete", "--yes", "array-1")
    assert (refused.code, "job-1 is running; stop it first" in refused.err) == (5, True)
    for job_id in ("job-1", "job-2"):
        pool.fail(job_id)
    assert run(pool, "delete", "array-1").code == 2, "two jobs are several"
    assert run(pool, "delete", "array-1", "--yes").out == "array-1 is deleted\n"
    assert there(pool) == []
    assert run(pool, "show", "array-1").code == 3
