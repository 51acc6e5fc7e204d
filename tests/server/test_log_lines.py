"""A log page by page, backwards and forwards, and the lines that hold a text."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pliant.api.logs import FoundLines, LogLines
from pliant.files.untrusted.path import UntrustedPath
from pliant.server import log_lines
from pliant.server.log_lines import find_lines, lines_before, lines_from

Served = Any


def backwards(path: UntrustedPath, num_lines: int) -> list[LogLines]:
    """Read a log from its end to its beginning."""
    pages = [lines_before(path, None, num_lines)]
    while pages[-1].start > 0:
        pages.append(lines_before(path, pages[-1].start, num_lines))
    return pages[::-1]


def forwards(path: UntrustedPath, num_lines: int) -> list[LogLines]:
    pages = [lines_from(path, 0, num_lines)]
    while pages[-1].end < pages[-1].num_bytes:
        pages.append(lines_from(path, pages[-1].end, num_lines))
    return pages


def shown(pages: list[LogLines]) -> list[str]:
    return [line.text for page in pages for line in page.lines]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(st.lists(st.sampled_from(["", "a", "bb\r", "x" * 40, "ü"]), max_size=12), st.booleans(), st.integers(1, 4))
def test_pages_show_every_line_once(tmp_path: Path, lines: list[str], ends: bool, num_lines: int) -> None:
    text = "\n".join(lines) + "\n" * (ends and bool(lines))
    (tmp_path / "log").write_bytes(text.encode())
    path = UntrustedPath(tmp_path, "log")
    expected = text.split("\n")[:-1] + ([text.rpartition("\n")[2]] if text.rpartition("\n")[2] else [])
    for pages in (backwards(path, num_lines), forwards(path, num_lines)):
        assert shown(pages) == expected
        assert all(len(page.lines) <= num_lines for page in pages)
        for line in (line for page in pages for line in page.lines):
            assert text.encode()[line.offset :].startswith(line.text.encode())


def test_a_line_without_an_end_comes_in_parts_and_cut(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"first\n" + b"x" * 600_000 + b"\nlast\n")
    path = UntrustedPath(tmp_path, "log")
    for pages in (backwards(path, 10), forwards(path, 10)):
        assert [page.end for page in pages] == [*(page.start for page in pages[1:]), 600_012]
        assert (shown(pages)[0], shown(pages)[-1]) == ("first", "last")
        assert any(line.is_cut and len(line.text) == 10_000 for page in pages for line in page.lines)


def test_a_middle_that_was_left_out_is_a_line(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        file.write(b"first\n" * 20_000)
        file.truncate(4 << 30)
        file.seek(4 << 30)
        file.write(b"last\n")
    path = UntrustedPath(tmp_path, "log")
    for pages in (backwards(path, 2000), forwards(path, 2000)):
        lines = shown(pages)
        assert (lines[0], lines[-1]) == ("first", "last")
        assert [line for line in lines if "are left out here" in line] == [
            "[pliant: 4.0 GiB are left out here: the log is too long]"
        ]
    found = find_lines(path, "LAST", 0, 5)
    assert ([line.text for line in found.lines], found.next) == (["last"], None)


def found_all(path: UntrustedPath, text: str, limit: int) -> tuple[list[tuple[int, str]], int]:
    """Return all lines that hold a text, and in how many answers they came."""
    answers: list[FoundLines] = [find_lines(path, text, 0, limit)]
    while (following := answers[-1].next) is not None:
        answers.append(find_lines(path, text, following, limit))
    return [(line.offset, line.text) for one in answers for line in one.lines], len(answers)


def test_lines_are_found_in_answers_that_look_at_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lines, "MAX_FIND_BYTES", 4000)
    monkeypatch.setattr(log_lines, "_BLOCK", 1000)
    lines = [f"line {number}: {'Größe' if number % 7 == 0 else 'other'} [x.*]" for number in range(500)]
    (tmp_path / "log").write_text("\n".join(lines))
    path = UntrustedPath(tmp_path, "log")
    expected = [line for line in lines if "Größe" in line]
    for limit in (1, 5, 500):
        found, num_answers = found_all(path, "GRÖSSE [X.", limit)
        assert [text for _, text in found] == expected
        assert num_answers >= 3
    assert found_all(path, "nothing", 5)[0] == []
    whole = (tmp_path / "log").read_bytes()
    assert all(whole[offset:].startswith(text.encode()) for offset, text in found_all(path, "line 1", 9)[0])
    assert find_lines(path, "x", 10**6, 5) == FoundLines(lines=(), next=None, end=10**6)


def test_of_a_long_line_what_is_around_the_text_is_shown(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"x" * 50_000 + b"here" + b"\xff" * 50_000)
    (line,) = find_lines(UntrustedPath(tmp_path, "log"), "here", 0, 5).lines
    assert "here" in line.text
    assert (len(line.text), line.is_cut) == (1000, True)


def test_the_routes_answer_with_lines(server: Served) -> None:
    server.submit()
    server.tick()
    folder = server.home / "jobs/job-1/result/log/job-1.1.local"
    folder.mkdir(parents=True)
    (folder / "stdout").write_text("one\ntwo\n<b>three</b>\n")
    url = "/jobs/job-1/logs/job-1.1/stdout"
    page = server.http.get(f"{url}/lines?lines=2").json()
    assert [line["text"] for line in page["lines"]] == ["two", "<b>three</b>"]
    assert (page["start"], page["end"], page["num_bytes"]) == (4, 21, 21)
    assert server.http.get(f"{url}/lines?before=4").json()["lines"] == [{"offset": 0, "text": "one", "is_cut": False}]
    assert server.http.get(f"{url}/lines?offset=4&lines=1").json()["end"] == 8
    assert server.http.get(f"{url}/find?text=T").json()["lines"][1]["offset"] == 8
    (folder / "link").symlink_to("/etc/passwd")
    for wrong in ("lines?before=1&offset=1", "lines?lines=0", "find", "find?text=", "find?text=%00"):
        assert server.http.get(f"{url}/{wrong}").status_code == 422, wrong
    for other in ("/jobs/job-1/logs/job-1.1/link/lines", "/jobs/job-1/logs/job-1.9/stdout/find?text=x"):
        assert server.http.get(other).status_code == 404
    whole = server.http.get(f"{url}?download=true")
    assert whole.headers["content-disposition"] == "attachment; filename*=utf-8''job-1.1-stdout.txt"
    with server.client_of("ben") as ben:
        assert ben.get(f"{url}/lines").status_code == ben.get(f"{url}/find?text=x").status_code == 404
