"""Brings back from the store what the disk has lost: whole folders of jobs, or a checkpoint that is newer.

Every file is checked against the digest in the list. A folder is put together where only we are, and gets its name when
all of it is there; its code is unpacked from what was submitted, and what the job wrote into it is laid over that. Who
the files belong to is settled when the job's first task starts, as after a submission.
"""

import hashlib
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Final

from pliant.core.errors import PliantError
from pliant.files.archive import MODEL_LIMITS, unpack
from pliant.files.space import check_room
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.removal import remove
from pliant.files.untrusted.taking import place_file
from pliant.files.untrusted.walking import list_folder
from pliant.objects.job_copies import folder_of, read_manifest
from pliant.objects.manifest import Manifest, StoredFile, step_of
from pliant.objects.store import ObjectStore, StoreAway

DRAFT: Final = ".new-back-"
"""Folders begin with this until all of them is there; a server that starts removes what a crash leaves (`.new-`)."""
MARK: Final = "copied"
"""A file in the folder of a job, ours: where all of it was copied to."""
_ARCHIVE: Final = "submitted/archive"
_FOLDERS: Final = ("result/model", "result/log", "state", "code")
_JOB: Final = re.compile(r"job-[0-9]+")


class NotBrought(Exception):
    """Something cannot be brought back, though the store answers. Its message says why."""


def bring_back(store: ObjectStore, jobs: Path, job_id: str) -> str:
    """Bring back what the disk lacks of a job; return what that is, in words, empty if it lacks nothing.

    Raises:
        StoreAway: the store does not answer.
        NotBrought: what it holds cannot be brought back, or is not enough.
    """
    if not _JOB.fullmatch(job_id):
        raise NotBrought(f"{job_id!r:.40} is no job")
    manifest = read_manifest(store, job_id)
    root = jobs / job_id
    try:
        if not root.is_dir():
            if manifest is None:
                raise NotBrought("neither the disk nor the store has files of it")
            _bring_folder(store, manifest, root)
            return _words(manifest)
        if manifest is None or manifest.step is None or manifest.step <= _newest_step(root):
            return ""
        (name,) = (name for name in manifest.files if step_of(name) == manifest.step)
        return _bring_checkpoint(store, manifest, UntrustedPath(root, name))
    except StoreAway:
        raise
    except (OSError, PliantError, ValueError) as error:
        raise NotBrought(getattr(error, "strerror", None) or str(error)) from error


def _bring_folder(store: ObjectStore, manifest: Manifest, root: Path) -> None:
    if _ARCHIVE not in manifest.files:
        raise NotBrought("its code is not in the store")
    check_room(root.parent, sum(file.num_bytes for file in manifest.files.values()))
    draft = Path(tempfile.mkdtemp(prefix=DRAFT, dir=root.parent))
    try:
        for folder in _FOLDERS:
            (draft / folder).mkdir(parents=True)
        names = sorted(manifest.files)
        _bring_files(store, manifest, draft, (name for name in names if not name.startswith("code/")))
        unpack(draft / _ARCHIVE, draft / "code", limits=MODEL_LIMITS)
        _bring_files(store, manifest, draft, (name for name in names if name.startswith("code/")))
        if manifest.is_final:
            (draft / MARK).write_text(store.url)
        draft.rename(root)
    except BaseException:
        remove(UntrustedPath(draft.parent, draft.name))
        raise


def _bring_files(store: ObjectStore, manifest: Manifest, draft: Path, names: Iterable[str]) -> None:
    whole = draft.resolve()
    for name in names:
        target = draft / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.parent.resolve().is_relative_to(whole):
            raise NotBrought(f"{name!r:.100} leads out of its folder")
        target.unlink(missing_ok=True)
        with target.open("xb") as file:
            _fetch(store, manifest.job_id, manifest.files[name], file)


def _bring_checkpoint(store: ObjectStore, manifest: Manifest, path: UntrustedPath) -> str:
    stored = manifest.files[path.inside]
    check_room(path.root, stored.num_bytes)
    place_file(path, lambda file: _fetch(store, manifest.job_id, stored, file))
    return f"its checkpoint of step {manifest.step}"


def _fetch(store: ObjectStore, job_id: str, stored: StoredFile, into: BinaryIO) -> None:
    digest, num_bytes = hashlib.sha256(), 0
    for piece in store.read(f"{folder_of(job_id)}/{stored.key}", stored.num_bytes):
        digest.update(piece)
        num_bytes += len(piece)
        into.write(piece)
    if (num_bytes, digest.hexdigest()) != (stored.num_bytes, stored.sha256):
        raise NotBrought(f"{stored.key!r:.100} in the store is not what was copied: its digest is another")


def _newest_step(root: Path) -> int:
    """Return the step of the newest checkpoint on the disk; -1 if there is none."""
    names = (f"result/checkpoint/{name}" for name, _ in list_folder(UntrustedPath(root, "result/checkpoint")))
    return max((step for name in names if (step := step_of(name)) is not None), default=-1)


def _words(manifest: Manifest) -> str:
    num_files = len(manifest.files)
    checkpoint = "" if manifest.step is None else f", its checkpoint of step {manifest.step} among them"
    return f"{num_files} file{'s' * (num_files != 1)}{checkpoint}"
