"""Memory that the machine has when an event needs it.

Many virtual machines give memory that nobody uses back to their host (`free page reporting`), two seconds after it was
freed, and get it again page by page: what is touched for the first time then takes three to seven times as long as
where the machine has it. An event needs some hundreds of megabytes, so what it took would depend on what had run
before. So a session holds memory that it has touched, and frees it right before every event, for every system alike.
"""

import mmap
import os
from dataclasses import dataclass
from typing import Final

from bench.peers.scripts.workload import num_state_elements

NUM_STATES: Final = 8
"""So many copies of a training's state fit into it, with a gigabyte for everything else."""
_PAGE: Final = 4096


@dataclass(slots=True)
class SpareMemory:
    """What an event of a training of this model may need, or half of what the machine has left if that is less."""

    model: str
    _held: "mmap.mmap | None" = None

    def hold(self) -> None:
        """Touch it; takes a second or more for each gigabyte."""
        if self._held is not None:
            return
        wanted = (1 << 30) + NUM_STATES * 4 * num_state_elements(self.model)
        left = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        size = min(wanted, left // 2) // _PAGE * _PAGE
        self._held = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._held.madvise(mmap.MADV_HUGEPAGE)  # so that what is freed is not in small pieces
        for place in range(0, size, _PAGE):
            self._held[place] = 1

    def free(self) -> None:
        """Give it to whoever needs some now."""
        if self._held is not None:
            self._held.close()
            self._held = None
