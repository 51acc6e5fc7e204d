"""The files of templates: a folder for every revision that brought code, whole or absent. It knows names, no nouns."""

import ast
import re
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from pliant.core.errors import Problem
from pliant.files import folder as folders
from pliant.files.archive import unpack
from pliant.files.digest import digest_of_file, digest_of_names
from pliant.files.pack import walk
from pliant.files.space import translate_disk_errors

ELASTIC_FILE: Final = "elastic-main.py"
"""What IBM's templates call the file that the engine `elastic` runs, beside `main.py`."""
_DRAFT: Final = ".new-"
"""Folders that are being checked begin with this; no template's name does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeSummary:
    """What a folder holds."""

    checksum: str
    """SHA-256 over the names and digests of its files, in hex."""
    num_files: int
    num_bytes: int


class CodeFolders:
    """The folders below one root."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def path(self, name: str) -> Path:
        """Return a folder."""
        return self._root / name

    @contextmanager
    def draft(self, archive: Path, check: Callable[[Path], object]) -> Iterator[tuple[Path, CodeSummary]]:
        """Unpack an archive beside the folders and yield it; moved away, or removed after.

        Args:
            check: called with the folder; raises `InvalidInput` if its files cannot be run.

        Raises:
            InvalidInput: with everything that is wrong with it.
            TooLarge: it unpacks to more than is allowed.
            Unavailable: the disk cannot take it.
        """
        with translate_disk_errors(self._root):
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = Path(tempfile.mkdtemp(prefix=_DRAFT, dir=self._root))
        try:
            with translate_disk_errors(self._root):
                unpack(archive, draft)
            check(draft)
            yield draft, summarize_code(draft)
        finally:
            folders.remove(draft)

    def keep(self, draft: Path, name: str) -> None:
        """Move a draft to its place, where nothing can be that anybody uses.

        Raises:
            Unavailable: the disk does not do it.
        """
        with translate_disk_errors(self._root):
            folders.remove(self.path(name))
            folders.publish(draft, self.path(name))

    def sweep(self, template: str, used: Collection[str]) -> None:
        """Remove the folders of a template that nobody uses any more."""
        for path in self._root.glob(f"{template}-*"):
            if re.fullmatch(re.escape(template) + r"-\d+", path.name) and path.name not in used:
                folders.remove(path)

    def clean(self) -> None:
        """Remove what a server that was killed has left of drafts."""
        for path in self._root.glob(f"{_DRAFT}*"):
            folders.remove(path)


def folder_name(template: str, revision: int) -> str:
    """Return the folder of the code that a revision of a template brought."""
    return f"{template}-{revision}"


def summarize_code(folder: Path) -> CodeSummary:
    """Return what a folder holds."""
    files = list(walk(folder))
    return CodeSummary(
        checksum=digest_of_names((name, digest_of_file(path)) for path, name in files),
        num_files=len(files),
        num_bytes=sum(path.stat().st_size for path, _ in files),
    )


def find_elastic_file(folder: Path, named: str | None) -> str:
    """Return the file of a folder that the engine `elastic` runs; empty if it runs the main file."""
    return named or (ELASTIC_FILE if (folder / ELASTIC_FILE).is_file() else "")


def problem_of_file(folder: Path, name: str, field: str) -> Problem | None:
    """Return why a file of a template cannot be run: it is not there, or is no Python; None if it can."""
    path = PurePosixPath(name)
    inside = not path.is_absolute() and ".." not in path.parts
    if not (inside and (folder / path).is_file()):
        there = ", ".join(sorted(file.name for file in folder.glob("*.py"))[:8]) or "no Python file at its top"
        message = f"{name!r:.200} is not in the folder, which has {there}; name one that is"
        return Problem(field=field, message=message)
    try:
        ast.parse((folder / path).read_bytes(), filename=name)
    except SyntaxError as error:
        message = f"{name!r:.200} does not parse: line {error.lineno}: {error.msg}; mend it"
        return Problem(field=field, message=message)
    except (ValueError, RecursionError, MemoryError) as error:
        message = f"{name!r:.200} does not parse ({type(error).__name__}: {error}); mend it"
        return Problem(field=field, message=message)
    return None
