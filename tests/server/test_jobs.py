"""The REST routes, over a real server."""

import io
import json
import tarfile
from dataclasses import replace
from typing import Any

import httpx
import pytest

from pliant.core.event import EventKind
from pliant.core.job import JobId, Metric
from pliant.core.ports import Writes
from pliant.server import upload

Served = Any
EXECS = "/platform/rest/deeplearning/v1/execs"


def problems(response: httpx.Response) -> dict[str, str]:
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert body["status"] == response.status_code
    return {problem["field"]: problem["message"] for problem in body["problems"]}


def test_a_script_that_cannot_train_elastically_is_taken_with_a_note(server: Served) -> None:
    made = server.submit({"train.py": "import torch, steps\n", "steps.py": "import torch\n"})
    assert made.status_code == 201
    (note,) = made.json()["notes"]
    assert note.startswith("train.py cannot train elastically: no code of it imports pliant.train, fabric_model or ")
    assert "`--fixed 1`" in note
    (event,) = (e for e in server.http.get("/events").json()["events"] if e["kind"] == "warning")
    assert (event["job_id"], event["message"]) == ("job-1", f"job-1 (train.py): {note}")

    assert server.submit({"train.py": "import steps\n", "steps.py": "import pliant.train\n"}).json()["notes"] == []
    assert server.submit({"train.py": ""}, fixed=True).json()["notes"] == []
    through_ibm = {"args": "--exec-start edtPyTorch --model-main main.py"}
    made = server.http.post(
        f"http://{server.address}{EXECS}", params=through_ibm, files={"file": ("main.py", b"import torch\n")}
    )
    there = note.replace("train.py", "main.py", 1).replace("`--fixed 1`", "`--exec-start PyTorch`")
    assert made.json()["notes"] == there, made.text


def test_a_job_is_submitted_shown_changed_and_stopped(server: Served) -> None:
    made = server.submit(name="digits", max_tasks=2)
    assert made.status_code == 201
    assert made.json() == server.http.get("/jobs/job-1").json()["job"] | {"notes": []}
    assert made.json()["spec"]["virtual_workers"] is None, "chosen when its script says the batch size"
    assert list((server.home / "uploads").iterdir()) == []
    server.tick()
    detail = server.http.get("/jobs/job-1").json()
    assert detail["job"]["state"] == "starting"
    assert [task["id"] for task in detail["tasks"]] == ["job-1.1"]
    changed = server.http.patch("/jobs/job-1", json={"priority": 10000})
    assert (changed.status_code, changed.json()["priority"]) == (200, 10000)
    assert server.http.post("/jobs/job-1/stop").json()["state"] == "stopping"
    server.tick()
    server.tick(2)
    assert server.http.get("/jobs", params={"state": "stopped"}).json()["jobs"][0]["id"] == "job-1"
    assert server.http.get("/jobs", params={"state": "running"}).json() == {"jobs": [], "next": None, "total": 0}
    ended = server.http.post("/jobs/job-1/stop")
    assert ended.status_code == 409
    assert "already been stopped" in ended.json()["detail"]


def test_a_fixed_job_is_submitted_and_refuses_another_size(server: Served) -> None:
    made = server.submit(fixed=True, min_tasks=2, max_tasks=2, max_restarts=1)
    assert made.status_code == 201
    spec = made.json()["spec"]
    assert (spec["fixed"], spec["max_restarts"], spec["virtual_workers"]) == (True, 1, 2)
    refused = server.http.patch("/jobs/job-1", json={"max_tasks": 3})
    assert refused.status_code == 409
    assert "fixed at 2" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("job", "field"),
    [
        ({"colour": "red"}, "colour"),
        ({"max_tasks": "2"}, "max_tasks"),
        ({"priority": 0}, "priority"),
        ({"priority": 10_001}, "priority"),
        ({"min_tasks": 3, "max_tasks": 2}, ""),
        ({"max_tasks": 9, "virtual_workers": 8}, ""),
        ({"script": 7}, "script"),
        ({"mode": "quick"}, "mode"),
        ({"weights": "job-9"}, "weights"),
        ({"weights": "relative.pt"}, "weights"),
        ({"resume_from": "job-9"}, "resume_from"),
        ({"weights": "job-9", "resume_from": "job-9"}, ""),
        ({"checkpoint_every_s": -1}, "checkpoint_every_s"),
        ({"fixed": True, "max_tasks": 2}, ""),
        ({"fixed": True, "audit": True}, ""),
        ({"max_restarts": 5}, ""),
        ({"script": "nowhere.py"}, "script"),
        ({"data_dir": "/nowhere"}, "data_dir"),
        ({"python": "/bin/nowhere"}, "python"),
    ],
)
def test_a_wrong_submission_is_refused_with_its_field(module_server: Served, job: dict[str, Any], field: str) -> None:
    response = module_server.submit(**job)
    assert response.status_code == 422
    assert field in problems(response)
    assert module_server.http.get("/jobs").json()["jobs"] == []


