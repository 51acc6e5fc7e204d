"""The folders of jobs on a node, and which of them are removed."""

import threading
from pathlib import Path

import pytest
from tests.contracts.process_stage import until

from pliant.cluster.agent import space
from pliant.cluster.agent.space import Spaces
from pliant.files.untrusted import removal
from pliant.files.untrusted.path import UntrustedPath


def test_folders_of_jobs_that_are_over_are_removed(tmp_path: Path) -> None:
    spaces = Spaces(tmp_path, tmp_path / "shared")
    held = {name: spaces.of(name) for name in ("job-1", "job-2", "job-3")}
    for one in held.values():
        spaces.make(one)

    spaces.retain(["job-2", "job-4"])

    until_removed()
    assert {name for name, one in held.items() for folder in one.folders if Path(folder).exists()} == {"job-2"}
    assert [folder for folder in held["job-2"].folders if not Path(folder).exists()] == []
    spaces.close()


def test_a_job_that_starts_while_others_are_removed_keeps_its_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spaces = Spaces(tmp_path, tmp_path / "shared")
    over, new = spaces.of("job-1"), spaces.of("job-2")
    spaces.make(over)
    remove = removal.remove

    def start_and_remove(path: UntrustedPath) -> None:
        spaces.make(new)
        remove(path)

    monkeypatch.setattr(space, "remove", start_and_remove)

    spaces.retain([])

    until_removed()
    assert [folder for folder in over.folders if Path(folder).exists()] == []
    assert [folder for folder in new.folders if not Path(folder).exists()] == []
    spaces.close()


def until_removed() -> None:
    until(lambda: all(thread.name != "pliant-removal" for thread in threading.enumerate()), "all is removed")
