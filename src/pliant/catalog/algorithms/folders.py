"""The code of algorithms: each archive is kept once, under its SHA-256, and beside it what was unpacked from it.

Unpacked code is read by processes that run as who has installed it, and is the server's: they cannot change it. It can
be made again from its archive at any time, so a backup leaves it out. It knows checksums, no nouns.
"""

import os
import tempfile
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pliant.core.algorithm import ENTRY_FILES, AlgorithmKind
from pliant.core.errors import InvalidInput, NotFound
from pliant.files import folder as folders
from pliant.files.archive import unpack
from pliant.files.content_store import CODE, ContentStore
from pliant.files.members import ArchiveLimits
from pliant.files.space import check_room, translate_disk_errors

LIMITS: Final = ArchiveLimits(max_bytes=256 << 20, max_files=5_000)
_DRAFT: Final = ".new-"
_PASS_THROUGH: Final = 0o711
"""Of the folder above: who knows a checksum gets to that code, and nobody sees which others there are."""
_MAX_NAMED: Final = 8


class AlgorithmFolders:
    """The archives below one folder, and what was unpacked of them below another. Safe to call from any thread."""

    def __init__(self, archives: Path, code: Path) -> None:
        self._contents = ContentStore(archives)
        self._code = code
        self._lock = threading.Lock()

    @contextmanager
    def draft(self, archive: Path) -> Iterator[Path]:
        """Unpack an archive, yield its folder, and remove it again.

        Raises:
            InvalidInput: it is none, or holds links or what does not lie below it.
            TooLarge: it unpacks to more than is allowed.
            Unavailable: the disk cannot take it.
        """
        with translate_disk_errors(self._code):
            self._open_root()
            draft = Path(tempfile.mkdtemp(prefix=_DRAFT, dir=self._code))
        try:
            with translate_disk_errors(self._code):
                unpack(archive, draft, limits=LIMITS, check_room=lambda num_bytes: check_room(self._code, num_bytes))
                folders.make_read_only(draft)
            yield draft
        finally:
            folders.remove(draft)

    def keep(self, archive: Path) -> str:
        """Keep an archive, and return its SHA-256 in hex.

        Raises:
            Unavailable: the disk cannot take it.
        """
        return self._contents.keep(archive, CODE)

    def unpacked(self, checksum: str) -> Path:
        """Return the folder of what an archive holds; unpacked now if it is not there.

        Raises:
            NotFound: the archive is gone.
            Unavailable: the disk cannot take it.
        """
        folder, archive = self._code / checksum, self._contents.path(checksum, CODE)
        with self._lock:
            if folder.is_dir():
                return top_of(folder)
            if not archive.is_file():
                raise NotFound("its code is not there any more; install it again, and begin another search")
            with self.draft(archive) as draft, translate_disk_errors(self._code):
                folders.publish(draft, folder)
                folder.chmod(folders.READ_ONLY_FOLDER)
        return top_of(folder)

    def sweep(self, used: Collection[str]) -> None:
        """Remove all but these checksums, and what a killed server has left; call while nobody installs."""
        self._contents.sweep([self._contents.path(checksum, CODE).name for checksum in used])
        if self._code.is_dir():
            for path in self._code.iterdir():
                if path.name not in used:
                    folders.remove(path)

    def remove(self, checksum: str) -> None:
        """Remove an archive and what was unpacked of it."""
        with self._lock:
            self._contents.remove([self._contents.path(checksum, CODE).name])
            folders.remove(self._code / checksum)

    def _open_root(self) -> None:
        self._code.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._code.chmod(_PASS_THROUGH)


def top_of(folder: Path) -> Path:
    """Return where in a folder the code lies: in it, or in the one folder that is all it holds."""
    found = list(folder.iterdir())
    return found[0] if len(found) == 1 and found[0].is_dir() else folder


def kind_of_code(folder: Path) -> AlgorithmKind:
    """Return of which kind the code is whose top is this folder.

    Raises:
        InvalidInput: nothing says so, or it is of two kinds.
    """
    kinds = [kind for kind, name in ENTRY_FILES.items() if (folder / name).is_file()]
    if len(kinds) == 1:
        return kinds[0]
    if kinds:
        message = f"both {' and '.join(ENTRY_FILES.values())} are at its top, and only one can be; leave the other out"
    else:
        there = sorted(os.listdir(folder))
        named = ", ".join(map(repr, there[:_MAX_NAMED])) + (", …" if len(there) > _MAX_NAMED else "")
        message = (
            f"at its top is neither optimizer.py (an algorithm of IBM's form) nor sampler.py (a sampler of Optuna's), "
            f"but {named or 'nothing'}; add one of the two"
        )
    raise InvalidInput.at("code", message)
