"""The states that a training of a population had at the ends of epochs, kept for others that begin from there.

Each is a checkpoint in a folder of its own, `checkpoint/epoch-6`. It is on disk before anything is reported of what
follows, so who has read the values of that epoch finds it. Unlike other checkpoints it is written while training waits.
"""

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pliant.train.state import checkpoint
from pliant.train.state.snapshot import SnapshotBuffer

NUM_KEPT: Final = 2
KEPT_BYTES: Final = 1 << 30
"""More than the newest two are kept as long as all together are smaller: a small training is far ahead of the search
that decides about it."""
_NAME: Final = re.compile(r"epoch-([0-9]{1,10})")


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEnds:
    """States below one folder, of every `every`-th epoch. Only the leader writes them, in the training thread."""

    folder: Path
    every: int
    on_failed: Callable[[int, str], None]
    """Called with the step and the reason of one that could not be written."""
    on_kept: Callable[[], str] = str
    """Called when one was written; returns why others do not see it."""

    def keep(self, capture: Callable[[], Any], *, step: int, num_epochs: int) -> None:
        """Write the state after so many epochs, if it is one that is kept; training goes on if that is impossible."""
        if num_epochs % self.every:
            return
        try:
            taken = SnapshotBuffer().take(capture())
            checkpoint.save(self._place(num_epochs), taken, step=step, num_kept=1)
        except (OSError, MemoryError) as error:
            self.on_failed(step, f"the state at the end of epoch {num_epochs}, for other trials: {error}")
            return
        if why := self.on_kept():
            self.on_failed(step, f"the state at the end of epoch {num_epochs} is on this machine alone: {why}")
        self._tidy(num_epochs, max(NUM_KEPT, KEPT_BYTES // max(1, len(taken.data))))

    def lacks(self, *, step: int, num_epochs: int) -> bool:
        """Tell whether a state that should be there is not: who led before may have died while it wrote."""
        return num_epochs % self.every == 0 and not (self._place(num_epochs) / checkpoint.name_of(step)).exists()

    def _place(self, num_epochs: int) -> Path:
        return self.folder / f"epoch-{num_epochs}"

    def _tidy(self, num_epochs: int, num_kept: int) -> None:
        """Drop all up to this one but the newest."""
        found = ((int(match[1]), path) for path in self.folder.iterdir() if (match := _NAME.fullmatch(path.name)))
        for _, path in sorted(one for one in found if one[0] <= num_epochs)[:-num_kept]:
            shutil.rmtree(path, ignore_errors=True)
