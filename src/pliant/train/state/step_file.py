"""Writes the number of committed steps into a file after every step, in about a microsecond.

A task that a signal ends cannot say at which step it died. The file can: what was written to it is in the kernel's
memory and outlives the process.
"""

import os
from contextlib import suppress
from pathlib import Path

from pliant.files.step_file import NAME, pack


class StepFile:
    """The file; opened at the first write. If the disk cannot take it, training goes on without it."""

    def __init__(self, log_dir: Path) -> None:
        self._path = log_dir / NAME
        self._file: int | None = None

    def write(self, step: int) -> None:
        """Write how many optimizer steps this task has committed."""
        with suppress(OSError):  # the disk is full: nobody learns the step, and all else goes on
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.pwrite(self._file, pack(step), 0)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
