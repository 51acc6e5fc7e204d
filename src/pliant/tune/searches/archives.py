"""The code of searches: each archive is kept once, under its SHA-256, as long as a search has trials of it."""

from collections.abc import Collection
from pathlib import Path

from pliant.files.content_store import CODE, ContentStore


class SearchArchives:
    """The archives below one folder."""

    def __init__(self, root: Path) -> None:
        self._contents = ContentStore(root)

    def path(self, checksum: str) -> Path:
        """Return where an archive is kept."""
        return self._contents.path(checksum, CODE)

    def keep(self, archive: Path) -> str:
        """Keep an archive, and return its SHA-256 in hex.

        Raises:
            Unavailable: the disk cannot take it.
        """
        return self._contents.keep(archive, CODE)

    def remove(self, checksum: str) -> None:
        """Remove an archive that no search needs any more."""
        self._contents.remove([self.path(checksum).name])

    def sweep(self, used: Collection[str]) -> None:
        """Remove all archives but those of these checksums, and what a killed server has left."""
        self._contents.sweep([self.path(checksum).name for checksum in used])
