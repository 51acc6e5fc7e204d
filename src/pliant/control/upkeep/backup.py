"""A copy of all that a server holds: the database as text, and the files of its home, as one tar.gz.

The database is copied first, as it is at one instant; every file that it speaks of was there before it. What jobs write
meanwhile may be newer. Left out is what belongs to this machine or can be made again: the agent's records of processes,
environments, half uploads, logs of the server.
"""

import hashlib
import json
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from pliant import __version__
from pliant.core.ports import Clock
from pliant.core.upkeep import Dumps
from pliant.files.pack import pack_files, walk
from pliant.files.space import translate_disk_errors

FORMAT = 1
MANIFEST = "manifest.json"
TABLES = "tables"
HOME = "home"
_MADE_AGAIN = frozenset(
    {
        "address",
        "agent",
        "environments",
        "lock",
        "server.json",
        "server.log",
        "uploads",
        "pliant.db",
        "pliant.db-wal",
        "pliant.db-shm",
    }
)
_DATA = frozenset({"data", "datasets"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """Makes copies of one server."""

    dumps: Dumps
    home: Path
    clock: Clock

    def __call__(self, *, results: bool, data: bool) -> Iterator[bytes]:
        """Return a tar.gz, made while it is read, but for the database, which is copied before this returns.

        Args:
            results: also what jobs wrote.
            data: also the data sets.

        Raises:
            NoSpace: the disk is full.
            Unavailable: the database does not answer, or the disk cannot be written.
        """
        with translate_disk_errors(self.home), ExitStack() as stack:
            folder = tempfile.TemporaryDirectory(dir=self.home, prefix=".backup-")
            stack.callback(folder.cleanup)
            self._dump(Path(folder.name))
            stack.pop_all()
        return self._pack(folder, results=results, data=data)

    def _pack(self, folder: "tempfile.TemporaryDirectory[str]", *, results: bool, data: bool) -> Iterator[bytes]:
        with folder as tables:
            yield from pack_files(self._files(Path(tables), results=results, data=data))

    def _files(self, tables: Path, *, results: bool, data: bool) -> Iterator[tuple[Path, str]]:
        yield tables / MANIFEST, MANIFEST
        for path, name in walk(tables, frozenset({MANIFEST})):
            yield path, f"{TABLES}/{name}"
        for path, name in walk(self.home, _MADE_AGAIN if data else _MADE_AGAIN | _DATA):
            if not name.startswith(".") and (results or not _is_result(name)):
                yield path, f"{HOME}/{name}"

    def _dump(self, folder: Path) -> None:
        digests = {}
        with closing(self.dumps.dump()) as tables:
            for name, lines in tables:
                digest = hashlib.sha256()
                with (folder / f"{name}.jsonl").open("wb") as file:
                    for line in lines:
                        digest.update(line)
                        file.write(line)
                digests[name] = digest.hexdigest()
        manifest = {
            "format": FORMAT,
            "version": __version__,
            "revision": self.dumps.revision,
            "made_at": self.clock.now(),
            "home": str(self.home),
            "tables": digests,
        }
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=2))


def _is_result(name: str) -> bool:
    """Tell whether a file is below `jobs/JOB/`, but not the code that was submitted."""
    parts = name.split("/")
    return len(parts) > 3 and parts[0] == "jobs" and parts[2] != "code"
