"""What a job has reported for its trackers: a file that grows, a line for each point, in the job's state folder.

The leader's task adds lines, and the process that logs to the trackers reads them. Whoever leads next goes on with the
same file, so what a killed leader had not logged yet is logged all the same, and nothing twice: a point of a series
counts only if its step is above all that the reader has seen of that series.

The job's own tasks can write anything into the file. What is no line of ours is passed over.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pliant.core.job_params import ParamValue, bounded

MAX_LINE: Final = 1 << 20
MAX_CHUNK: Final = 4 << 20
_MAX_NAME: Final = 500
_MAX_STEP: Final = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedPoint:
    """One value of one series."""

    name: str
    step: int
    at: float
    """Seconds since the epoch."""
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """What some lines say."""

    points: tuple[TrackedPoint, ...] = ()
    params: Mapping[str, ParamValue] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.points or self.params)


class JournalWriter:
    """Adds lines to a journal; each is there as soon as it is added, whatever becomes of this process."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._write(b"\n")  # ends a line that a killed writer has left open

    def add_points(self, points: Sequence[TrackedPoint]) -> None:
        """Add points in the order of their steps."""
        self._write(b"".join(_line({"n": p.name, "s": p.step, "t": p.at, "v": p.value}) for p in points))

    def add_params(self, params: Mapping[str, ParamValue]) -> None:
        """Add hyperparameters; they take the place of earlier ones of the same names."""
        self._write(_line({"p": dict(params)}))

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._file, data) :]


class JournalReader:
    """Reads a journal from where it was left, as far as whole lines go."""

    def __init__(self, path: Path, *, offset: int = 0, last_steps: Mapping[str, int] | None = None) -> None:
        self._path = path
        self.offset = offset
        """Of the first byte that was not read."""
        self.last_steps = dict(last_steps or {})
        """The newest step of every series that was read."""

    def read(self) -> Entries:
        """Return what was added since, some megabytes at most; nothing if nothing was."""
        try:
            with self._path.open("rb") as file:
                if self.offset > os.fstat(file.fileno()).st_size:
                    self.offset = 0  # it is another file
                file.seek(self.offset)
                data = file.read(MAX_CHUNK)
        except FileNotFoundError:
            return Entries()
        end = data.rfind(b"\n") + 1
        if not end and len(data) > MAX_LINE:
            end = len(data)  # no line of ours is so long
        self.offset += end
        points: list[TrackedPoint] = []
        params: dict[str, ParamValue] = {}
        for line in data[:end].splitlines():
            document = _document(line)
            if isinstance(given := document.get("p"), dict):
                params.update(bounded({name: value for name, value in given.items() if _is_param(value)}))
            points.extend(point for point in _points(document) if self._is_new(point))
        return Entries(points=tuple(points), params=params)

    def _is_new(self, point: TrackedPoint) -> bool:
        if point.step <= self.last_steps.get(point.name, -1):
            return False
        self.last_steps[point.name] = point.step
        return True


def _line(document: Mapping[str, object]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


def _document(line: bytes) -> Mapping[str, object]:
    try:
        found = json.loads(line) if line and len(line) <= MAX_LINE else None
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _points(document: Mapping[str, object]) -> Iterator[TrackedPoint]:
    name, step, at, value = (document.get(key) for key in "nstv")
    if not isinstance(name, str) or not 0 < len(name) <= _MAX_NAME:
        return
    if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step <= _MAX_STEP:
        return
    if isinstance(at, int | float) and isinstance(value, int | float) and math.isfinite(at) and 0 <= at < _MAX_STEP:
        yield TrackedPoint(name=name, step=step, at=float(at), value=_as_float(value))


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _is_param(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)
