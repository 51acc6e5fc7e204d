"""The jobs of an array: one for each combination of values, each with a copy of the code, since it may write there."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from pliant.control.requests.changes import NOTES
from pliant.control.requests.origin import FOLDER
from pliant.core.array import ArraySettings, JobArray, arguments_of, combinations, words_of
from pliant.core.errors import TooLarge
from pliant.core.job import JobSpec
from pliant.core.size import size
from pliant.files.folder import copy_folder, link_folder, plain_files
from pliant.files.space import check_room, disk_error

MAX_COPIES_BYTES: Final = 10 << 30
"""Of the code of all jobs of an array together."""
_MAX_NAME: Final = 120


def specs_of(spec: JobSpec, array: ArraySettings, array_id: str) -> tuple[JobSpec, ...]:
    """Return what is asked for by each job of an array; `spec` is what they have in common.

    Raises:
        InvalidInput: with everything that is wrong with the values.
    """
    chosen = combinations(array.array)
    return tuple(
        replace(
            spec,
            name=_name(spec.name, words_of(values)),
            args=(*spec.args, *arguments_of(values)),
            array=JobArray(
                id=array_id,
                name=spec.name,
                index=index,
                num_jobs=len(chosen),
                values=values,
                max_running=array.array_max,
            ),
        )
        for index, values in enumerate(chosen)
    )


def _name(name: str, words: str) -> str:
    """Return a job's name: of one line, without `/`, and not too long, as all names of jobs."""
    whole = f"{name} {''.join('_' if char == '/' or not char.isprintable() else char for char in words)}"
    return whole if len(whole) <= _MAX_NAME else f"{whole[: _MAX_NAME - 1]}…"


def multiply(code: Path, num_jobs: int) -> Sequence[Path]:
    """Return a folder of checked code for each of so many jobs; the first is `code` itself.

    Raises:
        TooLarge: they would fill the disk.
        Unavailable: the disk cannot take them.
    """
    num_bytes = _num_bytes(code)
    if num_bytes * num_jobs > MAX_COPIES_BYTES:
        raise TooLarge(
            f"code: it is {size(num_bytes)}, and {num_jobs:,} jobs, each with a copy that it may write to, would need "
            f"{size(num_bytes * num_jobs)}; {size(MAX_COPIES_BYTES)} is the most. Leave data out of the code: "
            f"a data set is kept once"
        )
    check_room(code, (num_bytes + _num_bytes(code.parent / NOTES)) * (num_jobs - 1))
    try:
        return [code, *(_copy(code, number) for number in range(1, num_jobs))]
    except OSError as error:
        raise disk_error(code.parent.parent, error) from error


def _num_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in plain_files(folder))


def _copy(code: Path, number: int) -> Path:
    place = code.parent / f"copy-{number}"
    place.mkdir()
    copy_folder(code, place / code.name)
    copy_folder(code.parent / NOTES, place / NOTES)
    if (origin := code.parent / FOLDER).exists():
        link_folder(origin, place / FOLDER)
    return place / code.name
