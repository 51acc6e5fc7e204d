"""Checkpoints on disk: whole or not there at all, and never the only one.

A file is written beside its final name, forced to disk and then renamed; the one before it is kept. Reading uses
`weights_only`, so that a file that somebody put there cannot run code.
"""

import os
import pickle
import re
import zipfile
from pathlib import Path
from typing import IO, Any, Final, cast

import torch

from pliant.train.errors import TrainingError

NUM_KEPT: Final = 2
FORMAT: Final = 1
_NAME: Final = re.compile(r"step-(\d{12})\.pt")


def save(folder: Path, state: dict[str, Any], *, step: int) -> Path:
    """Write a checkpoint of `step` committed steps; drop all but the newest `NUM_KEPT`.

    Raises:
        OSError: it could not be written; the ones before it are untouched.
    """
    path = folder / f"step-{step:012d}.pt"
    write(path, {**state, "format": FORMAT})
    for old in _paths(folder)[:-NUM_KEPT]:
        old.unlink(missing_ok=True)
    return path


def write(path: Path, value: object) -> None:
    """Write a value with `torch.save`, atomically.

    Raises:
        OSError: it could not be written; nothing was changed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            sink = _Sink(file)
            try:
                torch.save(value, cast(IO[bytes], sink))
            except RuntimeError:
                if sink.error is not None:
                    raise sink.error from None
                raise
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def newest(folder: Path) -> dict[str, Any] | None:
    """Return the newest checkpoint that is whole, or None if there is none.

    Raises:
        TrainingError: it was written by a version of Pliant that this one does not understand.
    """
    for path in reversed(_paths(folder)):
        if not zipfile.is_zipfile(path):
            continue  # torn by a crash of the disk or the host: the one before it is whole
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
        except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError):
            continue
        if not isinstance(state, dict):
            continue
        if state.get("format") != FORMAT:
            raise TrainingError(
                f"{path} has checkpoint format {state.get('format')!r}, this Pliant reads {FORMAT}; "
                f"train on with the version that wrote it, or move the file away to start anew"
            )
        return state
    return None


def _paths(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("step-*.pt") if _NAME.fullmatch(path.name))


class _Sink:
    """A file that remembers its first error, because `torch.save` reports another one instead."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.error: OSError | None = None

    def write(self, data: bytes) -> int:
        try:
            return self._file.write(data)
        except OSError as error:
            self.error = self.error or error
            raise

    def flush(self) -> None:
        self._file.flush()
