"""Tags and lists on the command line: given, taken away, shown, asked for, completed."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.server.played import Played

from pliant.cli.completion import complete_states


@pytest.fixture(scope="module")
def tagged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """A server with four jobs of three sorts: the first has failed."""
    pool = Played(tmp_path_factory.mktemp("tagged"))
    assert pool.http.post("/queues", json={"name": "night"}).is_success
    pool.fail(pool.add(name="first", tags={"lr": 0.1}))
    pool.add(name="second", tags={"lr": 0.01, "best": ""}, queue="night")
    pool.add(name="third", tags={"lr": 0.1, "best": ""})
    pool.add(name="fourth")
    yield pool
    pool.close()


def listed(run: Run, pool: Played, *options: str) -> list[str]:
    done = run(pool, "ps", *options)
    assert done.code == 0, done.err
    return re.findall(r"^job-\d", done.out, re.MULTILINE)


def test_submit_and_set_give_and_take_tags(run: Run, pool: Played, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import pliant.train\n")
    done = run(pool, "submit", str(tmp_path / "train.py"), "--tag", "lr=0.1", "--tag", "candidate", "--tag", "eq=a=b")
    assert done.code == 0, done.err
    assert pool.job("job-1").tags == {"lr": "0.1", "candidate": "", "eq": "a=b"}
    assert re.search(r"^tags +lr=0.1, candidate, eq=a=b$", run(pool, "show", "1").out, re.MULTILINE)
    done = run(pool, "set", "1", "--tag", "best", "--tag", "lr=0.2", "--untag", "candidate", "--untag", "eq")
    assert (done.code, done.out) == (0, "job-1 (train.py): priority 5000, 1 task, tags lr=0.2, best\n")
    pool.fail("job-1")
    assert run(pool, "set", "1", "--untag", "best", "--untag", "lr").out.endswith("task, tags –\n")
    assert run(pool, "set", "1", "--priority", "7", "--tag", "x").code == 5


def test_an_array_gives_all_of_its_jobs_its_tags(run: Run, pool: Played, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import pliant.train\n")
    assert run(pool, "submit", str(tmp_path), "--array", "lr=1,2", "--tag", "sweep=5").code == 0
    assert [pool.job(f"job-{n}").tags for n in (1, 2)] == [{"sweep": "5"}] * 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("submit . --tag=a,b=1", "--tag a,b: 'a,b' cannot be taken; give a name of letters, digits"),
        ("submit . --tag lr=1 --tag lr=2", "--tag: 'lr' is given as '1' and as '2'; a tag has one value"),
        ("submit . --tag =1", "--tag: it is empty; give a text"),
        ("set 1 --tag a --untag a", "--untag: --tag gives it 'a'; leave one or the other out"),
        ("set 1 --tag pliant.x", "--tag pliant.x: names that begin with 'pliant.' are Pliant's own; call it otherwise"),
    ],
)
def test_a_tag_that_is_none_is_told_in_the_words_of_the_command(
    run: Run, words: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text("import pliant.train\n")
    monkeypatch.chdir(tmp_path)
    done = run(None, *words.split())
    assert (done.code, done.err.startswith(f"error: {told}")) == (2, True), done.err


def test_ps_lists_what_is_asked_for(run: Run, tagged: Played) -> None:
    assert listed(run, tagged) == ["job-4", "job-3", "job-2"]
    assert listed(run, tagged, "--all") == ["job-4", "job-3", "job-2", "job-1"]
    assert listed(run, tagged, "--state", "failed") == ["job-1"]
    assert listed(run, tagged, "--state", "ended,starting", "--state", "waiting,running") == [
        "job-4",
        "job-3",
        "job-2",
        "job-1",
    ]
    assert listed(run, tagged, "--tag", "lr=0.1") == ["job-3"]
    assert listed(run, tagged, "--tag", "lr=0.1", "--all") == ["job-3", "job-1"]
    assert listed(run, tagged, "--tag", "lr=0.1,lr=0.01", "--tag", "best", "--all") == ["job-3", "job-2"]
    assert listed(run, tagged, "--queue", "night", "--owner", "admin") == ["job-2"]
    found = json.loads(run(tagged, "ps", "--tag", "best", "--json").out)["jobs"]
    assert [job["tags"] for job in found] == [{"lr": "0.1", "best": ""}, {"lr": "0.01", "best": ""}]


def test_ps_shows_tags_where_there_are_some(run: Run, tagged: Played) -> None:
    header, *rows = run(tagged, "ps").out.splitlines()
    assert header.split()[-1] == "TAGS"
    assert [row.split()[-2:] for row in rows][1:] == [["lr=0.1,", "best"], ["lr=0.01,", "best"]]
    assert "TAGS" not in run(tagged, "ps", "--state", "pending", "--tag", "nobody").out


def test_ps_says_what_there_is_not(run: Run, tagged: Played) -> None:
    done = run(tagged, "ps", "--state", "runing", "--owner", "ann")
    assert (done.code, done.err.splitlines()[0]) == (
        2,
        "error: --state: 'runing' is no state; give pending, starting, running, paused, stopping, completed, failed, "
        "stopped, waiting or ended; is 'running' meant?",
    )
    done = run(tagged, "ps", "--owner", "ann", "--queue", "nigth")
    assert (done.code, done.err) == (
        2,
        "error: 2 things are wrong:\n"
        "  --queue: there is no queue 'nigth'; there are default, night; is 'night' meant?\n"
        "  --owner: there is no user 'ann'\n",
    )
    assert run(tagged, "ps", "--state", "stopped").out == "There is no such job.\n"
    assert run(tagged, "ps", "--tag", "x").out == (
        "No such job waits or runs; with --all those that ended are listed, too.\n"
    )


def test_states_are_completed_one_after_the_other() -> None:
    assert complete_states("st") == [("starting", ""), ("stopping", ""), ("stopped", "")]
    assert complete_states("running,wa") == [("running,waiting", "pending or paused")]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("pliant ps --tag b", {"best"}),
        ("pliant ps --tag lr=", {"lr=0.1", "lr=0.01"}),
        ("pliant set 1 --untag l", {"lr"}),
        ("pliant ps --owner a", {"admin"}),
        ("pliant ps --state ru", {"running"}),
    ],
)
def test_a_shell_completes_tags_owners_and_states(
    words: str, offered: set[str], tagged: Played, clean: dict[str, str]
) -> None:
    asked = {"_PLIANT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    env = clean | asked | {"PLIANT_URL": tagged.url, "PLIANT_TOKEN": tagged.token}
    done = subprocess.run(
        [sys.executable, "-m", "pliant.cli.app"], env=env, capture_output=True, text=True, timeout=50, check=True
    )
    assert set(done.stdout.split()) == offered
