"""The command line against the real server over a played cluster."""

import json
import math
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.conftest import Done, Run
from tests.client.wires import answering
from tests.contracts.store import a_job, an_event
from tests.server.conftest import packed, wait_for
from tests.server.played import PROGRESS, Played, set_scene
from typer.testing import CliRunner

from pliant.cli import formatting
from pliant.cli.app import main
from pliant.cli.commands import app
from pliant.cli.follow import LogLine, follow_job, leaders
from pliant.cli.jobs.frame import View, draw
from pliant.cli.screen import TableColumn, console, show, table
from pliant.client import Client
from pliant.core.job import Claim, JobSpec
from pliant.core.lifecycle import JobState, TaskState
from pliant.core.ports import Writes


def test_ps_lists_what_waits_or_runs_and_with_all_also_what_ended(run: Run, shown: Played) -> None:
    assert run(shown, "ps").out.splitlines() == [
        "JOB    NAME    STATE    SLOTS  TASKS  PRIO  QUEUE    EPOCH  DONE  LOSS   LEFT",
        "job-1  digits  running      2    1-2  5000  default   3/20   15%  0.25  2m05s",
    ]
    rows = run(shown, "ps", "--all").out.splitlines()[1:]
    assert [row.split()[::2][:2] for row in rows] == [["job-2", "failed"], ["job-1", "running"]]


def test_a_training_that_diverged_is_shown(run: Run, pool: Played) -> None:
    lost = replace(PROGRESS, loss=math.nan, metrics={"perplexity": math.inf}, samples_per_s=math.nan, eta_s=math.inf)
    pool.report(pool.add(), lost)
    assert run(pool, "ps").out.splitlines()[1].split()[-2:] == ["–", "–"]
    assert re.search(r"perplexity +nan", run(pool, "show", "1").out)
    assert run(pool, "top", "--once").code == 0


def test_ps_says_what_to_do_when_there_is_nothing(run: Run, pool: Played) -> None:
    assert "pliant submit" in run(pool, "ps", "-a").out
    pool.fail(pool.add())
    assert "`pliant ps --all`" in run(pool, "ps").out


def test_show_tells_state_tasks_and_generations(run: Run, shown: Played) -> None:
    out = run(shown, "show", "1").out
    for text in ("job-1 (digits)", "running", "epoch 3/20, step 30/200", "job-1.2", "training", "42 ms", "its maximum"):
        assert text in out
    failed = run(shown, "show", "job-2").out
    assert "train.py ended with exit code 1" in failed
    assert re.search(r"job-2\.1 .* 1 ", failed)


def test_every_question_can_be_answered_in_json(run: Run, shown: Played) -> None:
    assert [job["id"] for job in json.loads(run(shown, "ps", "--all", "--json").out)["jobs"]] == ["job-2", "job-1"]
    assert json.loads(run(shown, "show", "1", "--json").out)["job"]["spec"]["args"] == ["--lr", "0.1"]
    assert json.loads(run(shown, "why", "1", "--json").out)["sentence"].startswith("2 of 4 slots: its maximum")
    assert json.loads(run(shown, "top", "--once", "--json").out)["cluster"]["policy"] == "fairshare"
    assert json.loads(run(shown, "version", "--json").out)["version"]
    lines = [json.loads(line) for line in run(shown, "events", "--json").out.splitlines()]
    assert [line["seq"] for line in lines] == [*range(1, len(lines) + 1)]
    assert len(lines) > 10
    assert json.loads(run(shown, "logs", "1", "--json", "-n", "1").out.splitlines()[0]) == {
        "task_id": "job-1.1",
        "stream": "stdout",
        "line": "epoch 2",
    }


def test_a_job_is_meant_by_id_number_or_unique_name(run: Run, pool: Played) -> None:
    set_scene(pool)
    pool.add(name="other")
    for name in ("job-3", "3", "03", "other"):
        assert run(pool, "why", name).out.startswith("job-3 is running")
    assert run(pool, "why", "digits").out.startswith("job-1"), "the other job of that name has ended"
    pool.add(name="digits")
    twice = run(pool, "why", "digits")
    assert twice.code == 5
    assert "3 jobs are called 'digits': job-4, job-2, job-1" in twice.err


