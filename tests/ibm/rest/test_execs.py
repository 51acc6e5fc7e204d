"""Execs as IBM's own client and notebooks read them, over the simulator's cluster."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from ibm_cloud_sdk_core import ApiException
from ibm_wmla.wmla_api_v1 import DeepLearningImpactV1
from tests.ibm.rest.conftest import DEEP_LEARNING
from tests.server.played import Played

from pliant.core.job import TaskId
from pliant.ibm.modules.elog import ELog
from pliant.ibm.rest.logs import quote, train_lines

ELASTIC = "--exec-start edtPyTorch --model-main train.py --numWorker 2"


def start(played: Played, client: DeepLearningImpactV1, args: str = ELASTIC) -> dict[str, Any]:
    """Start an exec and let it run as far as its tasks get by themselves."""
    made: dict[str, Any] = client.create_exec("default", args, io.BytesIO(b"print()\n")).get_result()
    played.tick(1.0)
    return made


def elog_lines(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return lines as scripts write them: of two batches of training, and of a test."""
    folder.mkdir()
    monkeypatch.setenv("LOG_DIR", str(folder))
    with ELog.open() as log:
        log.recordTrain("Train", 8, 1, 0.75, 0.5)
        log.recordTest("Test", 0.7, 0.6)
        log.recordTrain("Train", 16, 2, 0.25, 0.875)
    return (folder / "stdout").read_text().splitlines(keepends=True)


