"""Frameworks, generators, packages, names, states and lists."""

import json
import os
import tarfile
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.catalog.unconfined import Unconfined
from tests.ibm.rest.conftest import packed as tar_of

from pliant.api.job_views import JobDetail
from pliant.catalog.children.reach import ChildIsolation
from pliant.core.errors import InvalidInput, NotFound
from pliant.core.hyperparameters import Hyperparameters
from pliant.core.job import Job, JobId, JobSpec, NodeId, Task, TaskId
from pliant.core.lifecycle import JOB_LIFECYCLE, JobState, TaskState, is_final
from pliant.entry.server.rooms.children import ConfinedChildren
from pliant.ibm.rest.logs import leaders
from pliant.ibm.rest.routes.server import exec_frameworks
from pliant.ibm.rest.translate import generator, hyper, ids, states
from pliant.ibm.rest.translate.frameworks import BUILT_IN, FrameworkKind, load
from pliant.ibm.rest.translate.listing import ListOptions, sort_and_cut
from pliant.ibm.rest.translate.package import pack_upload
from pliant.ibm.rest.translate.program import RUNNER, Program
from pliant.ibm.rest.wording import reword
from pliant.isolation import landlock
from pliant.isolation.variables import allowed


def job(number: int = 12, **spec: object) -> Job:
    asked = JobSpec(name="n", script="s.py", virtual_workers=8, **spec)  # type: ignore[arg-type]
    return Job(
        id=JobId(f"job-{number}"), spec=asked, owner="ada", state=JobState.RUNNING, priority=1, min_tasks=1,
        max_tasks=asked.max_tasks, submitted_at=1_700_000_000.5,
    )  # fmt: skip


def task(number: int) -> Task:
    return Task(
        id=TaskId(f"job-12.{number}"), job_id=JobId("job-12"), node_id=NodeId("n"), slots=(0,),
        state=TaskState.TRAINING, started_at=0.0,
    )  # fmt: skip


# Names


def test_names_lead_back() -> None:
    one = job()
    assert (ids.exec_id(one.id), ids.app_id(one)) == ("wmla-12", "app-20231114221320-0012")
    assert ids.driver_id(one).startswith("driver-20231114221320-0012-")
    assert ids.job_of_exec("wmla-12") == "job-12"
    for name in (ids.exec_id(one.id), ids.app_id(one), ids.driver_id(one)):
        assert ids.job_of_application(name) == "job-12"
        assert ids.is_named(one, name)
    assert ids.job_of_application(ids.app_id(job(123456))) == "job-123456"
    assert not ids.is_named(one, "app-20231114221321-0012")
    assert ids.is_executor(task(3), "3")
    assert ids.is_executor(task(3), ids.executor_id(task(3)))
    assert not ids.is_executor(task(3), "03")
    assert not ids.is_executor(task(3), ids.executor_id(task(4)))


@pytest.mark.parametrize(
    "name", ["", "wmla-", "wmla-0", "wmla-01", "wmla-1 ", "WMLA-1", "job-1", "../1", "wmla-" + "9" * 30]
)
def test_what_is_no_name_is_not_found(name: str) -> None:
    with pytest.raises(NotFound):
        ids.job_of_exec(name)
    with pytest.raises(NotFound):
        ids.job_of_application(name)


@pytest.mark.parametrize(
    ("text", "reworded"),
    [
        ("job-3 has ended", "wmla-3 has ended"),
        ("lost job-3.1 (killed); job-12 (digits) goes on", "lost wmla-3.1 (killed); wmla-12 (digits) goes on"),
        ("see `pliant result job-3` of job-3", "see `pliant result job-3` of wmla-3"),
        ("/srv/jobs/job-3/result is full", "/srv/jobs/job-3/result is full"),
        ("my-job-3, job-0, job-3-more and job-3x", "my-job-3, job-0, job-3-more and job-3x"),
    ],
)
def test_sentences_call_a_job_by_its_exec(text: str, reworded: str) -> None:
    assert reword(text) == reworded


# States


