"""What a process within walls may open and write, whatever it asks for."""

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pliant.core.confinement import Confinement
from pliant.isolation.launcher import confined

LOOK = """
import json, os, resource, signal, sys
def tried(act):
    try:
        act()
    except (OSError, ValueError) as error:
        return type(error).__name__
    return "done"
def write():
    with open(sys.argv[1] + "/file", "wb") as file:
        file.truncate(2 << 20)
def raise_again():
    resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 20, 1 << 20))
print(json.dumps({
    "open files": resource.getrlimit(resource.RLIMIT_NOFILE),
    "length": resource.getrlimit(resource.RLIMIT_FSIZE),
    "core": resource.getrlimit(resource.RLIMIT_CORE),
    "write": tried(write),
    "raise": tried(raise_again),
}))
"""


def seen(folder: Path, *, max_file_bytes: int | None = None, num_files: tuple[int, int] | None = None) -> Any:
    """Return what a process in a confinement found; it began with these limits of open files."""
    confinement = Confinement(writes=(str(folder),), max_file_bytes=max_file_bytes)
    command = confined([sys.executable, "-I", "-c", LOOK, str(folder)], confinement)

    def begin() -> None:
        if num_files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, num_files)

    said = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=begin)
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)


def test_it_opens_65536_files_at_most_and_as_many_as_before_if_that_is_less(tmp_path: Path) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == resource.RLIM_INFINITY or hard > 65_536:
        assert seen(tmp_path)["open files"][1] == 65_536
    assert seen(tmp_path, num_files=(512, 2048))["open files"] == [512, 2048]
    assert seen(tmp_path)["raise"] in ("ValueError", "PermissionError")


@pytest.mark.parametrize(("limit", "outcome"), [(1 << 20, "OSError"), (4 << 20, "done"), (None, "done")])
def test_no_file_is_longer_than_it_may_be(tmp_path: Path, limit: int | None, outcome: str) -> None:
    tmp_path.chmod(0o777)
    found = seen(tmp_path, max_file_bytes=limit)

    assert found["write"] == outcome
    assert found["core"] == [0, 0]
    if limit is not None:
        assert found["length"] == [limit, limit]
