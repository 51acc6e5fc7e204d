"""Which files of a job are copied to an object store: its results, its checkpoints, and what it is begun from.

Not its `state/`, nor what trainings of a population keep at the ends of epochs.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from pliant.control.settings import JobFolders
from pliant.control.upkeep.results import sources
from pliant.core.copies import FilesToCopy, FileToCopy
from pliant.files.untrusted.names import unescape
from pliant.files.untrusted.opening import open_folder
from pliant.files.untrusted.packing import PackedFolder, list_files
from pliant.files.untrusted.path import UntrustedPath

MAX_FILES: Final = 20_000
MAX_HOLE_BYTES: Final = 1 << 30
"""Of all files of a job together: holes are sent as zeros, and cost their owner nothing."""
_MAX_LEFT_OUT: Final = 100


def files_to_copy(root: Path) -> FilesToCopy:
    """Return what of the folder of a job is copied.

    Raises:
        OSError: it is not there, or its results cannot be opened.
    """
    folders = JobFolders(root=root)
    with open_folder(folders.result):  # or what cannot be opened would be taken for what is not there
        found = _Found()
    for source in _begun_from(folders):
        found.add(source, is_urgent=True)
    result, *work = sources(folders)
    found.add(replace(result, prefix="result/"))
    for source in work:
        found.add(replace(source, prefix="code/"))
    return found.all()


def _begun_from(folders: JobFolders) -> Iterator[PackedFolder]:
    yield PackedFolder(folder=folders.submitted, prefix="submitted/")
    yield PackedFolder(folder=UntrustedPath(folders.root, "origin"), prefix="origin/")
    yield PackedFolder(folder=folders.checkpoints, prefix="result/checkpoint/", ignore=_is_no_checkpoint)


def _is_no_checkpoint(name: str, is_folder: bool) -> bool:
    return is_folder or not (name.startswith("step-") and name.endswith(".ckpt"))


class _Found:
    """What is found of one job, within bounds."""

    def __init__(self) -> None:
        self._files: list[FileToCopy] = []
        self._left_out: dict[str, str] = {}
        self._is_whole = True
        self._hole_bytes = 0

    def add(self, source: PackedFolder, *, is_urgent: bool = False) -> None:
        """Add what lies in a folder, or note why it is left out."""
        for packed, facts in list_files(source, self._leave_out):
            name = unescape(packed)
            if name is None or (why := self._too_much(facts)):
                self._leave_out(packed, why if name is not None else "its name cannot be read")
                continue
            mark = (facts.st_size, round(facts.st_mtime * 1e9), facts.st_ino)
            self._files.append(FileToCopy(name=name, mark=mark, is_urgent=is_urgent))

    def all(self) -> FilesToCopy:
        """Return all of it."""
        return FilesToCopy(files=tuple(self._files), left_out=self._left_out, is_whole=self._is_whole)

    def _leave_out(self, name: str, why: str) -> None:
        if len(self._left_out) < _MAX_LEFT_OUT:
            self._left_out[name.removesuffix("/.")] = why
        else:
            self._is_whole = False

    def _too_much(self, facts: os.stat_result) -> str:
        if len(self._files) >= MAX_FILES:
            self._is_whole = False
            return f"the job has more than {MAX_FILES:,} files"
        self._hole_bytes += max(0, facts.st_size - facts.st_blocks * 512)
        return "there are too many holes in files before it" if self._hole_bytes > MAX_HOLE_BYTES else ""