def test_every_state_has_a_word() -> None:
    assert set(states.STATES) == set(JobState)
    assert set(states.EXECUTOR_STATES) == set(TaskState)
    assert states.parse_states(None) is None
    assert states.parse_states("") is None
    assert states.parse_states("finished, KILLED") == frozenset({"FINISHED", "KILLED"})
    assert states.parse_states("NEW") == frozenset()
    assert states.parse_states("PENDING_CRD_SCHEDULER,PENDING_JOB_SCHEDULER") == frozenset({"SUBMITTED"})
    assert states.parse_states("FAILED") == frozenset({"ERROR"})
    assert states.parse_states("whatever") == frozenset({"WHATEVER"})


@pytest.mark.parametrize(
    "waits",
    [
        lambda state: state in ("PENDING_CRD_SCHEDULER", "SUBMITTED", "RUNNING"),  # notebooks
        lambda state: state in ("SUBMITTED", "RUNNING"),  # those of the first generation
        lambda state: state not in ("FINISHED", "KILLED", "ERROR"),  # the command line, `--app-wait`
    ],
)
def test_loops_of_clients_wait_until_a_job_has_ended_and_no_longer(waits: Callable[[str], bool]) -> None:
    assert {state for state in JobState if not waits(states.STATES[state])} == {
        state for state in JobState if is_final(JOB_LIFECYCLE, state)
    }


# Lists


def test_lists_are_sorted_and_cut() -> None:
    rows = [{"id": f"wmla-{n}", "at": at} for n, at in ((9, 3), (10, None), (2, 1))]
    names = [one["id"] for one in sort_and_cut(rows, ListOptions.from_sort_by("id:desc", length=2))]
    assert names == ["wmla-10", "wmla-9"]
    assert [one["at"] for one in sort_and_cut(rows, ListOptions.from_sort("-at", None, 0, None))] == [3, 1, None]
    assert [one["at"] for one in sort_and_cut(rows, ListOptions.from_sort("at", "asc", 1, 1))] == [3]
    with pytest.raises(InvalidInput):
        sort_and_cut(rows, ListOptions.from_sort_by("colour", length=None))
    assert sort_and_cut([], ListOptions.from_sort_by("colour", length=None)) == []


# Frameworks


def plug_in(folder: Path, name: str, **fields: object) -> None:
    (folder / f"{name}.conf").write_text(json.dumps({"appName": "app"} | fields))


def test_plug_ins_are_read_anew_and_broken_ones_say_why(tmp_path: Path) -> None:
    assert list(load(tmp_path / "absent").found) == [one.name for one in BUILT_IN]
    plug_in(tmp_path, "Good", **{"desc": [{" ": "one"}, {" ": "two"}], "numWorkers Desc": "words", "maxWorkers": 4})
    plug_in(tmp_path, "Single", maxWorkers=1, desc="text")
    plug_in(tmp_path, "PyTorch")
    plug_in(tmp_path, "NoScript", frameworkCmdGenerator="gone.py")
    plug_in(tmp_path, "Outside", frameworkCmdGenerator="../gone.py")
    plug_in(tmp_path, "Wrong", maxWorkers=0)
    (tmp_path / "NoName.conf").write_text("{}")
    (tmp_path / "NoJson.conf").write_text("{")
    (tmp_path / "a b.conf").write_text("{}")
    found = load(tmp_path)
    good, single = found.get("Good"), found.get("Single")
    assert (good.desc, good.kind, good.max_workers, good.num_workers) == (("one", "two"), FrameworkKind.FIXED, 4, 1)
    assert (single.kind, single.desc, single.plugged_in) == (FrameworkKind.SINGLE, ("text",), True)
    assert set(found.broken) == {"PyTorch", "NoScript", "Outside", "Wrong", "NoName", "NoJson", "a b"}
    for name in ("NoScript", "NoJson", "nobody"):
        with pytest.raises(InvalidInput):
            found.get(name)


