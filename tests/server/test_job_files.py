"""One file of a job's results, its code, its checkpoints, and which series it has."""

import io
import math
import os
import tarfile
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contracts.store import a_metric
from tests.server.conftest import Served
from tests.server.test_results import FILES, RESULTS, written

from pliant.core.access import Role
from pliant.core.errors import BeyondEnd
from pliant.core.ports import Writes
from pliant.server.file_response import Span, asked_span


@pytest.fixture
def job(server: Served) -> Path:
    assert server.submit(FILES).status_code == 201
    return written(server.home / "jobs" / "job-1")


def url(name: str) -> str:
    return f"/jobs/job-1/files/{quote(name)}"


@pytest.mark.usefixtures("job")
def test_every_file_that_is_listed_is_sent_as_an_attachment(server: Served) -> None:
    for name, num_bytes in RESULTS.items():
        answer = server.http.get(url(name))
        assert (answer.status_code, len(answer.content)) == (200, num_bytes), name
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"] == f"attachment; filename*=utf-8''{name.rpartition('/')[2]}"
        assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'; sandbox"
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_name_that_does_not_show_is_asked_for_as_it_is_listed(server: Served, job: Path) -> None:
    strange = [b"turned \xe2\x80\xae.html", b"\xff\xfe", b'quote".txt', b"x\\x41", "größe.svg".encode(), b"..."]
    for name in strange:
        Path(os.fsdecode(bytes(job / "result") + b"/" + name)).write_bytes(name)
    listed = [file["path"] for file in server.http.get("/jobs/job-1/files").json()["files"] if "/" not in file["path"]]
    found = {server.http.get(url(name)).content for name in listed}
    assert found == {*strange, (job / "result" / "keep.tmp").read_bytes()}
    ascii_only = server.http.get(url("größe.svg")).headers["content-disposition"]
    assert ascii_only == "attachment; filename*=utf-8''gr%C3%B6%C3%9Fe.svg"


def test_nothing_else_is_sent(server: Served, job: Path, tmp_path: Path) -> None:
    (job / "result" / "link").symlink_to("/etc/passwd")
    (job / "result" / "up").symlink_to("..")
    (job / "result" / "folder").mkdir()
    os.mkfifo(job / "result" / "pipe")
    os.link(job / "result" / "keep.tmp", job / "result" / "second")
    with (job / "result" / "bomb").open("wb") as bomb:
        bomb.truncate(1 << 40)
    refused = {name: server.http.get(url(name)) for name in ("link", "folder", "pipe", "second", "keep.tmp", "bomb")}
    assert {answer.status_code for answer in refused.values()} <= {404, 409}
    assert refused["second"].json()["detail"].endswith("it has a second name, and may be somebody else's file")
    for name in (
        "up/code/train.py",
        "../code/train.py",
        "/etc/passwd",
        "work/../../code/train.py",
        "./model/model.pt",
        "model//model.pt",
        "model/./model.pt",
        "checkpoint/1",
        "log/job-1.1.local/.step",
        "work/train.py",
        "work/cache/x",
        "work/deep/cache/y",
        "work/__pycache__/train.pyc",
        "work",
        "nothing",
        "x" * 300,
        "x/" * 1900,
        "a\\U0fffffff",
    ):
        answer = server.http.get(f"/jobs/job-1/files/{quote(name, safe='')}")
        assert answer.status_code in (404, 409), name
        assert b"passwd" not in answer.content or name == "/etc/passwd"
    assert server.http.get(url("x" * 4001)).status_code == 422
    assert server.http.get("/jobs/job-1/files/%00").status_code == 422


@pytest.mark.usefixtures("job")
def test_a_part_is_sent(server: Served) -> None:
    whole = server.http.get(url("keep.tmp")).content

    def part(asked: str, **more: str) -> tuple[int, bytes, str | None]:
        answer = server.http.get(url("keep.tmp"), headers={"Range": asked, **more})
        return answer.status_code, answer.content, answer.headers.get("content-range")

    assert part("bytes=0-3") == (206, whole[:4], "bytes 0-3/33")
    assert part("bytes=30-") == part("bytes=-3") == (206, whole[30:], "bytes 30-32/33")
    assert part("bytes=5-999") == (206, whole[5:], "bytes 5-32/33")
    assert part("bytes=0-0,5-6") == part("lines=1-2") == part("bytes=5-4") == (200, whole, None)
    assert part("bytes=0-3", **{"If-Range": '"old"'}) == (200, whole, None)
    answer = server.http.get(url("keep.tmp"), headers={"Range": "bytes=33-"})
    assert (answer.status_code, answer.headers["content-range"]) == (416, "bytes */33")
    assert "bytes=33-" in answer.json()["detail"]