def test_why_tells_the_sentence_and_the_decisions(run: Run, shown: Played) -> None:
    out = run(shown, "why", "1").out
    assert out.startswith("job-1 is running with 2 tasks.\n2 of 4 slots: its maximum")
    assert re.search(r"\d\d:\d\d:\d\d  1 → 2  2 of 4 slots: its maximum", out)


def test_set_changes_only_what_is_given_and_stop_ends(run: Run, pool: Played) -> None:
    pool.add(name="digits", max_tasks=2)
    done = run(pool, "set", "digits", "--priority", "10000", "--min", "1")
    assert done.out == "job-1 (digits): priority 10000, 1-2 tasks\n"
    assert pool.job("job-1").max_tasks == 2
    assert json.loads(run(pool, "set", "1", "--max", "3", "--json").out)["max_tasks"] == 3
    assert json.loads(run(pool, "stop", "1", "--json").out)["state"] == "stopping"


def test_logs_are_those_of_the_leader_each_stream_to_its_own(run: Run, shown: Played) -> None:
    assert run(shown, "logs", "1") == Done(code=0, out="epoch 1\nepoch 2\n", err="careful\n")
    assert run(shown, "logs", "1", "--task", "2", "--tail", "1").out == "two\n"
    assert run(shown, "logs", "1", "--task", "job-1.1", "--stream", "stderr") == Done(code=0, out="", err="careful\n")


def test_logs_of_several_tasks_begin_with_the_task(run: Run, shown: Played) -> None:
    done = run(shown, "logs", "1", "--all", "--stream", "stdout")
    assert done.out == "[job-1.1] epoch 1\n[job-1.1] epoch 2\n[job-1.2] one\n[job-1.2] two\n"
    assert run(shown, "logs", "1", "--task", "9").code == 3


def test_logs_follow_until_the_job_has_ended(run: Run, pool: Played) -> None:
    set_scene(pool).complete("job-1")
    done = run(pool, "logs", "1", "-f")
    assert done.out == "epoch 1\nepoch 2\n"
    assert done.err.splitlines() == ["careful", "job-1 completed"]
    several = run(pool, "logs", "1", "-f", "--all", "--stream", "stdout")
    assert sorted(several.out.splitlines()) == [
        "[job-1.1] epoch 1",
        "[job-1.1] epoch 2",
        "[job-1.2] one",
        "[job-1.2] two",
    ]
    assert run(pool, "logs", "1", "-f", "--task", "2", "--tail", "1").out == "two\n"


def test_the_next_leader_is_followed_when_the_first_has_ended(pool: Played) -> None:
    """The second task, which printed beside the first, is not: the third leads when both have gone."""
    pool.add(max_tasks=2)
    for task in ("job-1.1", "job-1.2"):
        pool.print(task, "stdout", f"of {task}\n".encode())
    lines: list[str] = []

    def write(line: LogLine) -> None:
        lines.append(line.line)
        if line.task_id == "job-1.1":
            pool.end_tasks("job-1", -9)
            pool.tick(10.0)
            pool.print("job-1.3", "stdout", b"of job-1.3\n")
        else:
            pool.complete("job-1")

    with Client(pool.url, pool.token) as client:
        assert follow_job(client, "job-1", write=write).state is JobState.COMPLETED
    assert lines == ["of job-1.1", "of job-1.3"]


def test_a_first_task_that_failed_before_it_trained_hides_none_that_came_for_it(pool: Played) -> None:
    pool.add(max_tasks=2)
    with Client(pool.url, pool.token) as client:
        first, second = client.job("job-1").tasks
        untrained = replace(client.job("job-1"), generations=())
    failed = replace(first, state=TaskState.LOST, exit_code=None)
    done = replace(first, state=TaskState.EXITED, exit_code=0)

    led = [leaders(replace(untrained, tasks=(task, second))) for task in (first, failed, done)]

    assert led == [(first,), (second,), (done,)]
    assert leaders(replace(untrained, tasks=(failed, replace(failed, id=second.id)))) == (failed,)


def test_a_job_without_a_task_has_no_logs_yet(run: Run, pool: Played) -> None:
    pool.submit()
    assert run(pool, "logs", "1") == Done(code=0, out="", err="job-1 has started no task yet (pending)\n")


