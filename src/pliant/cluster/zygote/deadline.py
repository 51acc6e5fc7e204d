"""Until when the tasks of a machine may go on without a server: eight bytes in a file, which two processes keep to.

The agent of a machine that has joined a server puts the instant off whenever the server has answered. When it is over
the agent ends its tasks. If the agent itself is dead or stopped, their zygote does, a little later. So a server that
has heard nothing for longer than that knows that no task lives there, whatever became of the agent.

Instants are seconds of CLOCK_BOOTTIME: it runs on while a machine sleeps, and nobody sets it. A machine that has no
such file serves a server of its own, and its tasks may go on for ever.
"""

import mmap
import os
import struct
import time
from pathlib import Path
from typing import Final

from pliant.files.folder import write_whole

FILE: Final = ".deadline"
"""In the folder of the records."""
ZYGOTE_GRACE_S: Final = 2.0
"""A zygote waits so much longer than the agent, which can say why it ended a task."""
LEFT_ALONE: Final = "was ended on its machine, which had reached no server for too long"
"""Why a task was ended then, in words that follow its name."""
_FORMAT: Final = struct.Struct("=d")


def boot_time() -> float:
    """Return seconds since this machine was started."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class OrphanDeadline:
    """The agent's hold on the file.

    Args:
        state_dir: the folder of the records.
        longest_s: the file of an earlier agent counts if it ends no later than in so many seconds; one that says more
            is of another boot.
    """

    def __init__(self, state_dir: Path, longest_s: float) -> None:
        path = state_dir / FILE
        now = boot_time()
        kept = read(path)
        at = kept if kept is not None and kept <= now + longest_s else now + longest_s
        write_whole(path, _FORMAT.pack(at), durable=False)
        with path.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), _FORMAT.size)

    def put_off(self, at: float) -> None:
        """Let the tasks go on until an instant, if that is later than before."""
        if at > self.at:
            self._page[:] = _FORMAT.pack(at)

    def end(self) -> None:
        """Let the tasks be ended now."""
        self._page[:] = _FORMAT.pack(0.0)

    @property
    def at(self) -> float:
        """When the tasks are to be ended."""
        return float(_FORMAT.unpack(self._page[:])[0])

    def is_over(self) -> bool:
        """Tell whether the tasks are to be ended now."""
        return boot_time() >= self.at


def is_over(state_dir: Path, grace_s: float = 0.0) -> bool:
    """Tell whether the tasks with these records are to be ended now, or were to be so long ago."""
    at = read(state_dir / FILE)
    return at is not None and boot_time() >= at + grace_s


def read(path: Path) -> float | None:
    """Return the instant in such a file; None if there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        content = os.pread(descriptor, _FORMAT.size, 0)
    finally:
        os.close(descriptor)
    return float(_FORMAT.unpack(content)[0]) if len(content) == _FORMAT.size else None
