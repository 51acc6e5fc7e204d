"""How long a script sleeps before every batch, in a file that a test rewrites while tasks read it."""

from pathlib import Path


class Pace:
    """A file with a number of seconds; whoever reads it never sees half of one."""

    def __init__(self, path: Path, seconds: float) -> None:
        self._path = path
        self.set(seconds)

    def set(self, seconds: float) -> None:
        draft = self._path.with_suffix(".draft")
        draft.write_text(str(seconds))
        draft.replace(self._path)

    def __str__(self) -> str:
        return str(self._path)
