"""A copy of all that a server holds: the database as text, and the files of its home, as one tar.gz.

The database is copied first, as it is at one instant; every file that it speaks of was there before it. What jobs write
meanwhile may be newer. Left out is what belongs to this machine or can be made again: the agent's records of processes,
environments, unpacked algorithms and what they print, half uploads, logs of the server. What tasks can write to is
packed as that of strangers: links, pipes and the like are left out, and `left-out.txt` in the archive says so.
"""

import hashlib
import json
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from pliant import __version__
from pliant.core.ports import Clock
from pliant.core.upkeep import Dumps
from pliant.files.pack import TarGzip, add_file, walk
from pliant.files.space import translate_disk_errors
from pliant.files.untrusted.packing import LeftOut, PackedFolder, add_folder
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.walking import list_folder

FORMAT = 1
MANIFEST = "manifest.json"
TABLES = "tables"
HOME = "home"
_MADE_AGAIN = frozenset(
    {
        "address",
        "agent",
        "algorithm-runs",
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
_JOBS = "jobs"
_SUBMITTED = frozenset({"code", "submitted"})
_NOT_HERE = _MADE_AGAIN | {_JOBS}
"""Of the home; what tasks write to is packed apart."""


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
            archive, left_out = TarGzip(), LeftOut()
            for path, name in self._own_files(Path(tables), data=data):
                yield from add_file(archive, path, name)
            for place in self._job_folders(results=results):
                prefix = f"{HOME}/{_JOBS}/{place.root.name}/{place.name}/"
                yield from add_folder(archive, PackedFolder(folder=place, prefix=prefix), left_out)
            yield from left_out.add_to(archive)
            yield archive.end()

    def _own_files(self, tables: Path, *, data: bool) -> Iterator[tuple[Path, str]]:
        yield tables / MANIFEST, MANIFEST
        for path, name in walk(tables, frozenset({MANIFEST})):
            yield path, f"{TABLES}/{name}"
        for path, name in walk(self.home, _NOT_HERE if data else _NOT_HERE | _DATA):
            if not name.startswith("."):
                yield path, f"{HOME}/{name}"

    def _job_folders(self, *, results: bool) -> Iterator[UntrustedPath]:
        """Yield the folders of all jobs that their tasks write to, or of each only the code that was submitted."""
        for root in sorted((self.home / _JOBS).glob("[!.]*")):
            for name, facts in list_folder(UntrustedPath(root, "")):
                if stat.S_ISDIR(facts.st_mode) and not name.startswith(".") and (results or name in _SUBMITTED):
                    yield UntrustedPath(root, name)

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
