"""Child processes without walls, for tests that are about something else."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from pliant.catalog.children.child import ChildProgram
from pliant.catalog.children.reach import ChildReach, ChildUser


class Unconfined:
    """A `ChildIsolation` that lets everything through."""

    def confine(self, program: ChildProgram, reach: ChildReach) -> ChildProgram:
        """Return the program as it is, with this process's variables."""
        return replace(program, env={**os.environ, **(program.env or {})})

    def make_folder(self, folder: Path, user: ChildUser, files: Mapping[str, bytes] = MappingProxyType({})) -> None:
        """Make a folder with these files in it."""
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
