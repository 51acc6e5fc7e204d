"""The folders of jobs on a node, and which of them are removed."""

import threading
from pathlib import Path

import pytest
from tests.contracts.process_stage import until

from pliant.cluster.agent import shared_memory
from pliant.cluster.agent.space import Spaces
from pliant.files.untrusted import removal
from pliant.files.untrusted.path import UntrustedPath


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

    monkeypatch.setattr(shared_memory, "remove", start_and_remove)

    spaces.retain([])

    until(lambda: all(thread.name != "pliant-removal" for thread in threading.enumerate()), "all is removed")
    assert [folder for folder in over.folders if Path(folder).exists()] == []
    assert [folder for folder in new.folders if not Path(folder).exists()] == []
    spaces.close()
