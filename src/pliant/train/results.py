"""What a training leaves behind: checkpoints by epochs and by time, the model at the end. Only the leader writes.

Checkpoints go to disk and, more often, into the machine's shared memory, which outlives all tasks of the job. Each
place is a shelf with a thread of its own: training waits for a copy of the state in memory and for nothing else,
however slow the disk. A checkpoint that cannot be written is reported and training goes on; the model at the end must
be written.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch

from pliant.core.link import FromTask, Note, Saved, SaveFailed
from pliant.train.engine import Shared
from pliant.train.errors import TrainingError
from pliant.train.state import checkpoint, memory
from pliant.train.state.pytree import flatten
from pliant.train.state.shelf import Position, Shelf
from pliant.train.state.snapshot import specs_of

EVERY_S: Final = 600.0
MEMORY_EVERY_S: Final = 5.0
DIGEST: Final = "digest"
"""File beside the model: SHA-256 of the final state, in hex."""
_LOOK_AGAIN_S: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """An occasion to save something beside the checkpoint; called on the leader, in the training thread."""

    epoch: int
    """Epochs finished."""
    step: int
    final: bool
    folder: Path
    """RESULT_DIR/model."""


@dataclass(slots=True, kw_only=True)
class Results:
    """Writes into the result folder; without one it does nothing."""

    folder: Path | None
    shared: Shared
    send: Callable[[FromTask], None]
    clock: Callable[[], float]
    freq: int
    """Epochs between checkpoints; 0: only by time, and before everybody leaves."""
    save: Callable[[Saving], None] | None
    every_s: float = EVERY_S
    """Seconds between checkpoints on disk; 0: only by epochs."""
    memory_folder: Path | None = None
    """In shared memory; somebody else removes it after the job. None: none are kept there."""
    memory_every_s: float = MEMORY_EVERY_S
    resume_from: Path | None = None
    """Checkpoints of another job, which this one starts from as long as it has none of its own."""
    kept_after_end: bool = True
    """Checkpoints stay when the model is saved; else the same command starts anew after that."""
    _disk: Shelf | None = field(init=False)
    _memory: Shelf | None = field(init=False)
    _due_at: float = field(init=False, default=float("-inf"))
    _interrupted: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self._disk = self._memory = None
        if self.checkpoints is not None:
            self._disk = Shelf(
                folder=self.checkpoints,
                every_s=self.every_s,
                num_kept=checkpoint.NUM_KEPT,
                clock=self.clock,
                told=_News(self, of_files=True),
            )
        if (folder := self.memory_folder) is not None and self.memory_every_s:
            self._memory = Shelf(
                folder=folder,
                every_s=self.memory_every_s,
                num_kept=1,
                clock=self.clock,
                told=_News(self, of_files=False),
                room=lambda num_bytes: memory.lacking(folder, num_bytes),
            )

    @property
    def checkpoints(self) -> Path | None:
        return self.folder / "checkpoint" if self.folder else None

    def newest(self) -> dict[str, Any] | None:
        """Return the state to start from: the newest whole checkpoint of this job, or else of the one to resume from.

        Raises:
            TrainingError: there is none where the training was told to resume from, or it cannot be understood.
        """
        own = [folder for folder in (self.memory_folder, self.checkpoints) if folder is not None]
        saved = checkpoint.newest(*own, note=self._note)
        if saved is not None or self.resume_from is None:
            return saved
        folder = self.resume_from / "checkpoint"
        saved = checkpoint.newest(folder if folder.is_dir() else self.resume_from, note=self._note)
        if saved is None:
            raise TrainingError(
                f"there is no whole checkpoint to resume from in {self.resume_from}; name the folder `checkpoint` of a "
                f"job's results, or leave resume_from out to start anew"
            )
        return saved

    def step_committed(self, *, step: int, epoch: int) -> None:
        """Save if it is time to; called after every commit, costs a look at the clock when it is not.

        Raises:
            KeyboardInterrupt: `interrupt` was called before; the state is saved now.
        """
        if self.clock() >= self._due_at:
            self._look(Position(step=step, epoch=epoch))

    def epoch_ended(self, *, step: int, epoch: int) -> None:
        """Save if it is time to; `epoch` is the index of the one that ended.

        If the checkpoint before is still being written this one is taken at the first step after that.
        """
        if self.folder is None or self._disk is None or self.freq == 0 or (epoch + 1) % self.freq != 0:
            return
        self._disk.owe()
        self._disk.take_if_due(self._capture(step, epoch), Position(step=step, epoch=epoch))
        self._due_at = min(self._due_at, self._disk.due_at)
        if self.save is not None:
            try:
                self.save(Saving(epoch=epoch + 1, step=step, final=False, folder=self.folder / "model"))
            except OSError as error:
                self.send(SaveFailed(step=step, error=str(error)))

    def checkpoint_now(self, *, step: int, epoch: int) -> bool:
        """Save and wait until it is on disk, or at least in shared memory; tell whether it is."""
        position, capture = Position(step=step, epoch=epoch), self._capture(step, epoch)
        if self._disk is not None and self._disk.take(capture, position) and self._disk.wait():
            if self._memory is not None:
                self._memory.clear()  # what nobody needs any more would hold memory as long as the job is paused
            return True
        return self._memory is not None and self._memory.take(capture, position) and self._memory.wait()

    def interrupt(self) -> bool:
        """Ask for a checkpoint and a KeyboardInterrupt at the next step boundary; tell whether there can be one.

        Safe in a signal handler: nothing is done but noted.
        """
        if self._disk is None:
            return False
        self._interrupted, self._due_at = True, float("-inf")
        return True

    def finish(self, *, step: int, epoch: int) -> None:
        """Save the trained model.

        Raises:
            TrainingError: it could not be written.
            KeyboardInterrupt: `interrupt` was called after the last step; the model is saved.
        """
        if self.folder is None or self._disk is None:
            return
        self._disk.finish(self._capture(step, epoch), Position(step=step, epoch=epoch))
        path, began_at = self.folder / "model" / "model.pt", self.clock()
        try:
            checkpoint.write(path, _on_cpu(self.shared.model.state_dict()))
        except OSError as error:
            raise TrainingError(
                f"the trained model could not be written to {path}: {error}; the newest checkpoint is untouched, "
                f"make room and submit the job again"
            ) from error
        if not self.kept_after_end:
            self._disk.clear()
        self.tell("model", path, Position(step=step, epoch=epoch), path.stat().st_size, self.clock() - began_at)
        if self.save is not None:
            self.save(Saving(epoch=epoch, step=step, final=True, folder=self.folder / "model"))
        if self._interrupted:
            raise KeyboardInterrupt  # no step came any more at which the program could be ended

    def keep_digest(self, digest: str) -> None:
        """Leave the digest of the final state beside the model, where every task finds it.

        Raises:
            TrainingError: it could not be written.
        """
        if self.folder is None:
            return
        path = self.folder / "model" / DIGEST
        draft = path.with_name(f".{DIGEST}.{os.getpid()}")
        try:
            draft.write_text(f"{digest}\n")
            draft.replace(path)
        except OSError as error:
            raise TrainingError(f"{path} could not be written: {error}; make room and submit the job again") from error

    def kept_digest(self) -> str:
        """Return the digest that the leader left; empty if there is none."""
        path = None if self.folder is None else self.folder / "model" / DIGEST
        return path.read_text().strip() if path is not None and path.is_file() else ""

    def close(self) -> None:
        """Finish the checkpoints that are being written and end the threads."""
        for shelf in self._shelves():
            shelf.close()

    def tell(self, what: Any, path: Path, position: Position, num_bytes: int, seconds: float) -> None:
        """Report a file in the result folder."""
        assert self.folder is not None
        self.send(
            Saved(
                what=what,
                step=position.step,
                epoch=position.epoch,
                path=str(path.relative_to(self.folder)),
                num_bytes=num_bytes,
                seconds=seconds,
            )
        )

    def _look(self, position: Position) -> None:
        if self._interrupted:
            self._interrupted = False
            self.checkpoint_now(step=position.step, epoch=position.epoch)
            raise KeyboardInterrupt
        self._prepare(position)
        capture = self._capture(position.step, position.epoch)
        for shelf in self._shelves():
            shelf.take_if_due(capture, position)
        soon = self.clock() + _LOOK_AGAIN_S
        self._due_at = min((max(soon, shelf.due_at) for shelf in self._shelves()), default=float("inf"))

    def _prepare(self, position: Position) -> None:
        """Let the threads allocate what they need, as soon as it is known how much that is."""
        new = [shelf for shelf in self._shelves() if not shelf.prepared]
        if new:
            _, tensors = flatten(self._capture(position.step, position.epoch)())
            pinned = any(tensor.is_cuda for tensor in tensors)
            for shelf in new:
                shelf.prepare(specs_of(tensors), pinned=pinned)

    def _capture(self, step: int, epoch: int) -> Callable[[], dict[str, Any]]:
        return lambda: self.shared.capture(step=step, epoch=epoch)

    def _shelves(self) -> list[Shelf]:
        return [shelf for shelf in (self._memory, self._disk) if shelf is not None]

    def _note(self, message: str) -> None:
        self.send(Note(message=message))


@dataclass(frozen=True, slots=True)
class _News:
    """Tells the server of checkpoints, and of every new reason why there is none."""

    results: Results
    of_files: bool
    """Tell of every file; one in shared memory every few seconds is no news."""

    def saved(self, path: Path, position: Position, *, num_bytes: int, seconds: float) -> None:
        if self.of_files:
            self.results.tell("checkpoint", path, position, num_bytes, seconds)

    def failed(self, position: Position, error: str) -> None:
        self.results.send(SaveFailed(step=position.step, error=error))

    def lacking(self, reason: str) -> None:
        self.results.send(Note(message=reason))


def _on_cpu(tree: Any) -> Any:
    match tree:
        case torch.Tensor():
            return tree.detach().cpu()
        case Mapping():
            return {key: _on_cpu(value) for key, value in tree.items()}
        case list() | tuple():
            return type(tree)(_on_cpu(value) for value in tree)
        case _:
            return tree
