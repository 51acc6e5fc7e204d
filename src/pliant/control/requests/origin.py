"""What a job starts from that lies in the folder of a job of another user of the operating system: it gets a copy.

Its own processes could not read that one's files, and what that one writes later is not what was asked for. The copy is
ours, like a data set: the job reads it and cannot change it. A trial that begins from the state of another one gets a
copy as well, whose ever that is: the other one goes on, and drops that state.
"""

import os
import re
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Final

from pliant.control.settings import JobFolders
from pliant.core.errors import InvalidInput
from pliant.core.job import JobSpec
from pliant.files.untrusted.opening import UntrustedFile, copy, open_file
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.walking import list_folder

FOLDER: Final = "origin"
_MAX_BYTES: Final = 1 << 40
_WEIGHTS: Final = "model.pt"
_CHECKPOINTS: Final = "checkpoint"
CHECKPOINT: Final = re.compile(r"step-([0-9]{12})\.ckpt")


def copy_foreign(
    spec: JobSpec, jobs: Path, is_foreign: Callable[[str], bool], to: Path, awaited: Collection[str] = ()
) -> frozenset[str]:
    """Copy what a job starts from into a folder, as far as it is another's; return which fields that are.

    Args:
        spec: checked.
        jobs: the folder that holds those of jobs.
        is_foreign: whether the files of a job are to be copied, as those of another user than the new one's are.
        to: made if something is copied.
        awaited: jobs that are waited for and not over; what they have not written yet cannot be copied now.

    Raises:
        InvalidInput: something cannot be copied.
        OSError: the disk does not take it.
    """
    fields = set()
    for name, path in (("weights", spec.weights), ("resume_from", spec.resume_from)):
        place = None if path is None else _place(path, jobs)
        if place is None or not is_foreign(place.root.name):
            continue
        if place.root.name in awaited:
            message = f"{place.root.name} is another user's, and its files are copied now; submit when it has ended"
            raise InvalidInput.at(name, message)
        try:
            if name == "weights":
                _copy(place, to / _WEIGHTS)
            else:
                for entry, _ in list_folder(place):
                    if CHECKPOINT.fullmatch(entry):
                        _copy(place / entry, to / _CHECKPOINTS / entry)
        except UntrustedFile as error:
            raise InvalidInput.at(name, f"it cannot be copied ({error}); give another") from error
        fields.add(name)
    return frozenset(fields)


def with_copies(spec: JobSpec, fields: Collection[str], folders: JobFolders) -> JobSpec:
    """Return what was asked for, with the copies in the folder of the job in place of those fields."""
    places = {"weights": folders.root / FOLDER / _WEIGHTS, "resume_from": folders.root / FOLDER / _CHECKPOINTS}
    copies = {name: str(place) for name, place in places.items() if name in fields}
    return replace(
        spec, weights=copies.get("weights", spec.weights), resume_from=copies.get("resume_from", spec.resume_from)
    )


def jobs_started_from(spec: JobSpec, jobs: Path) -> frozenset[str]:
    """Return the jobs in whose folders lies what a job starts from; `jobs` is the folder that holds those."""
    paths = [os.path.normpath(path) for path in (spec.weights, spec.resume_from) if path is not None]
    return frozenset(place.root.name for path in paths if (place := _place(path, jobs)) is not None)


def _place(path: str, jobs: Path) -> UntrustedPath | None:
    """Return where a path leads in the folder of a job; None if it leads into none."""
    if not Path(path).is_relative_to(jobs):
        return None
    job, *names = Path(path).relative_to(jobs).parts
    return UntrustedPath(jobs / job, "/".join(names)) if names else None


def _copy(source: UntrustedPath, target: Path) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open_file(source) as file, target.open("xb") as copied:
        copy(file, copied, max_bytes=_MAX_BYTES)
