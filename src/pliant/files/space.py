"""Room on a disk: checked before something large is written, and reported in the same words when it runs out."""

import errno
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pliant.core.errors import NoSpace, Unavailable

MARGIN_BYTES: Final = 256 << 20
"""Left free for the store, the logs and the checkpoints of trainings."""
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

FreeBytes = Callable[[Path], int]


def free_bytes(folder: Path) -> int:
    """Return the bytes that are free for us on the disk of a folder."""
    return shutil.disk_usage(folder).free


def size_of_disk(folder: Path) -> int:
    """Return how many bytes the disk of a folder has in all."""
    return shutil.disk_usage(folder).total


def check_room(folder: Path, num_bytes: int, *, margin: int = MARGIN_BYTES, free: FreeBytes = free_bytes) -> None:
    """Refuse what would fill the disk.

    Raises:
        NoSpace: there is less than `num_bytes` and the margin.
    """
    there = free(folder)
    if num_bytes + margin > there:
        raise NoSpace(
            f"the disk of {folder} has {there >> 20} MiB free, {num_bytes >> 20} MiB and {margin >> 20} MiB to spare "
            f"are needed; remove data sets or jobs that are not needed any more, or ask for a larger disk"
        )


@contextmanager
def translate_disk_errors(folder: Path) -> Iterator[None]:
    """Turn what a disk refuses into our errors.

    Raises:
        NoSpace: it is full.
        Unavailable: it cannot be written for another reason.
    """
    try:
        yield
    except OSError as error:
        raise disk_error(folder, error) from error


def disk_error(folder: Path, error: OSError) -> Unavailable:
    """Return the error that tells why a disk did not take something."""
    if error.errno in _FULL:
        return NoSpace(f"the disk of {folder} is full; remove data sets or jobs that are not needed, then try again")
    return Unavailable(f"nothing can be written in {folder}: {error.strerror or error}; look at the disk")


def cause_of(error: Exception) -> str:
    """Return what went wrong for people to read: without the path that an error of the system ends with."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