@pytest.mark.parametrize("installed", ["2.9.0", None])
def test_frameworks_are_listed_also_where_torch_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: str | None
) -> None:
    def distribution(name: str) -> SimpleNamespace:
        if installed is None:
            raise metadata.PackageNotFoundError(name)
        return SimpleNamespace(version=installed)

    monkeypatch.setattr(metadata, "distribution", distribution)
    plug_in(tmp_path, "Mine")

    listed = exec_frameworks(SimpleNamespace(frameworks=tmp_path))  # type: ignore[arg-type]

    versions = {one["name"]: one["frameworkVersion"] for one in listed}
    assert versions == {**{one.name: installed or "" for one in BUILT_IN}, "Mine": ""}


def made(folder: Path, script: str, *program: str, isolation: ChildIsolation | None = None) -> tuple[str, ...]:
    (folder / "gen.py").write_text(script)
    framework = replace(BUILT_IN[0], generator=folder / "gen.py")
    return generator.command(
        framework,
        model="m.py",
        num_workers=2,
        slots_per_worker=3,
        program=program,
        person="ada",
        isolation=isolation or Unconfined(),
    )


def test_a_generator_makes_the_command(tmp_path: Path) -> None:
    script = (
        "import json, os, sys\nprint(os.environ['DLI_SHARED_FS'])\n"
        "names = ['APP_NAME', 'MODEL', 'GPU_PER_WORKER', 'NUM_WORKER', 'REDIS_HOST', 'REDIS_PORT']\n"
        "print(json.dumps({'CMD': [os.environ[name] for name in names] + sys.argv[1:]}))\nprint('done')\n"
    )
    assert made(tmp_path, script, "--x", "a b") == (
        "SingleNodePytorchTrain", "m.py", "3", "2", "", "", "--x", "a b",
    )  # fmt: skip
    assert made(tmp_path, """print('{"CMD": "sh run.sh \\'a b\\'"}')""") == ("sh", "run.sh", "a b")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("print('nothing')", "printed no line like"),
        ("print('{\"CMD\": []}')", "printed no line like"),
        ("print('{\"CMD\": [1]}')", "printed no line like"),
        ("raise SystemExit('no GPU left')", "exit code 1 and said 'no GPU left'"),
        ("import os\nos.write(1, b'x' * (9 << 20))", "printed no line"),
        ("x = bytearray(8 << 30)", "exit code 1 and said.*MemoryError"),
    ],
)
def test_a_generator_that_makes_none_is_told(tmp_path: Path, script: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        made(tmp_path, script)


LOOKS_AROUND = """
import json, os, sys
reached = []
for what, attempt in {
    "frameworks": lambda: os.listdir(os.environ["DLI_SHARED_FS"]),
    "token": lambda: open(sys.argv[1]),
    "frameworks to write": lambda: open(os.environ["DLI_SHARED_FS"] + "/made", "w"),
    "environment": lambda: os.environ["AWS_SECRET_ACCESS_KEY"],
    "server": lambda: os.kill(int(sys.argv[2]), 0),
}.items():
    try:
        attempt()
        reached.append(what)
    except (OSError, KeyError):
        pass
print(json.dumps({"CMD": reached}))
"""


@pytest.mark.skipif(not landlock.scopes_signals(landlock.abi()), reason="this kernel has no walls for one user")
@pytest.mark.parametrize("walls", [True, False])
def test_a_generator_that_is_misled_reaches_nothing_of_the_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, walls: bool
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    (tmp_path / "token").touch()
    (tmp_path / "frameworks").mkdir()
    confined = ConfinedChildren(home=tmp_path, env=allowed(os.environ), user_of=lambda _: None)
    reached = made(
        *(tmp_path / "frameworks", LOOKS_AROUND, str(tmp_path / "token"), str(os.getpid())),
        isolation=confined if walls else Unconfined(),
    )
    everything = ("frameworks", "token", "frameworks to write", "environment", "server")
    assert reached == (("frameworks",) if walls else everything)


def test_a_generator_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "PATIENCE_S", 0.3)
    with pytest.raises(InvalidInput, match=r"was not done after 0\.3 s"):
        made(tmp_path, "import time\ntime.sleep(60)\n")


