"""Makes a server's state from a backup: the folder, and the database that it names."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pliant.control.upkeep.backup import FORMAT, HOME, MANIFEST, TABLES
from pliant.core.errors import Conflict, InvalidInput, Unavailable
from pliant.files.archive import unpack
from pliant.files.members import ArchiveLimits
from pliant.store.restore import restore

_LIMITS = ArchiveLimits(max_bytes=1 << 50, max_files=100_000_000, max_ratio=1100, hint="")
_SECRETS = ("token", "secret", "database")


def restore_backup(file: Path, home: Path, database: str | None) -> int:
    """Make the state folder from a backup and fill the database; return how many rows it holds.

    Raises:
        Conflict: the folder or the database is not empty.
        InvalidInput: the file is no backup, or is damaged.
        Unavailable: the disk or the database does not take it.
    """
    if home.exists() and any(home.iterdir()):
        raise Conflict(f"{home} is not empty; give a new folder with --home")
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent, prefix=f".{home.name}.") as folder:
            work = Path(folder)
            unpack(file, work, limits=_LIMITS, field=str(file))
            manifest = _manifest(work, file)
            files = work / HOME
            files.mkdir(exist_ok=True)
            url = database or f"sqlite:///{files / 'pliant.db'}"
            number = restore(url, manifest["revision"], _tables(work / TABLES, manifest, home))
            _protect(files)
            if home.exists():
                home.rmdir()
            files.replace(home)
            return number
    except OSError as error:
        raise Unavailable(f"{file} cannot be restored to {home}: {error.strerror or error}") from error


def _manifest(work: Path, file: Path) -> Mapping[str, Any]:
    try:
        manifest = json.loads((work / MANIFEST).read_text())
        known = manifest["format"] == FORMAT
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput.at(str(file), "it is no backup of Pliant; give a file that `pliant backup` wrote") from error
    if not known:
        raise InvalidInput.at(
            str(file), f"it is of format {manifest['format']!r}, this Pliant reads {FORMAT}; upgrade Pliant"
        )
    found: Mapping[str, Any] = manifest
    return found


def _tables(folder: Path, manifest: Mapping[str, Any], home: Path) -> dict[str, Iterator[bytes]]:
    """Return the lines of every table, after all were checked."""
    paths = {}
    for name, digest in manifest["tables"].items():
        path = folder / f"{Path(name).name}.jsonl"
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise InvalidInput.at(name, "the table is not as it was written; the backup is damaged")
        paths[name] = path
    old, new = _inside(manifest["home"]), _inside(str(home))
    return {name: _lines(path, old, new) for name, path in paths.items()}


def _lines(path: Path, old: bytes, new: bytes) -> Iterator[bytes]:
    """Yield the lines of a table, with paths into the old home leading into the new one."""
    with path.open("rb") as file:
        for line in file:
            yield line.replace(old, new)


def _inside(home: str) -> bytes:
    return json.dumps(f"{home}/")[1:-1].encode()


def _protect(home: Path) -> None:
    home.chmod(0o700)
    for name in _SECRETS:
        if (home / name).is_file():
            (home / name).chmod(0o600)
    shutil.rmtree(home / "uploads", ignore_errors=True)
