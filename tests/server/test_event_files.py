"""The results of a job hold its series as TensorBoard reads them."""

import io
import math
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from tests import event_files
from tests.server.conftest import Served

from pliant.control.upkeep import event_files as made
from pliant.core.job import JobId, Metric
from pliant.core.ports import Writes

JOB = JobId("job-1")


@pytest.fixture
def job(server: Served) -> Path:
    answer = server.submit({"train.py": "import pliant.train\n"}, args=["--lr", "0.1"])
    assert answer.status_code == 201, answer.text
    folder = server.home / "jobs" / "job-1"
    (folder / "result" / "model" / "model.pt").write_text("weights")
    return folder


def write(server: Served, name: str, *points: tuple[int, float]) -> None:
    metrics = [Metric(job_id=JOB, name=name, step=s, epoch=0, at=1000.0 + s, value=v) for s, v in points]
    server.store.write(Writes(metrics=tuple(metrics)))


def archive(server: Served, **params: str) -> dict[str, bytes]:
    answer = server.http.get("/jobs/job-1/result", params=params)
    assert answer.status_code == 200, answer.text
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


def the_event_file(found: dict[str, bytes]) -> tuple[str, bytes]:
    ((name, data),) = [(name, data) for name, data in found.items() if "tfevents" in name]
    return name, data


def test_the_archive_holds_every_series_with_its_steps_and_times(server: Served, job: Path) -> None:
    write(server, "loss", (1, 2.5), (2, 1.5), (300, math.nan))
    write(server, "test accuracy", (300, 0.75))
    name, data = the_event_file(archive(server))
    assert name == "tensorboard/events.out.tfevents.0000001000.job-1"
    found = event_files.series(data)
    assert found["test accuracy"] == [(300, 1300.0, 0.75)]
    assert found["loss"][:2] == [(1, 1001.0, 2.5), (2, 1002.0, 1.5)]
    assert math.isnan(found["loss"][2][2])
    assert "| lr | 0.1 |" in event_files.events(data)[1].texts["params/text_summary"]


def test_a_point_that_came_twice_is_there_once(server: Served, job: Path) -> None:
    write(server, "loss", (1, 2.0), (2, 1.0))
    write(server, "loss", (2, 1.0), (3, 0.5))
    _, data = the_event_file(archive(server))
    assert [step for step, _, _ in event_files.series(data)["loss"]] == [1, 2, 3]


def test_the_list_of_results_says_how_long_the_file_is(server: Served, job: Path) -> None:
    write(server, "loss", (1, 2.0))
    name, data = the_event_file(archive(server))
    listed = {file["path"]: file for file in server.http.get("/jobs/job-1/files").json()["files"]}
    assert listed[name]["num_bytes"] == len(data)
    assert listed[name]["changed_at"] == 1001.0


def test_a_job_without_series_has_no_such_file(server: Served, job: Path) -> None:
    assert set(archive(server)) == {"model/model.pt"}


def test_patterns_choose_the_file_as_any_other(server: Served, job: Path) -> None:
    write(server, "loss", (1, 2.0))
    assert list(archive(server, only="model.pt")) == ["model/model.pt"]
    assert [name.split("/")[0] for name in archive(server, only="tensorboard")] == ["tensorboard"]
    assert [name.split("/")[0] for name in archive(server, only="*tfevents*")] == ["tensorboard"]


def test_a_folder_of_the_scripts_own_keeps_its_name(server: Served, job: Path) -> None:
    write(server, "loss", (1, 2.0))
    (job / "result" / "tensorboard").mkdir()
    (job / "result" / "tensorboard" / "mine").write_text("x")
    found = archive(server)
    assert found["tensorboard/mine"] == b"x"
    assert the_event_file(found)[0].startswith("tensorboard~/")


def test_a_long_series_is_written_as_means(server: Served, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "MAX_POINTS", 3)
    write(server, "loss", *((step, float(step)) for step in range(1, 7)))
    _, data = the_event_file(archive(server))
    assert event_files.series(data)["loss"] == [(2, 1002.0, 1.5), (4, 1004.0, 3.5), (6, 1006.0, 5.5)]


def test_many_series_share_what_a_file_holds(server: Served, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "MAX_ALL_POINTS", 30)
    for name in ("a", "b"):
        write(server, name, *((step, 1.0) for step in range(1, 101)))
    _, data = the_event_file(archive(server))
    found = event_files.series(data)
    assert all(0 < len(points) <= 15 and points[-1][0] == 100 for points in found.values())
    assert set(found) == {"a", "b"}


def test_what_the_script_names_cannot_leave_the_file(server: Served, job: Path) -> None:
    write(server, "../../etc/passwd\n", (1, 2.0))
    stored = server.store.job(JOB)
    assert stored is not None
    server.store.write(Writes(jobs=(replace(stored, params={"x|y": "</td><script>"}),)))
    name, data = the_event_file(archive(server))
    assert ".." not in name
    assert "<script>" not in event_files.events(data)[1].texts["params/text_summary"]
