"""Log streams, whole, in part, and while they grow."""

from pathlib import Path
from typing import Any

import pytest

from pliant.files.untrusted.path import UntrustedPath
from pliant.server.log_file import find_tail
from pliant.server.routes import logs

Served = Any


@pytest.fixture
def folder(server: Served) -> Path:
    server.submit()
    server.tick()
    path: Path = server.home / "jobs/job-1/result/log/job-1.1.local"
    path.mkdir(parents=True)
    (path / "stdout").write_text("one\ntwo\nthree\n")
    return path


def test_streams_are_listed_and_read(server: Served, folder: Path) -> None:
    assert server.http.get("/jobs/job-1/logs").json() == [{"task_id": "job-1.1", "stream": "stdout", "num_bytes": 14}]
    url = "/jobs/job-1/logs/job-1.1/stdout"
    response = server.http.get(url)
    assert (response.text, response.headers["content-type"]) == ("one\ntwo\nthree\n", "text/plain; charset=utf-8")
    assert server.http.get(url, params={"offset": 4}).text == "two\nthree\n"
    assert server.http.get(url, params={"offset": 400}).text == ""
    assert server.http.get(url, params={"tail": 1}).text == "three\n"
    assert server.http.get(url, params={"tail": 1, "offset": 1}).status_code == 422
    assert server.http.get(url, params={"tail": -1}).status_code == 422


def test_a_followed_stream_goes_on_until_the_task_has_ended(server: Served, folder: Path) -> None:
    url = "/jobs/job-1/logs/job-1.1/stdout?follow=true&tail=1"
    with server.http.stream("GET", url) as response:
        text = response.iter_text()
        assert next(text) == "three\n"
        with (folder / "stdout").open("a") as out:
            out.write("four\n")
        assert next(text) == "four\n"
        server.cluster.exit("job-1.1", -9)
        server.control.requests.stop("job-1")
        server.tick()
        server.tick()
        assert list(text) == []


def test_a_stream_is_followed_before_its_task_has_written_anything(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process may take long to begin: its interpreter is being made, or torch imported."""
    monkeypatch.setattr(logs, "APPEAR_S", -1.0)
    server.submit()
    server.tick()
    url = "/jobs/job-1/logs/job-1.1/stdout"
    assert server.http.get(url).status_code == 404
    assert server.http.get("/jobs/job-1/logs/job-1.1/..%2Fstdout?follow=true").status_code == 404
    with server.http.stream("GET", f"{url}?follow=true") as response:
        assert response.status_code == 200
        folder = server.home / "jobs/job-1/result/log/job-1.1.local"
        folder.mkdir(parents=True)
        (folder / "stdout").write_text("one\n")
        text = response.iter_text()
        assert next(text) == "one\n"
        server.cluster.exit("job-1.1", -9)
        server.control.requests.stop("job-1")
        server.tick()
        server.tick()
        assert list(text) == []


def test_names_that_lead_elsewhere_are_not_found(server: Served, folder: Path) -> None:
    (folder / "link").symlink_to("/etc/passwd")
    (folder / ".hidden").write_text("x")
    for name in ("link", ".hidden", "..%2F..%2Fmodel", "%2Fetc%2Fpasswd", "stderr"):
        response = server.http.get(f"/jobs/job-1/logs/job-1.1/{name}")
        assert response.status_code == 404, name
        assert "root:" not in response.text
    assert server.http.get("/jobs/job-1/logs/job-1.9/stdout").status_code == 404
    assert server.http.get("/jobs/job-1/logs/..%2Fjob-1.1/stdout").status_code == 404


@pytest.mark.parametrize("num_lines", [0, 1, 2, 5, 9000, 20_000])
@pytest.mark.parametrize("end", ["", "\n"])
def test_the_last_lines_begin_where_splitting_says(tmp_path: Path, num_lines: int, end: str) -> None:
    lines = [f"{i} " * (i % 7) for i in range(12_000)]
    path = tmp_path / "out"
    path.write_text("\n".join([*lines, "last"]) + end)
    text = path.read_text()
    expected = "".join(text.splitlines(keepends=True)[len(lines) + 1 - num_lines if num_lines <= 12_001 else 0 :])
    assert text.encode()[find_tail(UntrustedPath(path.parent, path.name), num_lines) :].decode() == expected
