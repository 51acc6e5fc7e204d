"""What was written into a folder since it was handed over is told from what was in it."""

import os
from pathlib import Path

import pytest

from pliant.files.untrusted import written
from pliant.files.untrusted.opening import open_folder
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.walking import walk
from pliant.files.untrusted.written import Baseline, note_baseline, read_baseline


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A folder that was filled by us."""
    code = tmp_path / "job" / "code"
    (code / "lib").mkdir(parents=True)
    for name in ("train.py", "lib/a.py", "data.csv", os.fsdecode(b"\xff\n")):
        (code / name).write_text(f"this is {name!r}")
    note_baseline(code, tmp_path / "notes")
    return code


def baseline(code: Path) -> Baseline:
    found = read_baseline(UntrustedPath(code.parents[1], "notes"))
    assert found is not None
    return found


def changed(code: Path) -> set[str]:
    """Return the names of what is not as it was."""
    before = baseline(code)
    with open_folder(UntrustedPath(code.parent, "code")) as top:
        return {entry.name for entry in walk(top) if not before.is_as_it_was(top, entry)}


def test_what_was_handed_over_is_as_it_was(code: Path) -> None:
    assert changed(code) == set()
    assert baseline(code).has("lib/a.py")
    assert not baseline(code).has("a.py")


def test_new_and_changed_files_are_found_whatever_their_length(code: Path) -> None:
    (code / "model.pt").write_bytes(b"weights")
    (code / "data.csv").write_text("x" * len((code / "data.csv").read_text()))
    (code / "lib" / "a.py").write_text("longer than before, much longer")

    assert changed(code) == {"model.pt", "data.csv", "lib/a.py"}


def test_another_time_alone_is_no_change(code: Path) -> None:
    for path in code.rglob("*"):
        os.utime(path, (5, 5))

    assert changed(code) == set()


def test_a_link_or_a_closed_file_in_the_place_of_one_is_a_change(code: Path) -> None:
    content = (code / "train.py").read_bytes()
    (code / "train.py").unlink()
    (code.parent / "elsewhere").write_bytes(content)
    (code / "train.py").symlink_to(code.parent / "elsewhere")
    (code / "data.csv").rename(code / "moved")
    os.mkfifo(code / "data.csv")

    assert changed(code) == {"train.py", "data.csv", "moved"}


@pytest.mark.parametrize("content", [b"no notes\n", b"a b c d\n", b"\xff\xfe", b"x" * 200])
def test_notes_that_are_none_are_no_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(written, "_MAX_BYTES", 100)
    (tmp_path / "notes").write_bytes(content)

    assert read_baseline(UntrustedPath(tmp_path, "notes")) is None
    assert read_baseline(UntrustedPath(tmp_path, "nowhere")) is None