def test_the_log_of_a_training_is_read_as_the_notebooks_read_it(
    played: Played, client: DeepLearningImpactV1, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = start(played, client)
    lines = elog_lines(tmp_path / "log", monkeypatch)
    printed = ["Using pytorch backend.\n", "Timestamp 1, Iteration 8\n", *lines, "[not] Train,\tthis\n"]
    played.print("job-1.1", "stdout", "".join(printed).encode())
    played.print("job-1.1", "stderr", b"careful\n")

    log = client.get_platform_rest_deeplearning_exec_log(made["id"]).get_result()

    assert log == lines[0] + lines[2]
    rows = [[row[column] for column in (6, 8, 10, 12)] for row in csv.reader(io.StringIO(log.replace(":", ",")))]
    assert [[float(cell) for cell in row] for row in rows] == [[1, 8, 0.75, 0.5], [2, 16, 0.25, 0.875]]
    url = f"{played.url}{DEEP_LEARNING}/execs/{made['id']}/log"
    text = played.http.get(url)
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    assert all(line in text.text for line in (*printed, "careful\n"))
    named = played.http.get(url, params={"logType": "outlog"}, headers={"Accept": "application/json"})
    assert named.json() == "".join(printed)
    last = played.http.get(url, params={"logType": "outlog", "lastlines": 1}, headers={"Accept": "application/json"})
    assert last.json() == printed[-1]


def test_the_log_of_what_writes_no_lines_of_elog_is_all_that_it_printed(
    played: Played, client: DeepLearningImpactV1
) -> None:
    made = start(played, client, "--exec-start PyTorch --model-main train.py")
    assert client.get_platform_rest_deeplearning_exec_log(made["id"]).get_result() == ""
    played.print("job-1.1", "stdout", b'"quoted" \\ \xff\n')
    log = client.get_platform_rest_deeplearning_exec_log(made["id"]).get_result()
    assert log.splitlines()[-1] == '"quoted" \\ \ufffd'


def test_lines_are_found_wherever_a_log_is_cut() -> None:
    line = b"[2026-01-02 03:04:05] Train,\tTimestamp: 1,\tLoss: 0.5\n"
    text = b"before\n" + line + b"x" * 20_000 + line + line + line[:-1]
    for size in (1, 7, 4096, len(text)):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert b"".join(train_lines(iter(pieces))) == line * 2
    assert b"".join(quote(iter([b"\xc3", b"\xa4"]))) == b'"\\u00e4"'


def test_an_exec_holds_nothing_that_a_table_of_one_row_cannot(played: Played, client: DeepLearningImpactV1) -> None:
    made = start(played, client, f"{ELASTIC} --workerMemory 4G --numPs 1")
    assert [one.partition(" ")[0] for one in made["notes"].splitlines()][:2] == ["--workerMemory", "--numPs"]
    for shown in (made, client.get_exec(made["id"]).get_result(), *client.list_execs().get_result()):
        assert {type(value) for value in shown.values()} <= {str, int, float, bool}


def test_data_of_a_file_system_without_a_path_is_the_data_root(played: Played, client: DeepLearningImpactV1) -> None:
    start(played, client, f"{ELASTIC} --cs-datastore-meta type=fs")
    assert played.job("job-1").spec.data_dir == str((played.home / "data").resolve())


def test_whatever_is_said_of_an_exec_calls_it_by_its_id(played: Played, client: DeepLearningImpactV1) -> None:
    made = start(played, client)
    played.print("job-1.1", "stdout", b"one\n")
    played.print("job-1.1", "stderr", b"two\n")
    base = f"{played.url}{DEEP_LEARNING}"
    said = [
        played.http.get(f"{base}/execs/{made['id']}/log").text,
        played.http.get(f"{base}/scheduler/applications/{made['id']}/driver/logs/launcherlog").text,
    ]
    played.http.post("/jobs/job-1/stop")
    played.until_ended("job-1")
    for accepted in ("application/json", "text/plain"):
        refused = played.http.post(f"{base}/execs/{made['id']}/stop", headers={"Accept": accepted})
        assert refused.status_code == 400
        said.append(refused.text)
    assert [text for text in said if "job-" in text or "wmla-1" not in text] == []


def test_what_a_job_cannot_have_is_told_by_the_option_that_asked_for_it(
    played: Played, client: DeepLearningImpactV1
) -> None:
    args = f"{ELASTIC} --cs-datastore-meta data_path={played.home}/jobs"
    refused = played.http.post(f"{played.url}{DEEP_LEARNING}/execs", params={"args": args}, files={"file": b"print()"})
    assert refused.text.startswith("--cs-datastore-meta: ")


def test_why_an_exec_waits_names_others_by_their_ids(played: Played, client: DeepLearningImpactV1) -> None:
    fixed = "--exec-start distPyTorch --model-main train.py --numWorker 4"
    start(played, client, fixed)
    waiting = start(played, client, fixed)
    reason = client.get_exec(waiting["id"]).get_result()["stateReason"]
    assert "(wmla-1)" in reason
    assert "job-" not in reason


def test_who_asks_by_the_name_of_a_job_is_told_the_execs(played: Played, client: DeepLearningImpactV1) -> None:
    start(played, client)
    for path in ("execs/job-1", "scheduler/applications/job-1"):
        told = played.http.get(f"{played.url}{DEEP_LEARNING}/{path}")
        assert told.status_code == 404
        assert told.text == "this is the name of a job, and here it is asked for by its exec's id, wmla-1"


def test_a_plain_script_is_told_the_framework_for_it(played: Played, client: DeepLearningImpactV1) -> None:
    made = start(played, client)
    assert "submit a plain script with `--exec-start PyTorch`" in made["notes"]
    path = f"scheduler/applications/{made['id']}/driver/logs/launcherlog"
    launched = played.http.get(f"{played.url}{DEEP_LEARNING}/{path}").text
    assert "`--exec-start PyTorch`" in launched
    assert "--fixed" not in launched + made["notes"]


@pytest.mark.parametrize("framework", ["edtPyTorch", "PyTorch", "distPyTorch"])
def test_a_notebook_is_refused_with_what_makes_a_script_of_it(
    played: Played, client: DeepLearningImpactV1, framework: str
) -> None:
    with pytest.raises(ApiException, match=r"--model-main: 'day\.ipynb' is a notebook; `jupyter nbconvert") as error:
        start(played, client, f"--exec-start {framework} --model-main day.ipynb")
    assert error.value.status_code == 400


def test_an_exec_that_has_ended_is_deleted_with_its_job(played: Played, client: DeepLearningImpactV1) -> None:
    done = start(played, client)["id"]
    played.complete("job-1")
    running, waiting = (
        start(played, client, "--exec-start distPyTorch --model-main train.py --numWorker 4")["id"] for _ in range(2)
    )
    base = f"{played.url}{DEEP_LEARNING}/execs"
    assert played.http.delete(f"{base}/{done}").json() == {"message": f"{done} is deleted", "id": done}
    assert played.http.get("/jobs/job-1").json()["detail"].startswith("job-1 was deleted by admin")
    assert played.http.get(f"{base}/{done}").status_code == 404
    assert not (played.home / "jobs" / "job-1").exists()
    assert played.http.delete(f"{base}/{waiting}").is_success
    assert played.http.delete(f"{base}/{running}").is_success
    assert client.list_execs().get_result() == []
    played.until_ended("job-2")
    assert played.http.get("/jobs/job-2").json()["job"]["state"] == "stopped", "it ran, and stays a job"
    assert played.http.get("/jobs/job-3").json()["detail"].startswith("job-3 was deleted"), "it held no slots"


def test_all_execs_of_somebody_are_deleted(played: Played, client: DeepLearningImpactV1) -> None:
    for job_id in ("job-1", "job-2"):
        start(played, client)
        played.complete(job_id)
    assert client.delete_exec().get_result()["deleted"] == 2
    assert client.list_execs().get_result() == []
    assert played.http.get("/jobs/job-2").status_code == 404


def test_a_shell_opens_beside_the_tasks_of_an_exec_as_beside_those_of_any_job(
    played: Played, client: DeepLearningImpactV1
) -> None:
    elastic = start(played, client, f"{ELASTIC} --msd-env A=b --msd-env API_KEY=s3cr3t")
    fixed = start(played, client, "--exec-start PyTorch --model-main train.py")
    for made, num_tasks in ((elastic, 2), (fixed, 1)):
        job_id = made["id"].replace("wmla-", "job-")
        answer = played.http.post(f"/jobs/{job_id}/shells", json={"task": num_tasks})
        assert answer.status_code == 201, answer.text
        view = answer.json()
        order, beside, _ = played.cluster.sidecars[TaskId(f"{view['task_id']}-{view['id']}")]
        (task,) = [one for one in played.cluster.orders if one.task_id == beside]
        assert beside == f"{job_id}.{num_tasks}"
        assert (order.cwd, order.confinement) == (task.cwd, task.confinement)
        of_task = {(name, value) for name, value in order.env.items() if not name.startswith("PLIANT_TUNNEL")}
        assert of_task <= task.env.items(), "what IBM's options set is there, too"
        assert not {"RANK", "PLIANT_TASK_TOKEN"} & order.env.keys()
        assert (order.env.get("A"), order.env.get("API_KEY")) == (("b", "s3cr3t") if made is elastic else (None, None))