def test_a_script_that_does_not_parse_is_refused_with_its_line(module_server: Served) -> None:
    response = module_server.submit({"train.py": "import x\nprint('\n"})
    assert "line 2" in problems(response)["script"]


def test_an_upload_over_the_limit_is_refused_while_it_streams(
    module_server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload, "_SUBMISSION", replace(upload._SUBMISSION, max_bytes=8 << 20))
    archive = bytes((8 << 20) + 1)
    response = module_server.http.post(
        "/jobs", files={"job": (None, '{"script": "train.py"}'), "code": ("c", archive)}, timeout=30
    )
    assert response.status_code == 413
    assert "larger than 8 MiB" in response.json()["detail"]
    assert list((module_server.home / "uploads").iterdir()) == []


def test_bodies_that_are_no_upload_are_refused(module_server: Served) -> None:
    assert module_server.http.post("/jobs", json={"script": "train.py"}).status_code == 422
    assert module_server.http.post("/jobs").status_code == 422
    missing = module_server.http.post("/jobs", files={"job": (None, "{}"), "data": ("d", b"x")})
    assert set(problems(missing)) == {"code", "data"}
    broken = module_server.http.post(
        "/jobs", content=b"xx", headers={"content-type": "multipart/form-data; boundary=b"}
    )
    assert broken.status_code == 422
    no_json = module_server.http.post("/jobs", files={"job": (None, "{"), "code": ("c", b"x")})
    assert "JSON" in problems(no_json)[""]


def test_unknown_things_are_not_found(module_server: Served) -> None:
    for path in ("/jobs/job-7", "/jobs/job-7/why", "/jobs/job-7/logs", "/jobs/job-7/result", "/nothing"):
        response = module_server.http.get(path)
        assert response.status_code == 404, path
        assert response.headers["content-type"] == "application/problem+json"
    assert module_server.http.patch("/jobs/job-7", json={"priority": 1}).status_code == 404
    assert module_server.http.put("/jobs").status_code == 405


def test_series_are_read_by_name_and_step_also_when_they_are_not_numbers(server: Served) -> None:
    server.submit()
    points = [("loss", 1, 0.5), ("loss", 2, float("nan")), ("acc", 2, 0.9)]
    metrics = tuple(Metric(job_id=JobId("job-1"), name=n, step=s, epoch=0, at=1.0, value=v) for n, s, v in points)
    server.store.write(Writes(metrics=metrics))
    page = server.http.get("/jobs/job-1/metrics", params={"name": "loss", "after_step": 0})
    assert [point["step"] for point in page.json()["points"]] == [1, 2]


def test_why_tells_the_newest_decision_first(server: Served) -> None:
    server.submit(max_tasks=4)
    server.tick()
    server.http.patch("/jobs/job-1", json={"max_tasks": 2})
    server.tick()
    why = server.http.get("/jobs/job-1/why").json()
    assert why["sentence"]
    assert [event["data"]["to"] for event in why["history"]][:2] == [2, 4]


def test_the_pool_and_its_usage_are_shown(server: Served) -> None:
    server.submit()
    server.tick()
    cluster = server.http.get("/cluster").json()
    assert [slot["job_id"] for slot in cluster["slots"]] == ["job-1", None, None, None]
    assert cluster["policy"] == "fairshare"
    assert [point["num_slots"] for point in server.http.get("/usage").json()["points"]] == [1]