def test_events_are_printed_one_per_line(run: Run, shown: Played) -> None:
    out = run(shown, "events").out
    assert re.search(r"^\d\d:\d\d:\d\d  server\.started +–  +the server is up", out, re.MULTILINE)
    of_one = run(shown, "events", "1").out
    assert {line.split()[2] for line in of_one.splitlines()} == {"job-1"}
    assert "has failed" in run(shown, "events", "--tail", "1").out
    assert "slots.changed" not in out + run(shown, "events", "--tail", "100").out
    assert "slots.changed" in run(shown, "events", "--json").out
    assert run(shown, "events", "--after", "1000").out == ""


def test_top_once_shows_slots_jobs_and_decisions(run: Run, shown: Played) -> None:
    out = run(shown, "top", "--once").out
    assert "3/4 slots held" not in out
    assert "█ job-1 " in out
    assert "██░░░░░░░░  15%" in out
    assert "2 of 4 slots: its maximum" in out


def submit(run: Run, pool: Played, *options: str) -> tuple[JobSpec, Done]:
    """Submit a job; return what the server has of it, and what was said."""
    done = run(pool, "submit", *options)
    assert done.code == 0, done.err
    return pool.store.jobs(limit=1)[0].spec, done


def test_a_variable_without_a_value_has_the_one_that_it_has_here(
    run: Run, pool: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text("import pliant.train\n")
    monkeypatch.setenv("WANDB_API_KEY", "s3=cret")
    options = ["--env", "WANDB_API_KEY", "--env", "A=", "--no-tracking"]
    spec, _ = submit(run, pool, str(tmp_path), *options, "--", "--lr", "0.1")
    assert (spec.env, spec.tracking) == ({"WANDB_API_KEY": "s3=cret", "A": ""}, False)
    assert "lr 0.1" in run(pool, "show", "1").out
    assert "s3=cret" not in run(pool, "show", "1", "--json").out


def test_submit_sends_what_was_asked_for(run: Run, pool: Played, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import model\n")
    (tmp_path / "model.py").write_text("")
    options = ["--name", "digits", "--max", "4", "--min", "2", "--priority", "9", "--env", "A=b=c", "--audit"]
    options += ["--slots-per-task", "2", "--virtual-workers", "16", "--checkpoint-freq", "0"]
    spec, done = submit(run, pool, str(tmp_path), *options, "--", "--lr", "0.1")
    assert done.out == "job-1 (digits) is submitted; `pliant logs -f job-1` follows it\n"
    assert spec == JobSpec(
        name="digits",
        script="train.py",
        args=("--lr", "0.1"),
        max_tasks=4,
        min_tasks=2,
        priority=9,
        env={"A": "b=c"},
        audit=True,
        slots_per_task=2,
        virtual_workers=16,
        checkpoint_freq=0,
    )
    assert set(pool.code("job-1")) == {"train.py", "model.py"}


def test_submit_packs_a_file_alone_and_says_what_it_leaves_behind(run: Run, pool: Played, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import os, sys\nfrom model import Net\n")
    (tmp_path / "model.py").write_text("")
    done = run(pool, "submit", str(tmp_path / "mine.py"), "--json")
    assert json.loads(done.out)["spec"]["script"] == "mine.py"
    assert "only mine.py is packed, but it imports model from beside it" in done.err
    assert set(pool.code("job-1")) == {"mine.py"}


@pytest.fixture
def script(tmp_path: Path) -> str:
    """A script that could train elastically, and does nothing."""
    path = tmp_path / "train.py"
    path.write_text("import pliant.train\n")
    return str(path)


def test_submit_of_a_fixed_job(run: Run, taking: Played, script: str) -> None:
    spec, done = submit(run, taking, script, "--name", "fixed", "--fixed", "4", "--max-restarts", "1")
    expected = JobSpec(name="fixed", script="train.py", fixed=True, min_tasks=4, max_tasks=4, virtual_workers=4)
    assert spec == replace(expected, max_restarts=1)
    assert done.err == "", "virtual workers do not matter to it"
    refused = run(taking, "set", "fixed", "--max", "2")
    assert (refused.code, "fixed at 4" in refused.err) == (5, True)
    assert re.search(r"restarts +0 of 1", run(taking, "show", "fixed").out)


def test_submit_says_where_a_training_starts(run: Run, taking: Played, script: str, tmp_path: Path) -> None:
    of_job = taking.home / "jobs" / "job-1" / "result"
    assert submit(run, taking, script, "--weights", "1")[0].weights == str(of_job / "model" / "model.pt")
    weights = tmp_path / "w.pt"
    weights.write_bytes(b"")
    assert submit(run, taking, script, "--weights", os.path.relpath(weights))[0].weights == str(weights)
    refused = run(taking, "submit", script, "--resume-from", "1")
    assert (refused.code, f"no checkpoint in '{of_job / 'checkpoint'}'" in refused.err) == (2, True), refused.err
    spec, _ = submit(run, taking, script, "--mode", "fast", "--checkpoint-every", "0")
    assert (spec.mode, spec.checkpoint_every_s) == ("fast", 0.0)


def test_submit_advises_no_number_of_parts_while_the_batch_is_unknown(run: Run, taking: Played, script: str) -> None:
    _, done = submit(run, taking, script, "--max", "8", "--virtual-workers", "9")
    assert done.err == (
        "note: 9 virtual workers divide badly over 1 to 8 tasks: on 8 only 56% of the tasks' time is used; `pliant "
        "plan --min 1 --max 8 --virtual-workers 9 --batch-size B` tells whether another number suits a batch of B\n"
    )
    for options in ([], ["--max", "8"], ["--max", "8", "--virtual-workers", "48"], ["--max", "8", "--mode", "fast"]):
        assert submit(run, taking, script, *options)[1].err == ""


def test_show_knows_a_faster_number_of_parts_once_it_knows_the_batch(run: Run, pool: Played) -> None:
    job_id = pool.add(max_tasks=4, virtual_workers=48)
    assert re.search(r"virtual workers +48 *$", run(pool, "show", job_id).out, re.MULTILINE)
    pool.report(job_id)
    expected = r"virtual workers +48; --virtual-workers 4 \(parts of 16 samples of a batch of 64\) takes about 79% less"
    assert re.search(expected, run(pool, "show", job_id).out)


def test_show_says_how_many_parts_were_chosen_and_why(run: Run, pool: Played) -> None:
    job_id = pool.add(max_tasks=4)
    pool.report(job_id)

    def shown(batch_size: int | None, parts: int | None) -> str:
        pool.report(job_id, replace(PROGRESS, batch_size=batch_size, virtual_workers=parts))
        return next(line for line in run(pool, "show", job_id).out.splitlines() if line.startswith("virtual workers"))

    assert shown(None, None).endswith("chosen when the script says its batch size")
    assert shown(64, 4).endswith("  4 (chosen for a batch of 64 and --max 4)")
    assert shown(512, 7).endswith("  7 (the script's own number)")
    asked = pool.add(max_tasks=4, virtual_workers=16)
    pool.report(asked, replace(PROGRESS, batch_size=8, virtual_workers=8))
    assert "8 as its script has it (16 were asked for)" in run(pool, "show", asked).out


def test_submit_says_that_a_script_cannot_train_elastically(run: Run, taking: Played, script: str) -> None:
    Path(script).write_text("import torch\n")
    _, done = submit(run, taking, script)
    assert done.err.startswith("note: train.py cannot train elastically: no code of it imports pliant.train")
    assert done.err.endswith("submit a plain script with `--fixed 1`\n")
    assert submit(run, taking, script, "--fixed", "1")[1].err == ""


def test_plan_asks_no_server(run: Run) -> None:
    lines = run(None, "plan", "--max", "3").out.splitlines()
    assert [line.split() for line in lines[:4]] == [
        ["TASKS", "PARTS", "EFFICIENCY", "SUMS", "WIRE"],
        ["1", "3", "100%", "–", "–"],
        ["2", "1-2", "75%", "1", "1.0x"],
        ["3", "1", "100%", "1", "1.0x"],
    ]
    assert "V depends on the batch size, which --batch-size says; shown is the least, 3 virtual workers." in lines[-2]
    assert lines[-1].endswith(
        "on 2 only 75% of the tasks' time is used; --batch-size tells whether another number is faster."
    )
    small = run(None, "plan", "--max", "3", "--virtual-workers", "24", "--batch-size", "240").out
    assert "24 virtual workers divide well over 1 to 3 tasks: 100% of the tasks' time is used; --virtual-work" in small
    assert "3 (parts of 80 samples of a batch of 240) takes about" in small
    assert "no other number saves 10%" in run(None, "plan", "--max", "8", "--batch-size", "64").out
    planned = json.loads(run(None, "plan", "--max", "3", "--json").out)
    assert (planned["advised"], planned["sizes"][2]["parts"]) == (None, [1, 1, 1])
    planned = json.loads(run(None, "plan", "--max", "3", "--batch-size", "64", "--json").out)
    assert (planned["virtual_workers"], planned["advised"]) == (3, None)
    asked = ("plan", "--max", "3", "--batch-size", "64", "--virtual-workers", "8", "--json")
    assert json.loads(run(None, *asked).out)["advised"]["virtual_workers"] == 3
    chosen = run(None, "plan", "--max", "4", "--batch-size", "64").out
    assert "Without --virtual-workers a batch of 64 and --max 4 make 4 virtual workers." in chosen
    wrong = run(None, "plan", "--max", "9", "--min", "0", "--virtual-workers", "8", "--batch-size", "5")
    assert (wrong.code, "3 things are wrong" in wrong.err) == (2, True)


@pytest.mark.parametrize(
    ("claim", "told"),
    [
        ("exact", "exact (bitwise the same for any number of workers)"),
        ("statistical", "statistical since step 812: another processor"),
        ("fast", "fast (the same samples and batch, sums in any order): another processor"),
    ],
)
def test_show_tells_what_results_are_worth(run: Run, taking: Played, claim: Claim, told: str) -> None:
    reason = "" if claim == "exact" else "another processor"
    job = replace(taking.job("job-1"), claim=claim, claim_step=812, claim_reason=reason, fingerprint="torch 2")
    taking.store.write(Writes(jobs=(replace(job, digest="ab" * 32),)))
    out = run(taking, "show", "1").out
    for text in (told, "torch 2", "ab" * 32):
        assert text in out


@pytest.mark.parametrize(
    ("files", "options", "script"),
    [
        (["a.py"], [], "a.py"),
        (["a.py", "main.py"], [], "main.py"),
        (["train.py", "main.py", "a.py"], [], "train.py"),
        (["a.py", "b.py"], ["--script", "b.py"], "b.py"),
    ],
)
def test_submit_finds_the_script_of_a_folder(
    run: Run, taking: Played, tmp_path: Path, files: list[str], options: list[str], script: str
) -> None:
    for name in files:
        (tmp_path / name).write_text("")
    assert submit(run, taking, str(tmp_path), *options)[0].script == script


@pytest.mark.parametrize(
    ("end", "code", "told"),
    [(Played.complete, 0, "completed"), (Played.fail, 1, "failed: train.py ended with exit code 1")],
    ids=["completed", "failed"],
)
def test_submit_waits_and_tells_by_its_code_how_the_job_ended(
    run: Run, pool: Played, script: str, end: Callable[[Played, str], None], code: int, told: str
) -> None:
    def play() -> None:
        wait_for(pool.store.jobs)
        pool.tick(1.0)
        end(pool, "job-1")

    playing = threading.Thread(target=play)
    playing.start()
    done = run(pool, "submit", script, "--wait")
    playing.join(30.0)
    assert done.code == code
    assert told in done.err


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["{dir}/nothing"], "PATH: '{dir}/nothing' is neither a folder nor a file"),
        (["{dir}/empty"], "--script: say which file of '{dir}/empty' to run (it has no Python file at its top)"),
        (["{dir}/two"], "(it has a.py, b.py)"),
        (["{dir}/two", "--script", "c.py"], "--script: 'c.py' is not among the files of '{dir}/two'; there are a.py"),
        (["{dir}/two/a.py", "--script", "b.py"], "--script: '{dir}/two/a.py' is a file"),
        (["{dir}/two/a.py", "--min", "5", "--max", "2"], "error: --min 5 is above --max 2; lower the one"),
        (["{dir}/two/a.py", "--max", "9", "--virtual-workers", "8"], "--max 9 is above --virtual-workers 8"),
        (
            ["{dir}/two/a.py", "--priority", "0", "--max", "0"],
            "2 things are wrong:\n  --max: 0 is too small",
        ),
        (["{dir}/two/a.py", "--max", "many"], "--max: 'many' is no whole number"),
        (["{dir}/two/a.py", "--env", "A_B_C"], "--env: 'A_B_C' has no '=' and is not set here"),
        (["{dir}/two/a.py", "--env", "1A=2"], "--env 1A"),
        (["{dir}/two/a.py", "--mode", "quick"], "--mode: 'quick' is not possible; give 'exact' or 'fast'"),
        (["{dir}/two/a.py", "--fixed", "2", "--max", "4"], "--fixed: a fixed job has 2 processes"),
        (["{dir}/two/a.py", "--fixed", "2", "--audit"], "audit: for elastic jobs only"),
        (["{dir}/two/a.py", "--balance", "speed", "--mode", "fast"], "balance 'speed' divides virtual workers"),
        (["{dir}/two/a.py", "--max-restarts", "2"], "--max-restarts is for fixed jobs"),
        (["{dir}/two/a.py", "--epochs", "5"], "the script's own come after --: `pliant submit PATH -- --epochs …`"),
        (
            ["{dir}/two/a.py", "--prioty", "5"],
            "there is no option --prioty; is --priority meant?\nUsage: ",
        ),
        (["{dir}/two/a.py", "--max"], "error: --max needs a value"),
        ([], "error: PATH is missing: A folder of code, one Python file, or a job file."),
    ],
)
def test_bad_input_is_told_clearly_before_anything_is_sent(
    run: Run, tmp_path: Path, args: list[str], told: str
) -> None:
    for name in ("empty", "two"):
        (tmp_path / name).mkdir()
    for name in ("a.py", "b.py"):
        (tmp_path / "two" / name).write_text("")
    done = run(None, "submit", *(arg.replace("{dir}", str(tmp_path)) for arg in args))
    assert done.code == 2, "it asked the server that is not there"
    assert told.replace("{dir}", str(tmp_path)) in done.err
    assert done.out == ""


