"""What a dead task left behind on this node, for its exit: its step, the end of its stderr, whether a model was saved.

A stranger wrote these files, and may have put anything in their place: a pipe that nobody writes to, a link to a
secret, a file of many gigabytes. So every folder on the way is entered without following links, only regular files with
one name are read, and of these a few KiB at most; nothing here waits. What cannot be read counts as not there.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pliant.cluster.zygote.records import Record
from pliant.core.ports import MAX_STDERR_BYTES, ExitFacts
from pliant.files import step_file

_FOLDER: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def collect(record: Record, *, out_of_memory: bool) -> ExitFacts:
    """Return what a task left behind whose process is gone."""
    if record.log_dir is None:
        return ExitFacts(out_of_memory=out_of_memory)
    log_dir = Path(record.log_dir)
    root = Path(record.result_dir or log_dir.parent)
    stderr, stderr_at = _read_end(root, log_dir / "stderr", MAX_STDERR_BYTES)
    step, _ = _read_end(root, log_dir / step_file.NAME, step_file.NUM_BYTES + 1)
    return ExitFacts(
        step=step_file.unpack(step),
        stderr=stderr.decode("utf-8", "replace"),
        stderr_at=stderr_at if stderr else 0.0,
        saved_model=record.model is not None and _is_file(root, Path(record.model)),
        out_of_memory=out_of_memory,
    )


def _read_end(root: Path, path: Path, num_bytes: int) -> tuple[bytes, float]:
    """Return the end of a file and when it was last written, seconds since the epoch; nothing and 0 if not there."""
    with suppress(OSError, ValueError), _open(root, path) as file:
        found = os.fstat(file)
        if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:  # another name may be that of somebody else's file
            return os.pread(file, num_bytes, max(0, found.st_size - num_bytes)), found.st_mtime
    return b"", 0.0


def _is_file(root: Path, path: Path) -> bool:
    with suppress(OSError, ValueError), _open(root, path) as file:
        return stat.S_ISREG(os.fstat(file).st_mode)
    return False


@contextmanager
def _open(root: Path, path: Path) -> Iterator[int]:
    """Open a file below a folder that the task's user may write to, through real folders only.

    Raises:
        OSError: it is not there, cannot be read, or is a link or behind one.
        ValueError: it is not below the folder.
    """
    *folders, name = path.relative_to(root).parts
    here = os.open(root, _FOLDER)
    try:
        for folder in folders:
            above, here = here, os.open(folder, _FOLDER, dir_fd=here)
            os.close(above)
        file = os.open(name, _FILE, dir_fd=here)
    finally:
        os.close(here)
    try:
        yield file
    finally:
        os.close(file)
