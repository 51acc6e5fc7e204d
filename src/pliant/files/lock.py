"""Locks between processes: whoever opens the same file."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def take_lock(path: Path) -> int | None:
    """Take the lock of a file, made with mode 600 if there is none, for as long as this process lives.

    Returns its open descriptor, which keeps the lock; None if another process has it.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file


@contextmanager
def hold_lock(path: Path) -> Iterator[int]:
    """Wait for the lock of a folder or a file, made with mode 600 if there is none, and yield its open descriptor."""
    flags = os.O_RDONLY | os.O_DIRECTORY if path.is_dir() else os.O_RDWR | os.O_CREAT
    file = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield file
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)  # a child that was forked meanwhile has the file open, too
    finally:
        os.close(file)
