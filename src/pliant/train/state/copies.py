"""What a task asks of its machine where the folders of its job are copies: bring the newest checkpoint, send mine.

It asks by an empty file among the checkpoints, `.ask-bring-PID-N` or `.ask-send-PID-N`, and waits until that is gone.
If it cannot be done, `….failed` says why.
"""

import itertools
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pliant.train.errors import TrainingError

_POLL_S: Final = 0.02
_PATIENCE_S: Final = 3600.0
"""For a large checkpoint over a slow network, or a server that is away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineCopies:
    """Asks for checkpoints.

    Args:
        folder: of the checkpoints; made if it is missing.
    """

    folder: Path
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count, init=False)

    def bring(self) -> None:
        """Have the newest checkpoints of the job here.

        Raises:
            TrainingError: they cannot be had.
        """
        if why := self._ask("bring"):
            raise TrainingError(f"the newest checkpoint cannot be fetched from the server: {why}")

    def send(self) -> str:
        """Have what was written with the server; return why it is not, in words."""
        return self._ask("send")

    def _ask(self, what: str) -> str:
        self.folder.mkdir(parents=True, exist_ok=True)
        asked = self.folder / f".ask-{what}-{os.getpid()}-{next(self._numbers)}"
        asked.touch()
        until = time.monotonic() + _PATIENCE_S
        while asked.exists():
            if time.monotonic() > until:
                asked.unlink(missing_ok=True)
                return f"nothing was heard of it for {_PATIENCE_S:.0f} s"
            time.sleep(_POLL_S)
        failed = asked.with_name(f"{asked.name}.failed")
        try:
            why = failed.read_text(errors="replace")
        except FileNotFoundError:
            return ""
        failed.unlink(missing_ok=True)
        return why
