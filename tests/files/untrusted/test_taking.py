"""A file of ours gets into somebody else's folder as theirs, and through no link."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest
from tests.hostile import PLANTS

from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.taking import place_file

NAME = "step-000000000200.ckpt"


def writes(content: bytes) -> Callable[[BinaryIO], None]:
    def write(file: BinaryIO) -> None:
        file.write(content)

    return write


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "job" / "result").mkdir(parents=True)
    return tmp_path / "job"


def place(root: Path, content: bytes = b"state") -> None:
    place_file(UntrustedPath(root, f"result/checkpoint/{NAME}"), writes(content))


def test_the_file_is_there_and_nothing_else_and_takes_the_place_of_another(root: Path) -> None:
    place(root)
    place(root, b"newer")
    assert (root / "result" / "checkpoint" / NAME).read_bytes() == b"newer"
    assert [entry.name for entry in root.iterdir()] == ["result"]


def test_it_belongs_to_whom_the_folder_belongs_to(root: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    os.chown(root / "result", 65534, 65534)
    place(root)
    for path in (root / "result" / "checkpoint", root / "result" / "checkpoint" / NAME):
        assert (path.stat().st_uid, path.stat().st_gid) == (65534, 65534)


def test_what_cannot_be_written_to_its_end_is_not_there(root: Path) -> None:
    def fail(file: BinaryIO) -> None:
        file.write(b"half")
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        place_file(UntrustedPath(root, f"result/{NAME}"), fail)
    assert list((root / "result").iterdir()) == []
    assert [entry.name for entry in root.iterdir()] == ["result"]


@pytest.mark.parametrize("folder", ["result", "result/checkpoint"])
def test_no_folder_is_followed(root: Path, tmp_path: Path, folder: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if (root / folder).exists():
        (root / folder).rmdir()
    (root / folder).symlink_to(elsewhere)
    with pytest.raises(OSError, match=r"."):
        place(root)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("plant", [name for name in PLANTS if name != "folder"])
@pytest.mark.timeout(20)
def test_what_has_its_name_is_replaced_and_not_written_to(root: Path, tmp_path: Path, plant: str) -> None:
    secret = tmp_path / "token"
    secret.write_bytes(b"secret")
    (root / "result" / "checkpoint").mkdir()
    PLANTS[plant](root / "result" / "checkpoint" / NAME, secret)

    place(root)

    path = root / "result" / "checkpoint" / NAME
    assert not path.is_symlink()
    assert path.read_bytes() == b"state"
    assert secret.read_bytes() == b"secret"