@given(
    st.integers(0, 40),
    st.one_of(st.text(max_size=12), st.from_regex(r"bytes=[0-9]{0,2}-[0-9]{0,2}", fullmatch=True)),
)
def test_a_part_lies_in_the_file(num_bytes: int, asked: str) -> None:
    try:
        span = asked_span(asked, num_bytes)
    except BeyondEnd:
        return
    assert span is None or (0 <= span.start < span.end <= num_bytes and isinstance(span, Span))


def test_the_file_for_tensorboard_is_sent_under_its_name(server: Served, job: Path) -> None:
    server.store.write(Writes(metrics=(a_metric(1, value=0.5),)))
    (name,) = [
        file["path"]
        for file in server.http.get("/jobs/job-1/files").json()["files"]
        if file["path"].startswith("tensorboard/")
    ]
    with tarfile.open(fileobj=io.BytesIO(server.http.get("/jobs/job-1/result").content)) as tar:
        packed = tar.extractfile(name)
        assert packed is not None
        assert server.http.get(url(name)).content == packed.read()
    assert server.http.get(url("tensorboard/other")).status_code == 404


def test_a_log_without_its_middle_is_sent_as_people_read_it(server: Served, job: Path) -> None:
    log = job / "result/log/job-1.1.local/stdout"
    with log.open("ab") as file:
        file.truncate(64 << 30)
    answer = server.http.get(url("log/job-1.1.local/stdout"))
    assert answer.status_code == 200
    assert answer.content.startswith(b"printed")
    assert answer.content.endswith(b"are left out here: the log is too long]\n")


def test_the_code_is_sent_as_it_was_submitted(server: Served, job: Path) -> None:
    (job / "code" / "train.py").write_text("changed")
    answer = server.http.get("/jobs/job-1/code")
    assert answer.headers["content-disposition"] == "attachment; filename*=utf-8''job-1-code.tar.gz"
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as tar:
        assert set(tar.getnames()) == set(FILES)
    (job / "submitted" / "archive").unlink()
    assert server.http.get("/jobs/job-1/code").status_code == 404


def test_checkpoints_on_the_disk_are_listed_newest_first(server: Served, job: Path) -> None:
    for step, size in ((7, 3), (40, 5)):
        (job / f"result/checkpoint/step-{step:012d}.ckpt").write_bytes(b"x" * size)
    (job / f"result/checkpoint/step-{99:012d}.ckpt").symlink_to("/etc/passwd")
    os.utime(job / f"result/checkpoint/step-{40:012d}.ckpt", (0, 2**40))
    found = server.http.get("/jobs/job-1/checkpoints").json()["checkpoints"]
    assert [(one["step"], one["num_bytes"]) for one in found] == [(40, 5), (7, 3)]
    assert found[0]["at"] == 2**33


@pytest.mark.usefixtures("job")
def test_series_are_listed_with_their_ends(server: Served) -> None:
    points = [a_metric(step, value=step / 10) for step in range(1, 70)]
    server.store.write(Writes(metrics=(*points, a_metric(3, "Accuracy", math.nan))))
    answer = server.http.get("/jobs/job-1/series").json()
    assert [(one["name"], one["num_points"], one["last_step"], one["value"]) for one in answer["series"]] == [
        ("Accuracy", 1, 3, None),
        ("loss", 69, 69, 6.9),
    ]
    server.store.write(Writes(metrics=(a_metric(70, value=math.inf),)))
    assert server.http.get("/jobs/job-1/series?after=Accuracy").json()["series"][0]["value"] is None
    server.store.write(Writes(metrics=(a_metric(70, value=6.9),)))
    answer = server.http.get("/jobs/job-1/series").json()
    first = server.http.get("/jobs/job-1/series", params={"limit": 1}).json()
    assert first["next"] == "Accuracy"
    assert server.http.get("/jobs/job-1/series", params={"after": first["next"]}).json()["series"] == [
        answer["series"][1]
    ]


@pytest.mark.usefixtures("job")
@pytest.mark.parametrize("path", ["files/keep.tmp", "code", "checkpoints", "series"])
def test_only_those_who_see_a_job_get_what_is_of_it(server: Served, path: str) -> None:
    with server.client() as nobody, server.client_of("ben", Role.VIEWER) as ben:
        assert nobody.get(f"/jobs/job-1/{path}").status_code == 401
        assert ben.get(f"/jobs/job-1/{path}").status_code == 404
        assert server.http.put("/jobs/job-1/shares", json={"shared_with": ["ben"]}).is_success
        assert ben.get(f"/jobs/job-1/{path}").status_code == 200
