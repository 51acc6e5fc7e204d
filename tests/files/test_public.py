"""What every user of the machine can read is told from what the server alone can."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pliant.files.public import is_public


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that others reach; pytest's own are closed to them."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        (Path(name) / "file").write_text("")
        (Path(name) / "file").chmod(0o644)
        yield Path(name)


def test_the_modes_of_a_file_and_of_all_folders_above_count(folder: Path) -> None:
    file = str(folder / "file")
    assert is_public(file)
    assert is_public(str(folder), folder=True)
    assert not is_public(file, program=True)
    os.chmod(file, 0o755)
    assert is_public(file, program=True)
    os.chmod(file, 0o640)
    assert not is_public(file)
    os.chmod(file, 0o644)
    folder.chmod(0o750)
    assert not is_public(file)
    assert not is_public(str(folder), folder=True)


def test_only_the_kind_that_is_asked_for_is_public(folder: Path) -> None:
    assert not is_public(str(folder))
    assert not is_public(str(folder / "file"), folder=True)
    assert not is_public(str(folder / "none"))
    assert not is_public("/dev/zero")
    assert not is_public("\0")


def test_a_link_is_what_it_leads_to(folder: Path) -> None:
    (folder / "closed").mkdir()
    (folder / "closed" / "file").write_text("")
    (folder / "closed" / "file").chmod(0o644)
    (folder / "link").symlink_to(folder / "closed" / "file")
    assert is_public(str(folder / "link"))
    (folder / "closed").chmod(0o700)
    assert not is_public(str(folder / "link"))
    (folder / "ring").symlink_to("ring")
    assert not is_public(str(folder / "ring"))
