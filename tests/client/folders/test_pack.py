"""Packing code for submission."""

import io
import os
import tarfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.client.folders.pack import Limits, pack
from pliant.client.http.lines import lines_of
from pliant.client.http.stream import data_of
from pliant.core.errors import InvalidInput, TooLarge


def packed(code: Path, limits: Limits | None = None) -> bytes:
    out = io.BytesIO()
    pack(code, out, limits)
    return out.getvalue()


def names(code: Path) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(packed(code)), mode="r:gz") as tar:
        return tar.getnames()


def fill(folder: Path, *files: str) -> Path:
    for name in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return folder


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    one, two = fill(tmp_path / "one", "b.py", "a/c.py"), fill(tmp_path / "two", "a/c.py", "b.py")
    os.utime(two / "b.py", (1, 1))
    (two / "b.py").chmod(0o600)
    assert packed(one) == packed(two)


def test_a_single_file_is_packed_alone_under_its_name(tmp_path: Path) -> None:
    fill(tmp_path, "train.py", "other.py")
    assert names(tmp_path / "train.py") == ["train.py"]


def test_what_never_belongs_to_code_is_left_out(tmp_path: Path) -> None:
    fill(tmp_path, ".git/HEAD", "a/__pycache__/x.pyc", ".venv/bin/python", "node_modules/x.js", "old.pyc", "a/b.py")
    assert names(tmp_path) == ["a", "a/b.py"]


def test_the_ignore_file_takes_patterns_for_names_paths_and_folders(tmp_path: Path) -> None:
    fill(tmp_path, "data/x.bin", "a/data", "a/keep.py", "a/skip.txt", "logs/1", "b/logs/2", "train.py", "runs/7/out")
    (tmp_path / ".pliantignore").write_text("# comment\n\ndata/\n*.txt\n/logs\nruns/*\n")
    assert names(tmp_path) == [
        ".pliantignore",
        "a",
        "a/data",
        "a/keep.py",
        "b",
        "b/logs",
        "b/logs/2",
        "runs",
        "train.py",
    ]


def test_modes_keep_only_what_runs(tmp_path: Path) -> None:
    fill(tmp_path, "run.sh", "train.py")
    (tmp_path / "run.sh").chmod(0o4770)
    with tarfile.open(fileobj=io.BytesIO(packed(tmp_path)), mode="r:gz") as tar:
        assert {member.name: member.mode for member in tar} == {"run.sh": 0o755, "train.py": 0o644}


def test_a_link_inside_is_packed_as_what_it_points_to(tmp_path: Path) -> None:
    fill(tmp_path, "real/a.py")
    (tmp_path / "link.py").symlink_to("real/a.py")
    (tmp_path / "folder").symlink_to("real")
    assert names(tmp_path) == ["folder", "folder/a.py", "link.py", "real", "real/a.py"]
    with tarfile.open(fileobj=io.BytesIO(packed(tmp_path)), mode="r:gz") as tar:
        assert all(member.isfile() or member.isdir() for member in tar)


def test_everything_that_cannot_be_packed_is_told_at_once(tmp_path: Path) -> None:
    code = fill(tmp_path / "code", "train.py", "a/b.py")
    (tmp_path / "secret").write_text("s")
    (code / "outside").symlink_to(tmp_path / "secret")
    (code / "gone").symlink_to("nowhere")
    (code / "a" / "round").symlink_to("../../code")
    os.mkfifo(code / "pipe")
    with pytest.raises(InvalidInput) as caught:
        packed(code)
    told = [problem.message for problem in caught.value.problems]
    assert [message.split(":")[0] for message in told] == ["a/round", "gone", "outside", "pipe"]
    assert "leads outside the folder" in told[2]
    (code / ".pliantignore").write_text("outside\ngone\nround\npipe\n")
    assert names(code) == [".pliantignore", "a", "a/b.py", "train.py"]


@pytest.mark.parametrize(
    ("limits", "match"),
    [
        (Limits(max_files=2), "more than 2 files"),
        (Limits(max_unpacked_bytes=20), r"more than 20 bytes \(reached at 'c.py'\)"),
        (Limits(max_packed_bytes=30), "packs to more than 30 bytes"),
    ],
)
def test_a_limit_is_told_with_what_to_do(tmp_path: Path, limits: Limits, match: str) -> None:
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).write_bytes(os.urandom(10))
    with pytest.raises(TooLarge, match=match) as caught:
        packed(tmp_path, limits)
    assert ".pliantignore" in str(caught.value)


def test_a_path_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="neither a folder nor a file"):
        packed(tmp_path / "nothing")


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=6))
def test_lines_do_not_depend_on_how_the_bytes_arrive(data: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    chunks = [data[a:b] for a, b in pairwise(edges)]
    expected = data.split(b"\n")
    assert list(lines_of(chunks)) == (expected if expected[-1] else expected[:-1])


def test_messages_are_taken_from_the_stream_as_the_standard_says() -> None:
    text = b": hi\n\nid: 1\nevent: x\ndata: one\ndata:two\n\nretry: 5\n\ndata: three\r\n\r\ndata: cut off\n"
    assert list(data_of(lines_of([text]))) == ["one\ntwo", "three"]
