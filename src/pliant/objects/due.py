"""What of a job is to be copied now, and what its list drops. Pure.

What is new is copied at once. What changes again and again, as logs do, is copied again after a minute at the earliest,
and later the longer it is: a log of 256 MiB after two minutes. When the job has ended all that has changed is copied.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pliant.core.copies import FileMark, FilesToCopy, FileToCopy
from pliant.objects.manifest import StoredFile, step_of

AGAIN_S: Final = 60.0
_BYTES_PER_S: Final = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LastCopy:
    """When a file was last copied, and as what."""

    mark: FileMark
    at: float


def due(found: FilesToCopy, last: Mapping[str, LastCopy], now: float, *, is_over: bool) -> Iterator[FileToCopy]:
    """Yield what is to be copied now: first of all what the job cannot go on without, the newest checkpoint first."""
    ordered = sorted(found.files, key=lambda file: (not file.is_urgent, -(step_of(file.name) or -1), file.name))
    for file in ordered:
        before = last.get(file.name)
        if before is None or (before.mark != file.mark and (is_over or file.is_urgent or _is_old(before, file, now))):
            yield file


def _is_old(before: LastCopy, file: FileToCopy, now: float) -> bool:
    return now - before.at >= AGAIN_S + file.num_bytes / _BYTES_PER_S


def kept(files: Mapping[str, StoredFile], found: FilesToCopy) -> dict[str, StoredFile]:
    """Return what the list still names: no file that is gone, and of the checkpoints the newest.

    That one stays although the disk has none any more: it may be the disk that was lost.
    """
    newest = max((step for name in files if (step := step_of(name)) is not None), default=None)
    there = {file.name for file in found.files}
    return {
        name: file
        for name, file in files.items()
        if step_of(name) == newest is not None
        or (step_of(name) is None and (not found.is_whole or name in there or _is_left_out(name, found.left_out)))
    }


def _is_left_out(name: str, left_out: Mapping[str, str]) -> bool:
    parts = name.split("/")
    return any("/".join(parts[:number]) in left_out for number in range(1, len(parts) + 1))
