"""Which samples every attempt at a step used, for those who want to check that each was used exactly once.

One JSON object a line: `{"g": generation, "s": step, "e": epoch, "i": [sample indices]}` before the reduction, and
`{"g": generation, "c": step}` after the commit. A step counts with the highest generation that committed it.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO


class Audit:
    """Appends to a file, or does nothing if there is none."""

    def __init__(self, path: Path | None) -> None:
        self._file: TextIO | None = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a", buffering=1, encoding="utf-8")

    def attempt(self, *, generation: int, step: int, epoch: int, samples: Sequence[int]) -> None:
        self._write({"g": generation, "s": step, "e": epoch, "i": list(samples)})

    def commit(self, *, generation: int, step: int) -> None:
        self._write({"g": generation, "c": step})

    @property
    def wanted(self) -> bool:
        return self._file is not None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, line: dict[str, object]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(line, separators=(",", ":")) + "\n")
