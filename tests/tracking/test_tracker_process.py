"""The process that logs to a tracker, and the task's part that feeds it: killed, late, refused, handed over."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.tracking.mlflow_server import MlflowServer

from pliant.tracking.journal import TrackedPoint
from pliant.tracking.recorder import Recorder, RecorderSettings, trackers_of
from pliant.tracking.tracker import Outcome

SECRET = "a-secret-of-ann"
STAND_IN = '''
"""Takes the calls that Pliant makes of the package wandb, and writes what it gets as JSON."""
import json, os, pathlib, time

class Error(Exception): pass
class CommError(Error): pass
class errors: CommError = CommError
class Settings:
    def __init__(self, **given): self.given = given

class _Config(dict):
    def update(self, values, allow_val_change=False): dict.update(self, values)

class _Run:
    def __init__(self, given):
        offline = os.environ.get("WANDB_MODE") == "offline"
        top = pathlib.Path(given["dir"], "wandb")
        kept = pathlib.Path(given["dir"], "server.json")
        self.rows = {} if offline or not kept.exists() else json.loads(kept.read_text())
        self.step = 1 + max(map(int, self.rows), default=-1)
        self.file = top / f"offline-run-{time.monotonic_ns()}-{given['id']}" / "rows.json" if offline else kept
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.dir = str(self.file.parent / "files")
        self.config, self.resume = _Config(given["config"]), given["resume"]
        self.tags = tuple(filter(None, os.environ.get("ADDED_ELSEWHERE", "").split(",")))
        self.save()
    def log(self, row, step):
        assert step >= self.step, "W&B drops what comes out of order"
        self.step = step
        self.rows.setdefault(str(step), {}).update(row)
        self.save()
    def save(self, **more):
        self.file.write_text(json.dumps(self.rows))
        if self.tags: more["tags"] = self.tags
        (self.file.parent / "run.json").write_text(json.dumps({"config": self.config, "resume": self.resume, **more}))
    def finish(self, exit_code): self.save(exit_code=exit_code)

def init(**given):
    print("a package prints what it likes")
    if os.environ.get("WANDB_API_KEY") == "a-secret-of-ann": raise Error("the key a-secret-of-ann is wrong")
    return _Run(given)
'''


@contextmanager
def recorder(folder: Path, said: list[str], **env: str) -> Iterator[Recorder]:
    """Give the recorder of one task of the job."""
    options = ["--job", "job-3", "--name", "digits", "--folder", str(folder), "--result-dir", str(folder / "result")]
    variables = {"PATH": os.environ["PATH"], **env}
    settings = RecorderSettings(
        trackers=trackers_of(env),
        folder=folder,
        command=lambda name: [sys.executable, "-P", "-m", "pliant.entry.tracker", name, *options],
        env=variables,
        params={"lr": 0.1},
    )
    one = Recorder(settings, said.append)
    try:
        yield one
    finally:
        one.end(Outcome.HANDED_OVER, 20.0)


def points(*steps: int, name: str = "loss") -> list[TrackedPoint]:
    return [TrackedPoint(name=name, step=step, at=10.5 + step, value=step / 2) for step in steps]


def until(is_so: Callable[[], object], what: str, timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline, f"waited {timeout_s} s for: {what}"
        time.sleep(0.02)


def processes_of(one: Recorder) -> list["subprocess.Popen[str]"]:
    return list(one._processes.values())


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def package(tmp_path: Path) -> str:
    """A folder with a stand-in for the package wandb. By hand the same was tried with wandb 0.31."""
    folder = tmp_path / "packages" / "wandb"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(STAND_IN)
    return str(folder.parent)


def journal(folder: Path) -> str:
    """Return what is written down so far."""
    file = folder / "journal.jsonl"
    return file.read_text() if file.exists() else ""


def runs(folder: Path) -> list[Path]:
    return sorted((folder / "result" / "wandb").glob("offline-run-*"))


def steps_in(file: Path) -> list[int]:
    try:
        return [int(step) for step in json.loads(file.read_text())]
    except (FileNotFoundError, ValueError):
        return []


def test_a_training_is_logged_from_beginning_to_end(tmp_path: Path, mlflow: MlflowServer, said: list[str]) -> None:
    with recorder(tmp_path, said, MLFLOW_TRACKING_URI=mlflow.url) as one:
        one.lead(True)
        one.record(points(1, 2))
        one.record_params({"model": "mlp"})
        one.record(points(3))
        one.end(Outcome.FINISHED, 20.0)
    assert mlflow.run.steps("loss") == [1, 2, 3]
    assert mlflow.run.params == {"lr": "0.1", "model": "mlp"}
    assert mlflow.run.statuses == ["RUNNING", "FINISHED"]
    assert not said


def test_what_a_killed_leader_had_not_logged_the_next_one_logs(
    tmp_path: Path, mlflow: MlflowServer, said: list[str]
) -> None:
    with (
        recorder(tmp_path, said, MLFLOW_TRACKING_URI=mlflow.url) as one,
        recorder(tmp_path, said, MLFLOW_TRACKING_URI=mlflow.url) as two,
    ):
        one.lead(True)
        one.record(points(1, 2))
        until(lambda: mlflow.runs and mlflow.run.steps("loss") == [1, 2], "two points")
        for process in processes_of(one):
            process.send_signal(signal.SIGKILL)  # nothing logs any more what the leader still writes down
            process.wait()
        one.record(points(3, 4))
        until(lambda: '"s":4' in journal(tmp_path), "the last point is written down")
        two.lead(True)
        two.record(points(4, 5))
        two.end(Outcome.FINISHED, 20.0)
    assert mlflow.run.steps("loss") == [1, 2, 3, 4, 5]
    assert mlflow.run.statuses[-1] == "FINISHED"
    assert ["ended (code -9)" in text for text in said] == [True]


def test_two_that_both_think_that_they_lead_log_no_step_twice(
    tmp_path: Path, mlflow: MlflowServer, said: list[str]
) -> None:
    with (
        recorder(tmp_path, said, MLFLOW_TRACKING_URI=mlflow.url) as one,
        recorder(tmp_path, said, MLFLOW_TRACKING_URI=mlflow.url) as two,
    ):
        one.lead(True)
        two.lead(True)
        one.record(points(1, 2))
        until(lambda: '"s":2' in journal(tmp_path), "the first points are written down")
        two.record(points(2, 3))
        until(lambda: mlflow.runs and 3 in mlflow.run.steps("loss"), "the last point")
        one.lead(False)
        two.record(points(4))
        two.end(Outcome.FINISHED, 20.0)
    assert sorted(mlflow.run.steps("loss")) == [1, 2, 3, 4]
    assert len(mlflow.runs) == 1


def test_the_last_leader_waits_for_the_process_of_an_earlier_one(
    tmp_path: Path, mlflow: MlflowServer, said: list[str]
) -> None:
    with (
        recorder(tmp_path, said, MLFLOW_TRACKING_URI=mlflow.url) as one,
        recorder(tmp_path, said, MLFLOW_TRACKING_URI=mlflow.url) as two,
    ):
        one.lead(True)
        one.record(points(1))
        until(lambda: mlflow.runs and mlflow.run.steps("loss") == [1], "a point")
        (earlier,) = processes_of(one)
        earlier.send_signal(signal.SIGSTOP)  # as on a machine that is too busy for it
        two.lead(True)
        two.record(points(2))
        killed = threading.Timer(2.5, earlier.kill)
        killed.start()
        two.end(Outcome.FINISHED, 20.0)
        killed.join()
    assert mlflow.run.steps("loss") == [1, 2]
    assert mlflow.run.statuses[-1] == "FINISHED"


def test_a_tracker_that_is_down_is_one_warning_and_nothing_is_lost(
    tmp_path: Path, mlflow: MlflowServer, said: list[str]
) -> None:
    mlflow.down = True
    with recorder(tmp_path, said, MLFLOW_TRACKING_URI=mlflow.url) as one:
        began = time.monotonic()
        one.lead(True)
        for step in range(1, 1001):
            one.record(points(step))
        assert time.monotonic() - began < 5, "a step waits for no tracker"
        until(lambda: len(mlflow.asked) > 2, "it is tried again")
        mlflow.down = False
        until(lambda: mlflow.runs and len(mlflow.run.points) == 1000, "all points")
    (text,) = said
    assert "MLflow cannot be logged to now; the training goes on" in text
    assert mlflow.run.steps("loss") == list(range(1, 1001))


def test_a_training_ends_though_its_tracker_is_down(tmp_path: Path, mlflow: MlflowServer, said: list[str]) -> None:
    mlflow.down = True
    with recorder(tmp_path, said, MLFLOW_TRACKING_URI=mlflow.url) as one:
        one.lead(True)
        one.record(points(1))
        began = time.monotonic()
        one.end(Outcome.FAILED, 3.0)
        assert time.monotonic() - began < 8.0


def test_a_task_that_does_not_lead_logs_nothing_but_a_failure(
    tmp_path: Path, mlflow: MlflowServer, said: list[str]
) -> None:
    with recorder(tmp_path, said, MLFLOW_TRACKING_URI=mlflow.url) as one:
        one.record(points(1))
        one.record_params({"x": 1})
        one.end(Outcome.FINISHED, 20.0)
    assert not mlflow.asked
    with (
        recorder(tmp_path, said, MLFLOW_TRACKING_URI=mlflow.url) as leader,
        recorder(tmp_path, said, MLFLOW_TRACKING_URI=mlflow.url) as other,
    ):
        leader.lead(True)
        leader.record(points(1))
        until(lambda: mlflow.runs and mlflow.run.points, "a point")
        other.end(Outcome.FAILED, 20.0)
        assert mlflow.run.statuses[-1] == "FAILED", "though another process logs"


def test_offline_one_run_is_left_of_w_and_b_with_every_step_once(tmp_path: Path, package: str, said: list[str]) -> None:
    env = {"WANDB_MODE": "offline", "PYTHONPATH": package}
    with recorder(tmp_path, said, **env) as one, recorder(tmp_path, said, **env) as two:
        one.lead(True)
        one.record(points(1, 2) + points(2, name="accuracy"))
        until(lambda: [steps_in(run / "rows.json") for run in runs(tmp_path)] == [[1, 2]], "two rows")
        for process in processes_of(one):
            process.send_signal(signal.SIGKILL)
            process.wait()
        two.lead(True)
        two.record(points(2, 3))
        two.end(Outcome.FAILED, 20.0)
    (run,) = runs(tmp_path)
    rows = json.loads((run / "rows.json").read_text())
    assert [int(step) for step in rows] == [1, 2, 3]
    assert rows["2"] == {"loss": 1.0, "accuracy": 1.0, "_timestamp": 12.5}
    facts = json.loads((run / "run.json").read_text())
    assert facts == {"config": {"pliant_job": "job-3", "lr": 0.1}, "resume": None, "exit_code": 1}


def test_the_tags_of_the_job_are_the_runs_beside_those_that_were_added_elsewhere(
    tmp_path: Path, package: str, mlflow: MlflowServer, said: list[str]
) -> None:
    tags = {"lr": "0.1", "baseline": "", "note": "x" * 200}
    env = {"PLIANT_TAGS": json.dumps(tags), "MLFLOW_TRACKING_URI": mlflow.url}
    wandb = {"WANDB_MODE": "offline", "PYTHONPATH": package, "ADDED_ELSEWHERE": "kept,lr=0.1"}
    with recorder(tmp_path, said, **env, **wandb) as one:
        one.lead(True)
        one.record(points(1))
        one.end(Outcome.FINISHED, 20.0)
    (run,) = runs(tmp_path)
    found = json.loads((run / "run.json").read_text())["tags"]
    assert found == ["kept", "lr=0.1", "baseline", f"note={'x' * 59}"], "W&B takes 64 characters"
    assert {name: mlflow.run.tags[name] for name in tags} == tags
    assert mlflow.run.tags["pliant.job"] == "job-3"
    assert not said


def test_a_variable_that_holds_no_tags_gives_none(tmp_path: Path, mlflow: MlflowServer, said: list[str]) -> None:
    with recorder(tmp_path, said, PLIANT_TAGS='["lr", {', MLFLOW_TRACKING_URI=mlflow.url) as one:
        one.lead(True)
        one.record(points(1))
        one.end(Outcome.FINISHED, 20.0)
    assert mlflow.run.steps("loss") == [1]
    assert not said


def test_online_a_run_of_w_and_b_goes_on_where_w_and_b_says(tmp_path: Path, package: str, said: list[str]) -> None:
    env = {"WANDB_API_KEY": "k" * 40, "PYTHONPATH": package}
    server = tmp_path / "result" / "server.json"
    for steps in ((1, 2, 3), (3, 4)):
        with recorder(tmp_path, said, **env) as one:
            one.lead(True)
            one.record(points(*steps))
            one.end(Outcome.HANDED_OVER, 20.0)
        if steps[0] == 1:
            rows = json.loads(server.read_text())
            server.write_text(json.dumps({"1": rows["1"]}))  # what a killed process had not sent
    assert steps_in(server) == [1, 2, 3, 4]
    assert json.loads((tmp_path / "result" / "run.json").read_text())["resume"] == "allow"
    assert not said


def test_a_key_that_a_tracker_quotes_is_not_shown(tmp_path: Path, package: str, said: list[str]) -> None:
    env = {"WANDB_API_KEY": SECRET, "PYTHONPATH": package}
    for _ in range(2):
        with recorder(tmp_path, said, **env) as one:
            one.lead(True)
            one.end(Outcome.FINISHED, 20.0)
    assert said == ["nothing is logged to Weights & Biases: the key (hidden) is wrong"], "once for all tasks"


def test_without_the_package_the_job_says_what_to_do(tmp_path: Path, said: list[str]) -> None:
    with recorder(tmp_path, said, WANDB_MODE="offline") as one:
        one.lead(True)
        one.end(Outcome.FINISHED, 20.0)
    (text,) = said
    assert text.endswith("the job's environment has no package wandb; name it in the job's requirements")


def test_a_disk_that_takes_nothing_is_a_warning(tmp_path: Path, mlflow: MlflowServer, said: list[str]) -> None:
    (tmp_path / "journal.jsonl").mkdir()
    with recorder(tmp_path, said, MLFLOW_TRACKING_URI=mlflow.url) as one:
        one.lead(True)
        one.record(points(1))
    (text,) = said
    assert "cannot be written" in text


@pytest.mark.parametrize(
    ("env", "trackers"),
    [
        ({}, ()),
        ({"MLFLOW_TRACKING_URI": "http://x"}, ("mlflow",)),
        ({"WANDB_API_KEY": "x"}, ("wandb",)),
        ({"WANDB_MODE": "offline"}, ("wandb",)),
        ({"WANDB_MODE": "online"}, ()),
        ({"WANDB_MODE": "disabled", "WANDB_API_KEY": "x"}, ()),
        ({"WANDB_API_KEY": "x", "MLFLOW_TRACKING_URI": ""}, ("wandb",)),
    ],
)
def test_variables_ask_for_trackers(env: dict[str, str], trackers: tuple[str, ...]) -> None:
    assert trackers_of(env) == trackers