# Packages


def unpacked(archive: Path) -> dict[str, tuple[bytes, bool]]:
    with tarfile.open(archive) as tar:
        files = [(one.name, tar.extractfile(one), bool(one.mode & 0o100)) for one in tar if one.isfile()]
        return {name: (content.read() if content else b"", executable) for name, content, executable in files}


def package(tmp_path: Path, content: bytes | None, program: Program) -> dict[str, tuple[bytes, bool]]:
    upload, folder = tmp_path / "upload", tmp_path / "work"
    folder.mkdir()
    if content is not None:
        upload.write_bytes(content)
    return unpacked(pack_upload((upload,) if content is not None else (), program, folder))


SCRIPT = Program(main="m.py", file="m.py")


def test_one_file_gets_its_name(tmp_path: Path) -> None:
    assert package(tmp_path, b"print()", SCRIPT) == {"m.py": (b"print()", False)}


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_a_folder_is_entered(tmp_path: Path, mode: str) -> None:
    found = package(tmp_path, tar_of({"d/m.py": "1", "d/sub/x.py": "2"}, mode=mode), SCRIPT)
    assert set(found) == {"m.py", "sub/x.py"}


def test_files_without_a_folder_stay_where_they_are(tmp_path: Path) -> None:
    assert set(package(tmp_path, tar_of({"./m.py": "1", "./sub/x.py": "2"}), SCRIPT)) == {"m.py", "sub/x.py"}


def test_a_command_gets_the_runner_and_may_be_executed(tmp_path: Path) -> None:
    program = Program(words=("./run.sh",), file="run.sh")
    found = package(tmp_path, b"#!/bin/sh\n", program)
    assert set(found) == {"run.sh", RUNNER}
    assert found["run.sh"][1]
    compile(found[RUNNER][0], RUNNER, "exec")


def test_a_command_may_need_no_files(tmp_path: Path) -> None:
    assert set(package(tmp_path, None, Program(words=("ls",)))) == {RUNNER}


@pytest.mark.parametrize(
    ("content", "program", "message"),
    [
        (b"text", Program(words=("ls",)), "no --model-main says what it is called"),
        (tar_of({"../m.py": "1"}), SCRIPT, "points outside"),
        (tar_of({"other.sh": "1"}), Program(words=("./run.sh",), file="run.sh"), "is not in what was sent"),
    ],
)
def test_what_cannot_be_packed_is_refused(tmp_path: Path, content: bytes, program: Program, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        package(tmp_path, content, program)


# Logs and hyperparameters


def test_the_driver_is_who_leads() -> None:
    tasks = tuple(task(number) for number in (1, 2, 3, 4))
    fixed = JobDetail(job=job(fixed=True, max_tasks=2), tasks=tasks, generations=())
    assert [one.id for one in leaders(fixed)] == ["job-12.1", "job-12.3"]
    assert [one.id for one in leaders(replace(fixed, job=job()))] == ["job-12.1"]
    assert leaders(JobDetail(job=job(), tasks=(), generations=())) == ()


def test_hyperparameters_there_and_back() -> None:
    given: dict[str, object] = {"learningrate": 0.1, "epoch": 3.0, "solvertype": "Adam (Cf, TF and PT)"}
    given |= {"stepvalues": "2,4", "staircase": "true"}
    changes, notes = hyper.from_ibm_names({**given, "cycle": True}, 16)
    assert changes == {
        "batch_size": 16, "learning_rate": 0.1, "epochs": 3, "optimizer": "Adam",
        "lr_milestones": [2, 4], "lr_staircase": True,
    }  # fmt: skip
    assert len(notes) == 1
    assert "cycle" in notes[0]
    told = hyper.to_ibm_names(Hyperparameters(lr_gamma=0.5, lr_milestones=(1, 2)))
    assert (told["gamma"], told["stepvalues"], told["learningrate"]) == (0.5, "1,2", 0.01)
    assert "decayrate" not in told
