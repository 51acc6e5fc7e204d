"""Whatever a script puts in the place of a file, no route reads a secret, waits, or answers with an error of ours."""

import io
import json
import os
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.hostile import PLANTS, deep_tree, exchanged, leased, petabyte
from tests.server.conftest import Served
from tests.server.test_models import add_model, add_template, end_training, packed, problems, train
from tests.server.test_upkeep import ended

from pliant.core.job import TaskId
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.removal import remove
from pliant.ibm.rest.translate.execution import Execution

SECRET = b"the server's token"
pytestmark = pytest.mark.timeout(30)


@pytest.fixture
def secret(server: Served) -> Path:
    path = server.home / "secret-of-the-server"
    path.write_bytes(SECRET)
    return path


@pytest.fixture
def weights(server: Served) -> Path:
    """The place of the weights of a training that has ended."""
    add_template(server.http)
    add_model(server.http)
    train(server.http)
    path = end_training(server, "job-1")
    path.unlink()
    return path


@pytest.fixture
def log(server: Served) -> Path:
    """The log folder of a task that has ended."""
    server.submit()
    server.tick()
    server.http.post("/jobs/job-1/stop")
    server.tick()
    server.tick(2)
    folder = server.home / "jobs/job-1/result/log/job-1.1.local"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


STRANGE = sorted(set(PLANTS) - {"folder"})


def planted(path: Path, secret: Path) -> Iterator[str]:
    """Put one thing after the other at a path."""
    for kind, plant in PLANTS.items():
        remove(UntrustedPath(path.parent, path.name))
        plant(path, secret)
        yield kind