def test_a_result_is_one_archive_without_checkpoints(server: Served) -> None:
    server.submit()
    result = server.home / "jobs/job-1/result"
    (result / "model/model.pt").write_bytes(b"m" * 1_000_000)
    (result / "checkpoint").mkdir()
    (result / "checkpoint/1").write_bytes(b"c")
    response = server.http.get("/jobs/job-1/result")
    assert response.headers["content-type"] == "application/gzip"
    with tarfile.open(fileobj=io.BytesIO(response.content)) as tar:
        assert tar.getnames() == ["model/model.pt"]


def test_shutdown_is_asked_for_and_answered(module_server: Served) -> None:
    assert module_server.http.post("/shutdown").status_code == 202
    assert module_server.num_shutdowns == 1


def test_health_fails_when_the_loop_stands_still(server: Served) -> None:
    assert server.http.get("/healthz").json()["status"] == "ok"
    server.clock.advance(60)
    assert server.http.get("/healthz").status_code == 503


def test_health_fails_when_the_agent_or_the_zygote_is_stuck(server: Served) -> None:
    server.trouble = "the zygote that forks tasks has not answered for 12 s"
    answer = server.http.get("/healthz")
    assert answer.status_code == 503
    assert server.trouble in answer.json()["detail"]
    server.trouble = ""
    assert server.http.get("/healthz").status_code == 200


def test_the_openapi_page_describes_every_route(module_server: Served) -> None:
    schema = httpx.get(f"http://{module_server.address}/openapi.json", timeout=30).json()
    assert httpx.get(f"http://{module_server.address}/docs", timeout=30).status_code == 200
    for operations in schema["paths"].values():
        for operation in operations.values():
            assert operation["summary"]
            assert operation["description"]
            assert operation["tags"]
            for status, response in operation["responses"].items():
                assert int(status) < 400 or "application/problem+json" in response["content"]
    assert "HTTPValidationError" not in json.dumps(schema)
    job = schema["paths"]["/v1/jobs"]["post"]["requestBody"]["content"]["multipart/form-data"]["schema"]
    assert job["properties"]["job"]["properties"]["priority"]["description"]


def test_events_are_paged(server: Served) -> None:
    server.submit()
    server.submit()
    page = server.http.get("/events", params={"limit": 2}).json()
    assert [event["seq"] for event in page["events"]] == [1, 2]
    assert page["events"][1]["kind"] == EventKind.JOB_SUBMITTED
    rest = server.http.get("/events", params={"after": page["last"], "job_id": "job-2"}).json()
    assert [event["job_id"] for event in rest["events"]] == ["job-2"]
    assert server.http.get("/events", params={"after": rest["last"]}).json()["events"] == []
    assert server.http.get("/events", params={"after": -1}).status_code == 422


def test_what_a_job_is_given_that_nobody_else_may_read_is_in_no_answer(server: Served) -> None:
    env = {"WANDB_API_KEY": "s3cret", "MLFLOW_TRACKING_URI": "http://ann:s3cret@host", "A": "b"}
    hidden = {"WANDB_API_KEY": "(hidden)", "MLFLOW_TRACKING_URI": "http://ann:(hidden)@host", "A": "b"}
    args = ["--api-key", "s3cret", "--lr", "1"]
    answers = [
        server.submit({"train.py": "import pliant.train\n"}, env=env, script="train.py"),
        server.http.get("/jobs/job-1"),
        server.http.get("/jobs"),
        server.http.patch("/jobs/job-1", json={"priority": 7}),
        server.http.get("/events"),
        server.http.post("/jobs/job-1/stop"),
    ]
    assert [answer.status_code for answer in answers] == [201, 200, 200, 200, 200, 200]
    assert not [answer.url for answer in answers if "s3cret" in answer.text]
    assert answers[0].json()["spec"]["env"] == hidden
    stored = server.store.job(JobId("job-1"))
    assert stored.spec.env == env, "the tasks get it"
    made = server.submit({"train.py": "import pliant.train\n"}, args=args).json()
    assert made["params"] == {"api_key": "(hidden)", "lr": 1}