def test_each_kind_of_error_has_its_exit_code(
    run: Run, shown: Played, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (run(shown, "show", "77").code, run(shown, "show", "nobody").code) == (3, 3)
    assert run(shown, "set", "2", "--priority", "7").code == 5
    assert run(shown, "set", "1").code == 2
    assert run(None, "ps").code == 4

    def ended() -> tuple[int, str]:
        with pytest.raises(SystemExit) as end:
            main(["--home", str(tmp_path), "ps"])
        captured = capsys.readouterr()
        assert captured.out == ""
        return int(end.value.code or 0), captured.err

    with answering((500, "oops")) as url:
        monkeypatch.setenv("PLIANT_URL", url)
        assert ended()[0] == 1
    monkeypatch.setenv("PLIANT_URL", shown.url)
    monkeypatch.setenv("PLIANT_TOKEN", "wrong")
    code, said = ended()
    assert code == 6
    assert said.startswith("error: the token opens nothing here")
    monkeypatch.delenv("PLIANT_URL")
    assert ended() == (4, f"error: no server runs for {tmp_path}; start one with `pliant up`\n")


def test_results_are_fetched_into_a_folder(
    run: Run, shown: Played, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (shown.home / "jobs/job-1/code/best.pt").write_bytes(b"weights" * 1000)
    assert [line.split()[:3] for line in run(shown, "files", "digits").out.splitlines()[-2:]] == [
        ["model/model.pt", "7", "bytes"],
        ["work/best.pt", "6.8", "KiB"],
    ]
    assert json.loads(run(shown, "files", "1", "--json").out)["files"][-1]["path"] == "work/best.pt"
    some = run(shown, "result", "1", "--only", "*.pt", "--only", "none", "--to", "some", "--json")
    assert json.loads(some.out)["files"] == ["model/model.pt", "work/best.pt"]
    none = run(shown, "result", "1", "--only", "none", "--to", "none")
    assert none.code == 3
    assert "no file of job-1 is called so; `pliant files job-1` lists what there is" in none.err
    done = run(shown, "result", "digits")
    assert done.out.startswith(f"{tmp_path}/job-1-result holds the results of job-1: 5 files")
    assert run(shown, "result", "1").code == 5
    assert "model/model.pt" in json.loads(run(shown, "result", "1", "--to", "x/y", "--json").out)["files"]
    (tmp_path / "note").touch()
    assert run(shown, "result", "1", "--to", "note/x").err == f"error: {tmp_path}/note: File exists\n"


def offered(words: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what the shell offers for the last of these words."""
    monkeypatch.setattr("pliant.cli.completion._TIMEOUT_S", 30.0)  # one second is for a shell
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    return CliRunner().invoke(app, env={"_PLIANT_COMPLETE": "complete_bash"}, prog_name="pliant").stdout.split()


def test_jobs_are_completed_by_the_shell(shown: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIANT_URL", shown.url)
    monkeypatch.setenv("PLIANT_TOKEN", shown.token)
    assert offered("pliant why job-", monkeypatch) == ["job-2", "job-1"]
    monkeypatch.setenv("PLIANT_TOKEN", "wrong")
    assert offered("pliant why job-", monkeypatch) == []


@pytest.mark.parametrize(
    ("words", "choices"), [("submit --on-stall ", ["warn", "replace", "end"]), ("rerun 1 --mode f", ["fast"])]
)
def test_what_an_option_can_be_is_completed(words: str, choices: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered(f"pliant {words}", monkeypatch) == choices


def test_arrays_are_completed_where_they_may_be_named(pool: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"job": (None, b'{"script": "train.py", "array": {"lr": [1, 2]}}'), "code": ("c", packed({"train.py": ""}))}
    assert pool.http.post("/arrays", files=files).is_success
    monkeypatch.setenv("PLIANT_URL", pool.url)
    monkeypatch.setenv("PLIANT_TOKEN", pool.token)
    for words in ("stop", "show", "metrics", "submit --after", "submit --after-any", "set 1 --after"):
        assert offered(f"pliant {words} ", monkeypatch) == ["array-1", "job-2", "job-1"], words
    assert offered("pliant ps --array a", monkeypatch) == ["array-1"]
    assert offered("pliant logs ", monkeypatch) == ["job-2", "job-1"]


def test_what_else_has_a_name_is_completed_where_it_is_asked_for(
    pool: Played, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pool.add_user("ada")
    for path, body in (
        ("/queues", {"name": "night"}),
        ("/resource-groups", {"name": "gpus", "hosts": {"all": True}}),
        ("/environments", {"name": "nlp", "requirements": "six"}),
    ):
        assert pool.http.post(path, json=body).is_success
    (pool.home / "data" / "flowers").mkdir(parents=True)
    assert pool.http.post(
        "/datasets", json={"name": "flowers", "kind": "any", "source": {"path": "flowers"}}
    ).is_success
    monkeypatch.setenv("PLIANT_URL", pool.url)
    monkeypatch.setenv("PLIANT_TOKEN", pool.token)

    assert offered("pliant submit --queue ni", monkeypatch) == ["night"]
    assert offered("pliant set 1 --queue ", monkeypatch) == ["default", "night"]
    assert offered("pliant queues remove n", monkeypatch) == ["night"]
    assert offered("pliant queues add x --group g", monkeypatch) == ["gpus"]
    assert offered("pliant groups set g", monkeypatch) == ["gpus"]
    assert offered("pliant submit --environment n", monkeypatch) == ["nlp"]
    assert offered("pliant env show ", monkeypatch) == ["nlp"]
    assert offered("pliant submit --dataset fl", monkeypatch) == ["flowers"]
    assert offered("pliant data share flowers a", monkeypatch) == ["ada"]
    assert offered("pliant users set a", monkeypatch) == ["ada"]
    assert offered("pliant models show ", monkeypatch) == []
    assert offered("pliant submit --resume-from j", monkeypatch) == []


def test_help_names_every_command_and_the_exit_codes(run: Run) -> None:
    out = run(None, "--help").out
    commands = [
        "up",
        "down",
        "submit",
        "plan",
        "ps",
        "show",
        "top",
        "logs",
        "why",
        "events",
        "set",
        "stop",
        "files",
        "result",
        "run",
        "version",
    ]
    listed = [line.split()[0] for line in out.split("Commands:\n")[1].splitlines() if line.startswith("  ")]
    assert [command for command in listed if command in commands] == commands
    assert "Exit codes: 0 ok" in out
    assert max(map(len, out.splitlines())) <= 80
    assert "..." not in out.split("Commands:")[1]
    for command in commands:
        assert run(None, command, "--help").code == 0


def test_the_command_line_imports_nothing_heavy() -> None:
    program = "import sys, pliant.cli.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=True)
    roots = {name.partition(".")[0] for name in done.stdout.split()}
    assert not roots & {"torch", "numpy", "sqlalchemy", "alembic", "fastapi", "starlette", "uvicorn"}


def test_a_script_runs_alone_with_its_arguments_and_ibms_names(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "alone.py"
    script.write_text("import sys, importlib.util as u\nprint(sys.argv[1:], bool(u.find_spec('fabric_model')))\n")
    argv = [sys.executable, "-m", "pliant.cli.app", "run", str(script), "--lr", "0.1", "--help"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=50, check=True)
    assert done.stdout == "['--lr', '0.1', '--help'] True\n"
    script.write_text("import os\nprint(os.environ.get('PLIANT_VIRTUAL_WORKERS'), os.environ['PLIANT_MODE'])\n")
    asked = ("--virtual-workers", "3", "--mode", "fast")
    for given, told in (((), "None exact\n"), (asked, "3 fast\n")):
        done = subprocess.run([*argv[:4], *given, str(script)], capture_output=True, text=True, timeout=50, check=True)
        assert done.stdout == told
    wrong = run(None, "run", "--virtual-workers", "0", str(script))
    assert (wrong.code, wrong.err) == (
        2,
        "error: --virtual-workers: 0 is too small; give 1 or more\n",
    )
    gone = subprocess.run([*argv[:4], "gone.py"], capture_output=True, text=True, timeout=50, check=False)
    assert (gone.returncode, gone.stderr) == (2, "error: SCRIPT: 'gone.py' is not a file; check the path\n")


def test_a_table_leaves_ids_whole_and_cuts_names_where_the_terminal_is_narrow() -> None:
    columns = (
        TableColumn(title="JOB"),
        TableColumn(title="NAME", cut=True),
        TableColumn(title="N", optional=True),
        TableColumn(title="END"),
    )
    row = ["job-123456", "a name that is rather long", "12345", "last"]
    screen = console()
    with screen.capture() as captured:
        screen.print(table(columns, [row], width=40))
    assert captured.get().splitlines()[1].split("  ") == ["job-123456", "a name that is rather…", "last"]


def test_a_frame_fits_its_screen_whatever_there_is(shown: Played) -> None:
    jobs = tuple(replace(a_job(f"job-{n}"), progress=PROGRESS) for n in range(40))
    events = tuple(an_event("a long reason " * 9, job_id="job-1") for _ in range(50))
    cluster = shown.control.queries.cluster()
    view = View(cluster=cluster, jobs=jobs, events=events, url="http://127.0.0.1:7311")
    for width, height in ((80, 24), (120, 40), (40, 12)):
        screen = console()
        screen.width = width
        with screen.capture() as captured:
            screen.print(draw(view, width=width, height=height))
        lines = captured.get().splitlines()
        assert len(lines) <= height
        assert max(map(len, lines)) <= width or width == 40


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (3599, "59 min 59 s"),
        (3600, "1 h 00 min"),
        (90000, "1 d 01 h"),
    ],
)
def test_durations_are_told_in_two_units(seconds: float, text: str) -> None:
    assert formatting.duration(seconds) == text


@pytest.mark.parametrize(("num_bytes", "text"), [(1, "1 byte"), (2048, "2.0 KiB"), (5 << 30, "5.0 GiB")])
def test_sizes_are_told_in_the_unit_that_fits(num_bytes: int, text: str) -> None:
    assert formatting.size(num_bytes) == text


def test_a_table_in_a_pipe_has_no_blanks_at_the_ends_and_a_line_a_row(
    run: Run, pool: Played, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = (TableColumn(title="NAME", cut=True), TableColumn(title="N", right=True), TableColumn(title="WHY"))
    long = "because " * 4000
    show(table(columns, [["a", "1", long], ["b\nc", "10", ""], ["é" * 300, "2", "short"]]))
    lines = capsys.readouterr().out.split("\n")
    assert [line.rstrip() for line in lines] == lines
    assert [line.split() for line in lines] == [
        ["NAME", "N", "WHY"],
        ["a", "1", *long.split()],
        ["b", "c", "10"],
        ["é" * 300, "2", "short"],
        [],
    ]
    assert {line.index(word) for line, word in zip(lines, ("WHY", "because", "10", "short"), strict=False)} == {
        306,
        302,
    }

    set_scene(pool)
    for command in (
        ["ps", "--all"],
        ["show", "1"],
        ["why", "1"],
        ["top", "--once"],
        ["queues"],
        ["events"],
        ["plan", "--max", "3"],
    ):
        out = run(pool, *command).out
        assert [line for line in out.split("\n") if line != line.rstrip()] == [], command
