"""Writes checkpoints into one folder, on disk or in shared memory: decides when one is due, and has a thread for it.

The training thread copies the state into the writer's buffer and goes on; the writer's thread writes the buffer to a
file. While it writes, no other checkpoint is begun in this folder. The same problem is reported once, until another one
occurs.

Example with `every_s=5`: a copy that begins at 100.0 s and takes 0.1 s makes the next checkpoint due at 105.0 s. If the
copy takes 0.4 s, the next is due at 108.0 s, since a checkpoint by time may cost at most a twentieth of the time
(`PAUSE_SHARE`).
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from pliant.train.state import checkpoint
from pliant.train.state.snapshot import SnapshotBuffer, Spec, StateSnapshot

PAUSE_SHARE: Final = 20.0
"""Between the beginnings of two checkpoints by time lies at least so many times the pause that the first one made."""


class CheckpointListener(Protocol):
    """Learns what became of checkpoints, in the writer's thread or in the training thread."""

    def on_saved(self, path: Path, at: "CommittedStep", *, num_bytes: int, seconds: float) -> None: ...

    def on_failed(self, at: "CommittedStep", error: str) -> None: ...

    def on_no_room(self, reason: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedStep:
    """A step boundary of a training: `step` optimizer steps are committed, the loop is in epoch `epoch`."""

    step: int
    epoch: int


@dataclass(slots=True, kw_only=True)
class CheckpointWriter:
    """One folder of checkpoints. Only the training thread calls its methods."""

    folder: Path
    every_s: float
    """Seconds between checkpoints by time; 0: none."""
    num_kept: int
    clock: Callable[[], float]
    listener: CheckpointListener
    explain_shortage: Callable[[int], str] = lambda _num_bytes: ""
    """Say why there is no room for a checkpoint of so many bytes; empty if there may be."""
    due_at: float = float("-inf")
    """When the next checkpoint is due; infinite if none is."""
    _is_prepared: bool = False
    _is_requested: bool = False
    _trouble: object = None
    _buffer: SnapshotBuffer = field(default_factory=SnapshotBuffer)
    _work: "Future[bool] | None" = None
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "pliant-save"))

    @property
    def is_idle(self) -> bool:
        """Nothing is being written."""
        return self._work is None or self._work.done()

    @property
    def is_prepared(self) -> bool:
        """The buffer is there, or the thread is allocating it."""
        return self._is_prepared

    def prepare(self, specs: list[Spec], *, pinned: bool) -> None:
        """Let the thread allocate the buffer for a state like this one."""
        self._is_prepared = True
        self.due_at = self.clock() + self.every_s if self.every_s else float("inf")
        self._work = self._thread.submit(self._allocate, specs, pinned)

    def request(self) -> None:
        """Take a checkpoint as soon as the thread is free, whatever the time."""
        self._is_requested = True
        self.due_at = float("-inf")

    def take_if_due(self, capture: Callable[[], Any], at: CommittedStep) -> bool:
        """Take a checkpoint if one is due and the thread is free; return whether it was begun."""
        if self.clock() < self.due_at or not self.is_idle:
            return False
        return self.take(capture, at)

    def take(self, capture: Callable[[], Any], at: CommittedStep) -> bool:
        """Copy the state and let the thread write it, after any that is being written; return whether it was copied."""
        self.wait()
        began_at = self.clock()
        self._is_requested, self._is_prepared = False, True
        copied = self._copy(capture, at)
        paused_s = self.clock() - began_at
        self.due_at = began_at + max(self.every_s, PAUSE_SHARE * paused_s) if self.every_s else float("inf")
        return copied

    def wait(self) -> bool:
        """Wait until nothing is being written; return whether that succeeded."""
        work, self._work = self._work, None
        return work.result() if work is not None else True

    def finish(self, capture: Callable[[], Any], at: CommittedStep) -> bool:
        """Take the checkpoint that was requested and not begun, if any; wait until nothing is being written."""
        if self._is_requested:
            self.take(capture, at)
        return self.wait()

    def clear(self) -> None:
        """Remove all checkpoints of the folder."""
        self.wait()
        checkpoint.clear(self.folder)

    def close(self) -> None:
        """End the thread when it has written what it has."""
        self._thread.shutdown(wait=True)

    def _copy(self, capture: Callable[[], Any], at: CommittedStep) -> bool:
        if missing := self.explain_shortage(self._buffer.num_bytes):
            self._report_once(missing, lambda: self.listener.on_no_room(missing))
            return False
        try:
            snapshot = self._buffer.take(capture())
        except MemoryError as error:
            self._report(at, error)
            return False
        self._work = self._thread.submit(self._write, snapshot, at)
        return True

    def _allocate(self, specs: list[Spec], pinned: bool) -> bool:
        try:
            self._buffer.prepare(specs, pinned=pinned)
        except MemoryError as error:
            self._report(CommittedStep(step=0, epoch=0), error)
            return False
        return True

    def _write(self, snapshot: StateSnapshot, at: CommittedStep) -> bool:
        began_at, num_bytes = self.clock(), len(snapshot.data)
        try:
            path = checkpoint.save(self.folder, snapshot, step=at.step, num_kept=self.num_kept)
        except OSError as error:
            self._report(at, error)
            return False
        self._trouble = None
        self.listener.on_saved(path, at, num_bytes=num_bytes, seconds=self.clock() - began_at)
        return True

    def _report(self, at: CommittedStep, error: OSError | MemoryError) -> None:
        trouble = error.errno if isinstance(error, OSError) else type(error)
        self._report_once(trouble, lambda: self.listener.on_failed(at, str(error)))

    def _report_once(self, trouble: object, report: Callable[[], None]) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            report()
