"""The command line against a real server on loopback that speaks the wire shapes."""

import io
import json
import math
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.contracts.rest import World, cluster_view, serve
from tests.contracts.store import a_job, a_task, an_event
from typer.testing import CliRunner

from pliant.cli import formatting
from pliant.cli.app import app, main
from pliant.cli.follow import LogLine, follow_job
from pliant.cli.jobs.frame import View, draw
from pliant.cli.screen import TableColumn, console, table
from pliant.client import Client
from pliant.core.event import EventKind
from pliant.core.job import Claim, Generation, JobId, NodeId, Progress, TaskId
from pliant.core.lifecycle import GenerationState, JobState, TaskState
from pliant.core.plan import NodeView

PROGRESS = Progress(
    epoch=3, num_epochs=20, step=30, num_steps=200, samples=1920, samples_per_s=640.0, loss=0.25, eta_s=125.0
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a command left."""

    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def world() -> World:
    world = World(node=NodeView(id=NodeId("here"), slots=(0, 1, 2, 3)))
    running = replace(a_job(), progress=PROGRESS, num_slots=2, why="2 of 4 slots: its maximum")
    failed = replace(a_job("job-2", state=JobState.FAILED), reason="train.py raised ValueError: no", ended_at=160.0)
    failed = replace(failed, started_at=100.0)
    world.jobs = {"job-1": running, "job-2": failed}
    world.tasks = {t.id: t for t in (a_task(), a_task("job-1.2"), a_task("job-2.1", job_id="job-2"))}
    world.tasks["job-2.1"] = replace(world.tasks["job-2.1"], state=TaskState.LOST, exit_code=-9, reason="killed")
    first = Generation(
        job_id=JobId("job-1"),
        number=1,
        members=(TaskId("job-1.2"), TaskId("job-1.1")),
        state=GenerationState.ACTIVE,
        announced_at=2.0,
        switched_at=2.1,
        step=7,
        pause_s=0.0421,
        cause="grew",
    )
    world.generations = [first]
    decision = replace(an_event("grew: slots are free", job_id="job-1"), data={"from": 1, "to": 2})
    started = an_event("the server runs", kind=EventKind.SERVER_STARTED)
    world.events = [replace(event, seq=n) for n, event in enumerate((started, decision), start=1)]
    world.logs = {
        ("job-1.1", "stdout"): b"one\ntwo\n",
        ("job-1.2", "stdout"): b"epoch 1\nepoch 2\n",
        ("job-1.2", "stderr"): b"careful\n",
    }
    return world


@pytest.fixture
def run(world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    with serve(world) as url:
        monkeypatch.setenv("PLIANT_URL", url)
        monkeypatch.setenv("PLIANT_TOKEN", world.token)

        def command(*args: str) -> Done:
            with pytest.raises(SystemExit) as ended:
                main(args)
            captured = capsys.readouterr()
            code = ended.value.code
            assert code is None or isinstance(code, int)
            return Done(code=code or 0, out=captured.out, err=captured.err)

        yield command


def test_ps_lists_what_waits_or_runs_and_with_all_also_what_ended(run: Run) -> None:
    assert run("ps").out.splitlines() == [
        "JOB    NAME    STATE    SLOTS  TASKS  PRIO  QUEUE    EPOCH  DONE  LOSS   LEFT",
        "job-1  digits  running      2    2-8  5000  default   3/20   15%  0.25  2m05s",
    ]
    rows = run("ps", "--all").out.splitlines()[1:]
    assert [row.split()[::2][:2] for row in rows] == [["job-2", "failed"], ["job-1", "running"]]


def test_a_training_that_diverged_is_shown(run: Run, world: World) -> None:
    lost = replace(PROGRESS, loss=math.nan, metrics={"perplexity": math.inf}, samples_per_s=math.nan, eta_s=math.inf)
    world.jobs["job-1"] = replace(world.jobs["job-1"], progress=lost)
    assert run("ps").out.splitlines()[1].split()[-2:] == ["–", "–"]
    assert re.search(r"perplexity +nan", run("show", "1").out)
    assert run("top", "--once").code == 0


def test_ps_says_what_to_do_when_there_is_nothing(run: Run, world: World) -> None:
    del world.jobs["job-1"]
    assert "`pliant ps --all`" in run("ps").out
    world.jobs.clear()
    assert "pliant submit" in run("ps", "-a").out


def test_show_tells_state_tasks_and_generations(run: Run) -> None:
    out = run("show", "1").out
    for text in ("job-1 (digits)", "running", "epoch 3/20, step 30/200", "job-1.2", "training", "42 ms", "grew"):
        assert text in out
    failed = run("show", "job-2").out
    assert "train.py raised ValueError: no" in failed
    assert "-9" in failed


def test_every_question_can_be_answered_in_json(run: Run) -> None:
    assert [job["id"] for job in json.loads(run("ps", "--all", "--json").out)["jobs"]] == ["job-2", "job-1"]
    assert json.loads(run("show", "1", "--json").out)["job"]["spec"]["args"] == ["--lr", "0.1"]
    assert json.loads(run("why", "1", "--json").out)["sentence"] == "2 of 4 slots: its maximum"
    assert json.loads(run("set", "1", "--max", "3", "--json").out)["max_tasks"] == 3
    assert json.loads(run("stop", "1", "--json").out)["state"] == "stopped"
    assert json.loads(run("top", "--once", "--json").out)["cluster"]["policy"] == "fairshare"
    assert json.loads(run("version", "--json").out)["version"]
    lines = [json.loads(line) for line in run("events", "--json").out.splitlines()]
    assert [line["seq"] for line in lines] == [1, 2]
    assert json.loads(run("logs", "1", "--json", "-n", "1").out.splitlines()[0]) == {
        "task_id": "job-1.2",
        "stream": "stdout",
        "line": "epoch 2",
    }


def test_a_job_is_meant_by_id_number_or_unique_name(run: Run, world: World) -> None:
    world.jobs["job-3"] = replace(a_job("job-3"), spec=replace(a_job().spec, name="other"))
    for name in ("job-3", "3", "03", "other"):
        assert run("why", name).out.startswith("job-3 is running")
    assert run("why", "digits").out.startswith("job-1"), "the other job of that name has ended"
    world.jobs["job-4"] = a_job("job-4")
    twice = run("why", "digits")
    assert twice.code == 5
    assert "3 jobs are called 'digits': job-4, job-2, job-1" in twice.err


def test_why_tells_the_sentence_and_the_decisions(run: Run) -> None:
    out = run("why", "1").out
    assert out.startswith("job-1 is running with 2 tasks, to become 8.\n2 of 4 slots: its maximum\n")
    assert re.search(r"\d\d:\d\d:\d\d  1 → 2  grew: slots are free\n", out)


def test_set_changes_only_what_is_given(run: Run, world: World) -> None:
    done = run("set", "digits", "--priority", "10000", "--min", "1")
    assert done.out == "job-1 (digits): priority 10000, 1-8 tasks\n"
    assert world.jobs["job-1"].max_tasks == 8


def test_logs_are_those_of_the_leader_each_stream_to_its_own(run: Run) -> None:
    assert run("logs", "1") == Done(code=0, out="epoch 1\nepoch 2\n", err="careful\n")
    assert run("logs", "1", "--task", "1", "--tail", "1").out == "two\n"
    assert run("logs", "1", "--task", "job-1.2", "--stream", "stderr") == Done(code=0, out="", err="careful\n")


def test_logs_of_several_tasks_begin_with_the_task(run: Run) -> None:
    done = run("logs", "1", "--all", "--stream", "stdout")
    assert done.out == "[job-1.1] one\n[job-1.1] two\n[job-1.2] epoch 1\n[job-1.2] epoch 2\n"
    assert run("logs", "1", "--task", "9").code == 3


def test_logs_follow_until_the_job_has_ended(run: Run, world: World) -> None:
    world.jobs["job-1"] = replace(world.jobs["job-1"], state=JobState.COMPLETED)
    done = run("logs", "1", "-f")
    assert done.out == "epoch 1\nepoch 2\n"
    assert done.err.splitlines() == ["careful", "job-1 completed"]
    several = run("logs", "1", "-f", "--all", "--stream", "stdout")
    assert sorted(several.out.splitlines()) == [
        "[job-1.1] one",
        "[job-1.1] two",
        "[job-1.2] epoch 1",
        "[job-1.2] epoch 2",
    ]
    assert run("logs", "1", "-f", "--task", "1", "--tail", "1").out == "two\n"


def test_the_next_leader_is_followed_when_the_first_has_ended(world: World) -> None:
    ended = {"job-1.1": 9.0, "job-1.2": 30.0, "job-1.3": 30.0}
    started = {"job-1.1": 1.0, "job-1.2": 2.0, "job-1.3": 9.5}
    world.tasks = {id: replace(a_task(id), started_at=started[id], ended_at=ended[id]) for id in ended}
    world.logs = {(id, "stdout"): f"of {id}".encode() for id in ended}
    world.generations = [replace(world.generations[0], members=(TaskId("job-1.1"), TaskId("job-1.2")))]
    lines: list[str] = []

    def write(line: LogLine) -> None:
        lines.append(line.line)
        if line.task_id == "job-1.1":
            world.generations.append(replace(world.generations[0], members=(TaskId("job-1.3"), TaskId("job-1.2"))))
        else:
            world.jobs["job-1"] = replace(world.jobs["job-1"], state=JobState.COMPLETED)

    with serve(world) as url, Client(url, world.token) as client:
        assert follow_job(client, "job-1", write=write).state is JobState.COMPLETED
    assert lines == ["of job-1.1", "of job-1.3"]


def test_a_job_without_a_task_has_no_logs_yet(run: Run, world: World) -> None:
    world.jobs["job-1"], world.tasks, world.generations = a_job(state=JobState.PENDING), {}, []
    assert run("logs", "1") == Done(code=0, out="", err="job-1 has started no task yet (pending)\n")


def test_events_are_printed_one_per_line(run: Run) -> None:
    out = run("events").out
    assert re.search(r"^\d\d:\d\d:\d\d  server\.started +–  +the server runs$", out, re.MULTILINE)
    assert run("events", "1").out.count("\n") == 1
    assert "grew" in run("events", "--tail", "1").out
    assert run("events", "--after", "2").out == ""


def test_top_once_shows_slots_jobs_and_decisions(run: Run) -> None:
    out = run("top", "--once").out
    assert "3/4 slots held" not in out
    assert "█ job-1 " in out
    assert "██░░░░░░░░  15%" in out
    assert "grew: slots are free" in out


def test_submit_sends_what_was_asked_for(run: Run, world: World, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import model\n")
    (tmp_path / "model.py").write_text("")
    options = ["--name", "digits", "--max", "4", "--min", "2", "--priority", "9", "--env", "A=b=c", "--audit"]
    options += ["--slots-per-task", "2", "--virtual-workers", "16", "--checkpoint-freq", "0"]
    done = run("submit", str(tmp_path), *options, "--", "--lr", "0.1")
    assert done.out == "job-3 (digits) is submitted; `pliant logs -f job-3` follows it\n"
    upload = world.uploads[0]
    assert set(upload.files) == {"train.py", "model.py"}
    expected = {"name": "digits", "script": "train.py", "args": ("--lr", "0.1"), "max_tasks": 4, "min_tasks": 2}
    expected |= {"priority": 9, "env": {"A": "b=c"}, "audit": True, "slots_per_task": 2, "virtual_workers": 16}
    assert upload.request.model_dump(exclude_unset=True) == expected | {"checkpoint_freq": 0}


def test_submit_packs_a_file_alone_and_says_what_it_leaves_behind(run: Run, world: World, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import os, sys\nfrom model import Net\n")
    (tmp_path / "model.py").write_text("")
    done = run("submit", str(tmp_path / "mine.py"), "--json")
    assert json.loads(done.out)["spec"]["script"] == "mine.py"
    assert "only mine.py is packed, but it imports model from beside it" in done.err
    assert set(world.uploads[0].files) == {"mine.py"}


def submitted(run: Run, world: World, tmp_path: Path, *options: str) -> tuple[dict[str, object], str]:
    """Submit a script; return the request as it arrived, and what was said beside it."""
    (tmp_path / "train.py").write_text("")
    done = run("submit", str(tmp_path / "train.py"), *options)
    assert done.code == 0, done.err
    request = world.uploads[-1].request.model_dump(exclude_unset=True)
    return {name: value for name, value in request.items() if name not in ("script", "args")}, done.err


def test_submit_of_a_fixed_job(run: Run, world: World, tmp_path: Path) -> None:
    request, said = submitted(run, world, tmp_path, "--fixed", "4", "--max-restarts", "1")
    assert request == {"fixed": True, "min_tasks": 4, "max_tasks": 4, "max_restarts": 1}
    assert said == "", "virtual workers do not matter to it"
    refused = run("set", "job-3", "--max", "2")
    assert (refused.code, "fixed at 4" in refused.err) == (5, True)
    assert re.search(r"restarts +0 of 1", run("show", "3").out)


def test_submit_says_where_a_training_starts(run: Run, world: World, tmp_path: Path) -> None:
    assert submitted(run, world, tmp_path, "--weights", "1")[0] == {"weights": "job-1"}
    weights = tmp_path / "w.pt"
    weights.write_bytes(b"")
    relative = os.path.relpath(weights)
    assert submitted(run, world, tmp_path, "--weights", relative)[0] == {"weights": str(weights)}
    assert submitted(run, world, tmp_path, "--resume-from", "job-1")[0] == {"resume_from": "job-1"}
    request, _ = submitted(run, world, tmp_path, "--mode", "fast", "--checkpoint-every", "0")
    assert request == {"mode": "fast", "checkpoint_every_s": 0.0}


def test_submit_advises_when_v_divides_badly_and_only_then(run: Run, world: World, tmp_path: Path) -> None:
    _, said = submitted(run, world, tmp_path, "--max", "8")
    assert said == (
        "note: 8 virtual workers divide badly over 1 to 8 tasks: on 7 only 57% of the tasks' time is used; "
        "--virtual-workers 48 uses 96% or more on all of them. (`pliant plan --min 1 --max 8`)\n"
    )
    for options in (["--max", "2"], ["--max", "8", "--virtual-workers", "48"], ["--max", "8", "--mode", "fast"]):
        assert submitted(run, world, tmp_path, *options)[1] == ""


def test_plan_asks_no_server(run: Run, world: World) -> None:
    lines = run("plan", "--max", "3").out.splitlines()
    assert [line.split() for line in lines[:4]] == [
        ["TASKS", "PARTS", "EFFICIENCY", "SUMS", "WIRE"],
        ["1", "8", "100%", "–", "–"],
        ["2", "4", "100%", "1", "1.0x"],
        ["3", "2-3", "89%", "2", "1.5x"],
    ]
    assert "--virtual-workers 6 uses 100% or more" in lines[-1]
    assert "suit 1 to 3 tasks" in run("plan", "--max", "3", "--virtual-workers", "24", "--batch-size", "240").out
    planned = json.loads(run("plan", "--max", "3", "--json").out)
    assert (planned["advised"], planned["sizes"][2]["parts"]) == (6, [3, 3, 2])
    assert "narrow the sizes" in run("plan", "--min", "7", "--max", "8", "--batch-size", "10").out
    wrong = run("plan", "--max", "9", "--min", "0", "--virtual-workers", "8", "--batch-size", "5")
    assert (wrong.code, "3 things are wrong" in wrong.err) == (2, True)
    assert world.asked == []


@pytest.mark.parametrize(
    ("claim", "told"),
    [
        ("exact", "exact (bitwise the same for any number of workers)"),
        ("statistical", "statistical since step 812: another processor"),
        ("fast", "fast (the same samples and batch, sums in any order): another processor"),
    ],
)
def test_show_tells_what_results_are_worth(run: Run, world: World, claim: Claim, told: str) -> None:
    reason = "" if claim == "exact" else "another processor"
    world.jobs["job-1"] = replace(
        world.jobs["job-1"], claim=claim, claim_step=812, claim_reason=reason, fingerprint="torch 2", digest="ab" * 32
    )
    out = run("show", "1").out
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
    run: Run, world: World, tmp_path: Path, files: list[str], options: list[str], script: str
) -> None:
    for name in files:
        (tmp_path / name).write_text("")
    assert run("submit", str(tmp_path), *options).code == 0
    assert world.uploads[0].request.script == script


def test_submit_waits_and_tells_by_its_code_how_the_job_ended(run: Run, world: World, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("")
    world.jobs["job-3"] = a_job("job-3")

    def ends_as(state: JobState) -> Done:
        world.end_new_jobs = replace(a_job("x", state=state), reason="because")
        return run("submit", str(script), "--wait")

    assert ends_as(JobState.COMPLETED).code == 0
    failed = ends_as(JobState.FAILED)
    assert failed.code == 1
    assert failed.err.splitlines()[-1].endswith("failed: because")


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
        (["{dir}/two/a.py", "--priority", "0", "--max", "0"], "2 things are wrong:\n  --max: Input should be greater"),
        (["{dir}/two/a.py", "--max", "many"], "Invalid value for '--max': Input should be a valid integer"),
        (["{dir}/two/a.py", "--env", "A"], "--env: 'A' has no '='"),
        (["{dir}/two/a.py", "--env", "1A=2"], "--env 1A"),
        (["{dir}/two/a.py", "--mode", "quick"], "--mode: Input should be 'exact' or 'fast'"),
        (["{dir}/two/a.py", "--fixed", "2", "--max", "4"], "--fixed: a fixed job has 2 processes"),
        (["{dir}/two/a.py", "--fixed", "2", "--audit"], "audit: for elastic jobs only"),
        (["{dir}/two/a.py", "--max-restarts", "2"], "--max-restarts is for fixed jobs"),
        (["{dir}/two/a.py", "--unknown"], "No such option"),
    ],
)
def test_bad_input_is_told_clearly_before_anything_is_sent(
    run: Run, world: World, tmp_path: Path, args: list[str], told: str
) -> None:
    for name in ("empty", "two"):
        (tmp_path / name).mkdir()
    for name in ("a.py", "b.py"):
        (tmp_path / "two" / name).write_text("")
    done = run("submit", *(arg.replace("{dir}", str(tmp_path)) for arg in args))
    assert done.code == 2
    assert told.replace("{dir}", str(tmp_path)) in done.err
    assert done.out == ""
    assert world.asked == []


def test_each_kind_of_error_has_its_exit_code(
    run: Run, world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert (run("show", "77").code, run("show", "nobody").code) == (3, 3)
    assert run("set", "2", "--priority", "7").code == 5
    assert run("set", "1").code == 2
    world.failures = [(500, "oops")]
    assert run("ps").code == 1
    monkeypatch.setenv("PLIANT_TOKEN", "wrong")
    refused = run("ps")
    assert (refused.code, refused.out) == (6, "")
    assert refused.err.startswith("error: the token does not open this server")
    monkeypatch.setenv("PLIANT_URL", "http://127.0.0.1:9")
    assert run("ps").code == 4
    monkeypatch.delenv("PLIANT_URL")
    away = run("--home", str(tmp_path), "ps")
    assert away == Done(code=4, out="", err=f"error: no server runs for {tmp_path}; start one with `pliant up`\n")


def test_results_are_fetched_into_a_folder(
    run: Run, world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        member = tarfile.TarInfo("model/model.pt")
        member.size = 7
        tar.addfile(member, io.BytesIO(b"weights"))
    world.results = {"job-1": out.getvalue()}
    monkeypatch.chdir(tmp_path)
    done = run("result", "digits")
    assert done.out == f"{tmp_path}/job-1-result holds the results of job-1: 1 file, 7 bytes\n"
    assert run("result", "1").code == 5
    assert json.loads(run("result", "1", "--to", "x/y", "--json").out)["files"] == ["model/model.pt"]


def test_jobs_are_completed_by_the_shell(run: Run, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pliant.cli.session._COMPLETION_TIMEOUT_S", 30.0)  # one second is for a shell
    monkeypatch.setenv("COMP_WORDS", "pliant why job-")
    monkeypatch.setenv("COMP_CWORD", "2")
    done = CliRunner().invoke(app, env={"_PLIANT_COMPLETE": "complete_bash"}, prog_name="pliant")
    assert done.stdout.split() == ["job-2", "job-1"]
    monkeypatch.setenv("PLIANT_TOKEN", "wrong")
    none = CliRunner().invoke(app, env={"_PLIANT_COMPLETE": "complete_bash"}, prog_name="pliant")
    assert none.stdout.strip() == ""


def test_help_names_every_command_and_the_exit_codes(run: Run) -> None:
    out = run("--help").out
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
        assert run(command, "--help").code == 0


def test_the_command_line_imports_nothing_heavy() -> None:
    program = "import sys, pliant.cli.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=True)
    roots = {name.partition(".")[0] for name in done.stdout.split()}
    assert not roots & {"torch", "numpy", "sqlalchemy", "alembic", "fastapi", "starlette", "uvicorn"}


def test_a_script_runs_alone_with_its_arguments_and_ibms_names(tmp_path: Path) -> None:
    script = tmp_path / "alone.py"
    script.write_text("import sys, importlib.util as u\nprint(sys.argv[1:], bool(u.find_spec('fabric_model')))\n")
    argv = [sys.executable, "-m", "pliant.cli.app", "run", str(script), "--lr", "0.1", "--help"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=50, check=True)
    assert done.stdout == "['--lr', '0.1', '--help'] True\n"
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


def test_a_frame_fits_its_screen_whatever_there_is(world: World) -> None:
    jobs = tuple(replace(a_job(f"job-{n}"), progress=PROGRESS) for n in range(40))
    events = tuple(an_event("a long reason " * 9, job_id="job-1") for _ in range(50))
    view = View(cluster=cluster_view(world), jobs=jobs, events=events, url="http://127.0.0.1:7311")
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
