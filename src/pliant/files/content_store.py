"""Content-addressed files: the code that trainings ran and the weights that they started from, under their SHA-256.

A file is whole or absent, never changes, and is kept once however often it is asked for. It knows no nouns.
"""

import os
import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from pliant.files.digest import digest_of_file
from pliant.files.space import check_room, translate_disk_errors
from pliant.files.untrusted.opening import OpenFile, copy

CODE: Final = ".tar.gz"
WEIGHTS: Final = ".pt"
_DRAFT: Final = ".new-"
_CHUNK: Final = 1 << 20


class ContentStore:
    """The files of one folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def path(self, digest: str, kind: str) -> Path:
        """Return where a file is, or would be."""
        return self._root / f"{digest}{kind}"

    def write(self, digest: str, kind: str, content: Iterable[bytes]) -> None:
        """Keep a file under the digest of what is in it.

        Raises:
            Unavailable: the disk cannot take it.
        """
        to = self.path(digest, kind)
        if to.is_file():
            return
        with translate_disk_errors(self._root):
            draft = self._draft()
            try:
                with draft.open("wb") as out:
                    out.writelines(content)
                draft.replace(to)
            finally:
                draft.unlink(missing_ok=True)

    def keep(self, file: Path, kind: str) -> str:
        """Keep a file that nobody changes, and return its SHA-256 in hex.

        Raises:
            Unavailable: the disk cannot take it.
        """
        digest = digest_of_file(file)
        with file.open("rb") as content:
            self.write(digest, kind, iter(lambda: content.read(_CHUNK), b""))
        return digest

    def copy_in(self, source: OpenFile, kind: str) -> str:
        """Keep a file as it is now, and return its SHA-256 in hex.

        What becomes of `source` does not matter later: it is copied, and the copy is what the digest is of.

        Raises:
            NoSpace, Unavailable: it cannot be read, or the disk cannot take it.
        """
        with translate_disk_errors(self._root):
            draft = self._draft()
            try:
                check_room(self._root, source.num_bytes)
                with draft.open("wb") as out:
                    copy(source, out, max_bytes=source.num_bytes)
                digest = digest_of_file(draft)
                draft.replace(self.path(digest, kind))
            finally:
                draft.unlink(missing_ok=True)
        return digest

    def remove(self, names: Collection[str]) -> None:
        """Remove files by their names; those that are not there are fine."""
        for name in names:
            (self._root / name).unlink(missing_ok=True)

    def sweep(self, used: Collection[str]) -> None:
        """Remove all files but those of these names, and what a server that was killed has left of others."""
        if self._root.is_dir():
            for path in self._root.iterdir():
                if path.name not in used:
                    path.unlink(missing_ok=True)

    def _draft(self) -> Path:
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=_DRAFT, dir=self._root)
        os.close(descriptor)
        return Path(name)
