"""Fetches a job's results and unpacks them into a folder, which then holds all of them or does not exist.

The archive is not trusted: only plain files and folders below the target are made.
"""

import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import quote

from pliant.client.http.connection import Connection, Params
from pliant.core.errors import Conflict, InternalError

_TIMEOUT_S: Final = 300.0


def fetch_result(connection: Connection, job_id: str, to: Path, only: Sequence[str] = ()) -> Path:
    """Put the results of a job, or those that a pattern of `only` fits, into the folder `to` and return it.

    Raises:
        Conflict: `to` holds something already; nothing was changed.
        NotFound: no such job, or it has no results.
        InternalError: the archive is damaged, or holds what we do not unpack; nothing was changed.
    """
    return fetch_folder(connection, f"/jobs/{quote(job_id, safe='')}/result", to, {"only": list(only)})


def fetch_folder(connection: Connection, path: str, to: Path, params: Params | None = None) -> Path:
    """Put what the archive at a path of the API holds into the folder `to` and return it.

    Raises:
        Conflict, NotFound, InternalError: as for `fetch_result`.
    """
    _check_free(to)
    to.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{to.name}.", dir=to.parent))
    try:
        archive, folder = work / "result.tar.gz", work / "result"
        with (
            archive.open("wb") as out,
            connection.stream(path, params or {}, timeout_s=_TIMEOUT_S) as chunks,
        ):
            out.writelines(chunks)
        folder.mkdir()
        unpack(archive, folder)
        _check_free(to)
        os.replace(folder, to)
    finally:
        shutil.rmtree(work)
    return to


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar.gz into an empty folder.

    Raises:
        InternalError: it is damaged, or a member is a link, a device or leads outside.
    """
    try:
        with tarfile.open(archive, mode="r:gz") as tar:
            for member in tar:
                _check_member(member)
                _extract(tar, member, folder)
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise InternalError(f"the archive of results could not be unpacked ({error}); fetch it again") from error


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Write a checked member's content; nothing else of it is used (no owner, mode or time)."""
    path = folder / member.name
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        return
    content = tar.extractfile(member)
    assert content is not None, "a regular file has content"
    path.parent.mkdir(parents=True, exist_ok=True)
    with content, path.open("xb") as file:
        shutil.copyfileobj(content, file)


def _check_member(member: tarfile.TarInfo) -> None:
    path = PurePosixPath(member.name)
    if not (member.isreg() or member.isdir()):
        raise InternalError(f"the archive of results holds {member.name!r}, which is a link or a device; not unpacked")
    if path.is_absolute() or ".." in path.parts:
        raise InternalError(f"the archive of results holds {member.name!r}, which leads outside; not unpacked")


def _check_free(to: Path) -> None:
    if to.is_symlink() or (to.exists() and not to.is_dir()):
        raise Conflict(f"{str(to)!r} is there already and is no folder; give another name")
    if to.is_dir() and any(to.iterdir()):
        raise Conflict(f"the folder {str(to)!r} is not empty; give another one, or empty it first")