def members(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        return {member.name: file.read() for member in tar if (file := tar.extractfile(member)) is not None}


def test_weights_that_are_something_else_are_neither_sent_nor_started_from(
    server: Served, weights: Path, secret: Path
) -> None:
    for _ in planted(weights, secret):
        view = server.http.get("/models/digits/trainings/training-1").json()
        answer = server.http.get("/models/digits/trainings/training-1/weights")
        assert view["has_weights"] is False
        assert answer.status_code == 404
        assert SECRET not in answer.content
        assert "has no weights" in answer.json()["detail"]
        assert "has no weights" in problems(train(server.http, weights={"training": "training-1"}))["weights"]
        assert "has no weights" in problems(train(server.http, weights={"job": "job-1"}))["weights"]
        assert "weights" in problems(server.submit(weights="job-1"))


def test_weights_that_another_process_has_leased_are_not_waited_for(server: Served, weights: Path) -> None:
    weights.write_bytes(b"weights")
    with leased(weights):
        answer = server.http.get("/models/digits/trainings/training-1/weights")
        assert answer.status_code == 404
    answer = server.http.get("/models/digits/trainings/training-1/weights")
    assert (answer.content, answer.headers["content-length"]) == (b"weights", "7")
    assert "digits.training-1.pt" in answer.headers["content-disposition"]


def test_a_petabyte_of_weights_is_refused(server: Served, weights: Path) -> None:
    petabyte(weights)

    assert server.http.get("/models/digits/trainings/training-1/weights").status_code == 404
    said = problems(train(server.http, weights={"training": "training-1"}))["weights"]
    assert "without holes" in said


def test_weights_that_are_swapped_for_a_link_are_never_those_of_somebody_else(
    server: Served, weights: Path, secret: Path
) -> None:
    weights.write_bytes(b"weights")
    link = weights.with_name("link")
    link.symlink_to(secret)
    with exchanged(weights, link):
        found = {server.http.get("/models/digits/trainings/training-1/weights").content[:7] for _ in range(50)}
    assert b"the ser" not in found


def test_a_log_that_is_something_else_is_not_there(server: Served, log: Path, secret: Path) -> None:
    for _ in planted(log / "stdout", secret):
        assert server.http.get("/jobs/job-1/logs").json() == []
        for query in ("", "?follow=true", "?tail=3", "?offset=1"):
            answer = server.http.get(f"/jobs/job-1/logs/job-1.1/stdout{query}")
            assert answer.status_code == 404
            assert SECRET not in answer.content


def test_a_log_folder_that_is_a_link_is_empty(server: Served, log: Path, secret: Path) -> None:
    for folder in (log, log.parent):
        folder.rename(log.parents[1] / "moved")
        folder.symlink_to(secret.parent)
        assert server.http.get("/jobs/job-1/logs").json() == []
        assert server.http.get(f"/jobs/job-1/logs/job-1.1/{secret.name}").status_code == 404
        folder.unlink()
        (log.parents[1] / "moved").rename(folder)


def test_the_end_of_a_petabyte_is_found(server: Served, log: Path) -> None:
    petabyte(log / "stdout")
    with (log / "stdout").open("ab") as file:
        file.truncate(file.tell())
    (size,) = [stream["num_bytes"] for stream in server.http.get("/jobs/job-1/logs").json()]
    with server.http.stream("GET", "/jobs/job-1/logs/job-1.1/stdout?tail=2") as answer:
        assert answer.status_code == 200
        text = answer.read()
    assert len(text) < 200
    assert b"are left out here" in text
    with server.http.stream("GET", f"/jobs/job-1/logs/job-1.1/stdout?offset={size}") as answer:
        assert answer.read() == b""
    assert server.http.get(f"/jobs/job-1/logs/job-1.1/stdout?offset={1 << 70}").text == ""


def test_a_log_that_becomes_a_pipe_while_it_is_followed_ends(server: Served) -> None:
    server.submit()
    server.tick()
    folder = server.home / "jobs/job-1/result/log/job-1.1.local"
    folder.mkdir(parents=True)
    (folder / "stdout").write_text("one\n")
    with server.http.stream("GET", "/jobs/job-1/logs/job-1.1/stdout?follow=true") as answer:
        text = answer.iter_text()
        assert next(text) == "one\n"
        (folder / "stdout").unlink()
        os.mkfifo(folder / "stdout")
        server.cluster.exit(TaskId("job-1.1"), -9)
        server.control.requests.stop("job-1")
        server.tick()
        server.tick()
        assert list(text) == []


def test_results_are_sent_without_what_is_something_else(server: Served, log: Path, secret: Path) -> None:
    result = log.parents[1]
    for kind in STRANGE:
        PLANTS[kind](result / f"strange {kind}", secret)
    deep_tree(result / "deep", 120)
    (result / "turned \u202e round").write_bytes(b"text")
    (result / os.fsdecode(b"\xff\n")).write_bytes(b"bytes")

    found = members(server.http.get("/jobs/job-1/result").content)
    assert SECRET not in b"".join(found.values())
    assert not [name for name in found if name.startswith("strange")]
    assert {"turned \\u202e round", "\\udcff\\x0a"} <= found.keys()
    assert found["left-out.txt"].count(b"strange ") == len(STRANGE)


def test_a_result_folder_that_is_a_link_is_not_sent(server: Served, log: Path, secret: Path) -> None:
    result = log.parents[1]
    result.rename(result.with_name("moved"))
    result.symlink_to(secret.parent)

    assert set(members(server.http.get("/jobs/job-1/result").content)) == {"left-out.txt"}
    assert SECRET not in members(server.http.get("/backup").content).get("home/jobs/job-1/result/secret", b"")


def test_a_clean_up_and_a_backup_touch_nothing_else(server: Served, secret: Path) -> None:
    result = ended(server, 1, days_ago=10)
    for name in ("log", "checkpoint", "model", "."):
        for kind in STRANGE:
            PLANTS[kind](result / name / f"strange {kind}", secret)
    deep_tree(result / "checkpoint" / "deep")
    (result / os.fsdecode(b"\xff\n\\")).mkdir()
    found = members(server.http.get("/backup").content)
    inside = {name: content for name, content in found.items() if name.startswith("home/jobs/")}
    assert not [name for name in inside if "strange" in name]
    assert SECRET not in b"".join(inside.values())
    assert b"home/jobs/job-1/result/strange pipe: " in found["left-out.txt"]

    clean_up(server)
    assert os.listdir(result) == []
    assert sorted(os.listdir(result.parent)) == ["logs-removed", "result"]
    assert secret.read_bytes() == SECRET


def test_a_folder_that_is_a_link_is_not_emptied(server: Served, secret: Path) -> None:
    for number, folder in enumerate(("log", "checkpoint", "."), 1):
        result = ended(server, number, days_ago=10)
        (result / folder).rename(result.parent / "moved")
        (result / folder).symlink_to(server.home)

    clean_up(server)
    assert secret.read_bytes() == SECRET


def clean_up(server: Served) -> None:
    rules = [{"material": name, "max_age_days": 7} for name in ("logs", "checkpoints", "results")]
    server.http.put("/retention", json={"rules": rules})
    done = server.http.post("/cleanup").json()
    assert done["failed"] == []
    assert done["removals"]


def test_whole_paths_tell_nothing_of_files_that_the_server_alone_sees(server: Served, secret: Path) -> None:
    """Whoever does not run the server gets one answer for what is there and what is not."""
    code = packed({"train.py": "print()"})

    def said(**job: object) -> dict[str, str]:
        files = {"job": json.dumps({"script": "train.py", **job}).encode(), "code": code}
        with server.client_of("bob") as bob:
            found = problems(bob.post("/jobs", files=files))
        return {field: text.replace("-not-there", "") for field, text in found.items()}

    (server.home / "folder").mkdir()
    (server.home / "folder" / "step-000000000001.ckpt").write_bytes(b"")
    program = server.home / "program"
    program.write_text("#!/bin/sh")
    program.chmod(0o700)
    for field, path in (
        ("weights", secret),
        ("data_dir", server.home / "folder"),
        ("resume_from", server.home / "folder"),
        ("python", program),
    ):
        assert said(**{field: str(path)}) == said(**{field: f"{path}-not-there"})


def test_whole_paths_that_everybody_can_read_are_taken(server: Served) -> None:
    job = {"script": "train.py", "weights": "/etc/passwd", "data_dir": "/etc", "python": "/bin/sh"}
    files = {"job": json.dumps(job).encode(), "code": packed({"train.py": "print()"})}

    with server.client_of("bob") as bob:
        assert bob.post("/jobs", files=files).status_code == 201


def test_ibms_routes_send_no_more(server: Served, log: Path, secret: Path) -> None:
    for kind in STRANGE:
        PLANTS[kind](log.parents[1] / f"strange {kind}", secret)
    (log / "stdout").write_text("one\n")
    (log.parents[1] / "turned \u202e round").write_bytes(b"text")
    (log.parents[1] / os.fsdecode(b"\xff\n")).write_bytes(b"bytes")
    server.store.registry.add(Execution(name="job-1", owner="admin"), at=1.0)
    base = f"http://{server.address}/platform/rest/deeplearning/v1/execs/wmla-1"
    sent = server.http.get(f"{base}/result")
    with zipfile.ZipFile(io.BytesIO(sent.content)) as archive:
        assert not [name for name in archive.namelist() if name.startswith("strange")]
        assert {"turned \\u202e round", "\\udcff\\x0a", "left-out.txt"} <= set(archive.namelist())
        assert SECRET not in b"".join(archive.read(name) for name in archive.namelist())
    for _ in planted(log / "stdout", secret):
        answer = server.http.get(f"{base}/log", params={"logType": "outlog", "lastlines": 5})
        assert (answer.status_code, answer.content) == (200, b"")


def test_ibms_list_of_weight_files_names_what_is_there(server: Served, weights: Path, secret: Path) -> None:
    for kind in STRANGE:
        PLANTS[kind](weights.with_name(f"{kind}.pt"), secret)
    weights.with_name("line\nbreak.pt").write_bytes(b"")
    deep_tree(weights.with_name("deep"), 120)
    url = f"http://{server.address}/platform/rest/deeplearning/v1/models/digits/trainings/training-1/weightfile"

    assert set(server.http.get(url).json()) - {"second name.pt"} == {"line\\x0abreak.pt"}
    weights.parent.rename(weights.parents[1] / "moved")
    weights.parent.symlink_to(secret.parent)
    assert server.http.get(url).json() == []
