"""Which files of this machine somebody may name by their whole paths, and whether they are there.

Those in the folders of jobs that they see, in folders that were opened to all, and what every user of the operating
system can read; who sees all jobs runs the server, and may name anything. Of everything else the answer is the same
whether it is there or not.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pliant.files.public import is_public
from pliant.files.untrusted.opening import is_file
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.walking import is_folder, list_folder

_CHECKPOINT: Final = re.compile(r"step-[0-9]+\.ckpt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What somebody may name."""

    jobs: Path
    """The folder that holds those of jobs."""
    sees: Callable[[str], bool]
    """Tells whether there is such a job and they see it."""
    sees_all: bool = False
    """They run the server."""
    open_folders: tuple[Path, ...] = ()
    awaited: frozenset[str] = frozenset()
    """Jobs and arrays whose end is waited for: files that jobs write there will be looked for only then."""

    def is_to_come(self, path: str) -> bool:
        """Tell whether a path lies in the folder of a job that they see and whose end is waited for."""
        match self._find(path):
            case UntrustedPath() as place:
                return place.root.name in self.awaited
        return False

    def has_file(self, path: str) -> bool:
        """Tell whether they may name a plain file, and it is there."""
        match self._find(path):
            case UntrustedPath() as place:
                return is_file(place)
            case Path() as place:
                return place.is_file()
        return is_public(path) if os.path.isabs(path) else False

    def has_program(self, path: str) -> bool:
        """Tell whether they may name a program, and it is there."""
        match self._find(path):
            case UntrustedPath() as place:
                return is_file(place)
            case Path() as place:
                return place.is_file() and os.access(place, os.X_OK)
        return is_public(path, program=True) if os.path.isabs(path) else False

    def has_folder(self, path: str) -> bool:
        """Tell whether they may name a folder, and it is there."""
        match self._find(path):
            case UntrustedPath() as place:
                return is_folder(place)
            case Path() as place:
                return place.is_dir()
        return is_public(path, folder=True) if os.path.isabs(path) else False

    def has_checkpoint(self, folder: str) -> bool:
        """Tell whether they may name a folder, and a checkpoint is in it."""
        match self._find(folder):
            case UntrustedPath() as place:
                names = [name for name, _ in list_folder(place)]
            case Path() as place:
                names = os.listdir(place) if place.is_dir() else []
            case _:
                names = os.listdir(folder) if os.path.isabs(folder) and is_public(folder, folder=True) else []
        return any(_CHECKPOINT.fullmatch(name) for name in names)

    def _find(self, path: str) -> UntrustedPath | Path | None:
        """Return a path that they may name, there or not; None if it has to be one that everybody can read.

        In the folder of a job it is untrusted, so that a link there leads to nothing.
        """
        if "\0" in path or not os.path.isabs(path):
            return None
        for whole in (os.path.normpath(path), os.path.realpath(path)):
            for jobs in (self.jobs, self.jobs.resolve()):
                if whole != str(jobs) and Path(whole).is_relative_to(jobs):
                    job, _, inside = os.path.relpath(whole, jobs).partition(os.sep)
                    return UntrustedPath(jobs / job, inside) if inside and self.sees(job) else None
        real = Path(os.path.realpath(path))
        home = self.jobs.parent.resolve()
        opened = (folder.resolve() for folder in self.open_folders if real.is_relative_to(folder.resolve()))
        if real.is_relative_to(home):  # it holds secrets, which no task of anybody is given
            return Path(path) if any(folder.is_relative_to(home) for folder in opened) else None
        return Path(path) if self.sees_all or any(opened) else None
