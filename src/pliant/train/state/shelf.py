"""A place where checkpoints are kept, on disk or in shared memory: when one is due, and a thread that writes it.

The training thread copies the state into the shelf's buffer and goes on; the thread writes it. As long as it writes, no
other checkpoint is taken here: it becomes due again when the thread is through. What cannot be written is told once,
until something else is wrong.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from pliant.train.state import checkpoint
from pliant.train.state.snapshot import Buffer, Snapshot, Spec

PAUSE_SHARE: Final = 20.0
"""A checkpoint by time is taken at most so many times as long after the one before it as it made training wait."""


class Told(Protocol):
    """Who hears what became of checkpoints, from the shelf's thread or from the training's."""

    def saved(self, path: Path, position: "Position", *, num_bytes: int, seconds: float) -> None: ...

    def failed(self, position: "Position", error: str) -> None: ...

    def lacking(self, reason: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where a training stands."""

    step: int
    epoch: int


@dataclass(slots=True, kw_only=True)
class Shelf:
    """One folder of checkpoints. Only the training thread calls its methods."""

    folder: Path
    every_s: float
    """Seconds between checkpoints by time; 0: none."""
    num_kept: int
    clock: Callable[[], float]
    told: Told
    room: Callable[[int], str] = lambda _num_bytes: ""
    """Say what is missing to write a checkpoint of so many bytes; nothing if it can be tried."""
    due_at: float = float("-inf")
    """When something is to be done here; infinite if nothing is."""
    _prepared: bool = False
    _owed: bool = False
    _trouble: object = None
    _buffer: Buffer = field(default_factory=Buffer)
    _work: "Future[bool] | None" = None
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "pliant-save"))

    @property
    def idle(self) -> bool:
        """Nothing is being written."""
        return self._work is None or self._work.done()

    @property
    def prepared(self) -> bool:
        """The buffer was ordered, or is there."""
        return self._prepared

    def prepare(self, specs: list[Spec], *, pinned: bool) -> None:
        """Order the buffer for a state like this one."""
        self._prepared = True
        self.due_at = self.clock() + self.every_s if self.every_s else float("inf")
        self._work = self._thread.submit(self._allocate, specs, pinned)

    def owe(self) -> None:
        """Take a checkpoint as soon as the thread is free, whatever the time."""
        self._owed = True
        self.due_at = float("-inf")

    def take_if_due(self, capture: Callable[[], Any], position: Position) -> bool:
        """Take a checkpoint if one is due and the thread is free; tell whether it was begun."""
        if self.clock() < self.due_at or not self.idle:
            return False
        return self.take(capture, position)

    def take(self, capture: Callable[[], Any], position: Position) -> bool:
        """Copy the state and let the thread write it, after one that is being written; tell whether it was copied."""
        self.wait()
        began_at = self.clock()
        self._owed, self._prepared = False, True
        copied = self._copy(capture, position)
        paused_s = self.clock() - began_at
        self.due_at = began_at + max(self.every_s, PAUSE_SHARE * paused_s) if self.every_s else float("inf")
        return copied

    def wait(self) -> bool:
        """Wait until nothing is being written; tell whether all went well."""
        work, self._work = self._work, None
        return work.result() if work is not None else True

    def finish(self, capture: Callable[[], Any], position: Position) -> bool:
        """Take the checkpoint that is owed, if one is, and wait until nothing is being written."""
        if self._owed:
            self.take(capture, position)
        return self.wait()

    def clear(self) -> None:
        """Remove all checkpoints here."""
        self.wait()
        checkpoint.clear(self.folder)

    def close(self) -> None:
        """End the thread when it is through."""
        self._thread.shutdown(wait=True)

    def _copy(self, capture: Callable[[], Any], position: Position) -> bool:
        if missing := self.room(self._buffer.num_bytes):
            self._once(missing, lambda: self.told.lacking(missing))
            return False
        try:
            snapshot = self._buffer.take(capture())
        except MemoryError as error:
            self._report(position, error)
            return False
        self._work = self._thread.submit(self._write, snapshot, position)
        return True

    def _allocate(self, specs: list[Spec], pinned: bool) -> bool:
        try:
            self._buffer.prepare(specs, pinned=pinned)
        except MemoryError as error:
            self._report(Position(step=0, epoch=0), error)
            return False
        return True

    def _write(self, snapshot: Snapshot, position: Position) -> bool:
        began_at, num_bytes = self.clock(), len(snapshot.data)
        try:
            path = checkpoint.save(self.folder, snapshot, step=position.step, num_kept=self.num_kept)
        except OSError as error:
            self._report(position, error)
            return False
        self._trouble = None
        self.told.saved(path, position, num_bytes=num_bytes, seconds=self.clock() - began_at)
        return True

    def _report(self, position: Position, error: OSError | MemoryError) -> None:
        trouble = error.errno if isinstance(error, OSError) else type(error)
        self._once(trouble, lambda: self.told.failed(position, str(error)))

    def _once(self, trouble: object, tell: Callable[[], None]) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            tell()
