"""Which samples every attempt at a step used, for those who want to check that each was used exactly once.

One JSON object a line: `{"g": generation, "s": step, "e": epoch, "i": [sample indices]}` before the reduction, and
`{"g": generation, "c": step}` after the commit. A step counts with the highest generation that committed it.

A full disk does not stop the training: lines wait in the file's buffer as long as it has room and are lost after that,
and the owner reads in a note that the audit may have holes.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO


class SampleAudit:
    """Appends to a file, or does nothing if there is none.

    Args:
        note: called once, if something could not be written.
    """

    def __init__(self, path: Path | None, *, note: Callable[[str], None] = lambda _: None) -> None:
        self._file: TextIO | None = None
        self._note: Callable[[str], None] | None = note
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a", buffering=1, encoding="utf-8")

    def attempt(self, *, generation: int, step: int, epoch: int, samples: Sequence[int]) -> None:
        self._write({"g": generation, "s": step, "e": epoch, "i": list(samples)})

    def commit(self, *, generation: int, step: int) -> None:
        self._write({"g": generation, "c": step})

    @property
    def is_enabled(self) -> bool:
        return self._file is not None

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                self._lose(error)

    def _write(self, line: dict[str, object]) -> None:
        if self._file is not None:
            try:
                self._file.write(json.dumps(line, separators=(",", ":")) + "\n")
            except OSError as error:
                self._lose(error)

    def _lose(self, error: OSError) -> None:
        note, self._note = self._note, None
        if note is not None:
            note(f"the audit may have holes: it could not be written ({error.strerror}); make room")
