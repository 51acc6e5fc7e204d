"""The files of a training: checkpoints by epochs and by time, and the model at the end. Only the leader writes them.

Checkpoints go to disk and, more often, into the machine's shared memory, which outlives all tasks of the job. Each of
the two folders has a writer with a thread of its own: training waits for a copy of the state in memory and for nothing
else, however slow the disk. If a checkpoint cannot be written, that is reported and training goes on; if the model at
the end cannot be written, the training fails.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch

from pliant.core.link import FromTask, Note, Saved, SaveFailed
from pliant.train.errors import TrainingError
from pliant.train.state import checkpoint, memory
from pliant.train.state.checkpoint_writer import CheckpointWriter, CommittedStep
from pliant.train.state.copies import MachineCopies
from pliant.train.state.epoch_ends import EpochEnds
from pliant.train.state.own_numbers import with_own_numbers
from pliant.train.state.pytree import flatten
from pliant.train.state.shared import SharedState
from pliant.train.state.snapshot import specs_of

EVERY_S: Final = 600.0
MEMORY_EVERY_S: Final = 5.0
DIGEST: Final = "digest"
"""File beside the model: SHA-256 of the final state, in hex."""
_RETRY_S: Final = 0.01


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
    """Writes the files of a training into its result folder; does nothing if there is none."""

    folder: Path | None
    state: SharedState
    send: Callable[[FromTask], None]
    clock: Callable[[], float]
    freq: int
    """Epochs between checkpoints; 0: only by time, and before everybody leaves."""
    save: Callable[[Saving], None] | None
    every_s: float = EVERY_S
    """Seconds between checkpoints on disk; 0: only by epochs."""
    memory_folder: Path | None = None
    """In shared memory; the agent removes it after the job. None: no checkpoints are kept there."""
    memory_every_s: float = MEMORY_EVERY_S
    resume_from: Path | None = None
    """Folder of another job's checkpoints: this job starts from them as long as it has none of its own."""
    own_numbers: bool = False
    """The optimizers keep the numbers that the script gives them when it starts from there."""
    keep_every: int | None = None
    """Keep the state at the end of every so many epochs, for other trainings that begin from there."""
    copies: MachineCopies | None = None
    """Asks for the newest checkpoint, where the folders of the job are copies; None: they are not."""
    kept_after_end: bool = True
    """Keep the checkpoints when the model is saved. If False, the same command starts anew after that."""
    _disk: CheckpointWriter | None = field(init=False)
    _memory: CheckpointWriter | None = field(init=False)
    _ends: EpochEnds | None = field(init=False)
    _began_at: int = field(init=False, default=0)
    """The step of the state of another job that this one began from; 0: of none."""
    _due_at: float = field(init=False, default=float("-inf"))
    _interrupted: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self._disk = self._memory = self._ends = None
        if self.checkpoints is not None and self.keep_every is not None:
            self._ends = EpochEnds(
                folder=self.checkpoints,
                every=self.keep_every,
                on_failed=lambda step, error: self.send(SaveFailed(step=step, error=error)),
                on_kept=str if self.copies is None else self.copies.send,
            )
        if self.checkpoints is not None:
            self._disk = CheckpointWriter(
                folder=self.checkpoints,
                every_s=self.every_s,
                num_kept=checkpoint.NUM_KEPT,
                clock=self.clock,
                listener=_ServerListener(self, reports_files=True),
            )
        if (folder := self.memory_folder) is not None and self.memory_every_s:
            self._memory = CheckpointWriter(
                folder=folder,
                every_s=self.memory_every_s,
                num_kept=1,
                clock=self.clock,
                listener=_ServerListener(self, reports_files=False),
                explain_shortage=lambda num_bytes: memory.explain_shortage(folder, num_bytes),
            )

    @property
    def checkpoints(self) -> Path | None:
        return self.folder / "checkpoint" if self.folder else None

    def newest(self) -> dict[str, Any] | None:
        """Return the state to start from: the newest whole checkpoint of this job, or else of the one to resume from.

        Raises:
            TrainingError: there is none in the folder to resume from, or it cannot be understood.
        """
        if self.copies is not None:
            self.copies.bring()
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
        self._began_at = int(saved["step"])
        if self.own_numbers:
            return with_own_numbers(saved, self.state)
        return saved

    def send_copies(self) -> None:
        """Have all that this task's machine has of the job with the server, where that is not the same.

        Raises:
            TrainingError: the server does not have it.
        """
        if self.copies is not None and (why := self.copies.send()):
            raise TrainingError(f"what this training wrote is on its machine alone: {why}")

    def keep_end(self, *, step: int, epoch: int, num_epochs: int) -> None:
        """Keep the state at the end of an epoch, if that is wanted of this one.

        Args:
            step: committed steps.
            epoch: index of the epoch that the loop is in.
            num_epochs: epochs whose steps are all committed.
        """
        if self._ends is not None:
            self._ends.keep(self._capture(step, epoch), step=step, num_epochs=num_epochs)

    def keep_missing_end(self, *, step: int, epoch: int) -> None:
        """Keep the state at the beginning of an epoch, if it is wanted and who led before did not come to it."""
        if self._ends is None or not epoch or step == self._began_at:
            return
        if self._ends.lacks(step=step, num_epochs=epoch):
            self.keep_end(step=step, epoch=epoch, num_epochs=epoch)

    def after_commit(self, *, step: int, epoch: int) -> None:
        """Save if it is time to. Called after every commit; if it is not time, it only reads the clock.

        Raises:
            KeyboardInterrupt: `interrupt` was called before; the state is saved now.
        """
        if self.clock() >= self._due_at:
            self._save_due(CommittedStep(step=step, epoch=epoch))

    def after_epoch(self, *, step: int, epoch: int) -> None:
        """Save if it is time to; `epoch` is the index of the epoch that ended.

        If another checkpoint is still being written, this one is taken at the first step after that.
        """
        if self.folder is None or self._disk is None or self.freq == 0 or (epoch + 1) % self.freq != 0:
            return
        self._disk.request()
        self._disk.take_if_due(self._capture(step, epoch), CommittedStep(step=step, epoch=epoch))
        self._due_at = min(self._due_at, self._disk.due_at)
        if self.save is not None:
            try:
                self.save(Saving(epoch=epoch + 1, step=step, final=False, folder=self.folder / "model"))
            except OSError as error:
                self.send(SaveFailed(step=step, error=str(error)))

    def checkpoint_now(self, *, step: int, epoch: int) -> bool:
        """Save and wait until it is on disk, or at least in shared memory; return whether it is."""
        at, capture = CommittedStep(step=step, epoch=epoch), self._capture(step, epoch)
        if self._disk is not None and self._disk.take(capture, at) and self._disk.wait():
            if self._memory is not None:
                self._memory.clear()  # else it would hold memory as long as the job is paused
            return True
        return self._memory is not None and self._memory.take(capture, at) and self._memory.wait()

    def interrupt(self) -> bool:
        """Request a checkpoint and a KeyboardInterrupt at the next step boundary; return whether that is possible.

        Safe in a signal handler: it only sets two attributes.
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
        self._disk.finish(self._capture(step, epoch), CommittedStep(step=step, epoch=epoch))
        path, began_at = self.folder / "model" / "model.pt", self.clock()
        try:
            checkpoint.write(path, _on_cpu(self.state.model.state_dict()))
        except OSError as error:
            raise TrainingError(
                f"the trained model could not be written to {path}: {error}; the newest checkpoint is untouched, "
                f"make room and submit the job again"
            ) from error
        if not self.kept_after_end:
            self._disk.clear()
        self.report_file(
            "model", path, CommittedStep(step=step, epoch=epoch), path.stat().st_size, self.clock() - began_at
        )
        if self.save is not None:
            self.save(Saving(epoch=epoch, step=step, final=True, folder=self.folder / "model"))
        if self._interrupted:
            raise KeyboardInterrupt  # there is no next step boundary that could raise it

    def write_digest(self, digest: str) -> None:
        """Write the digest of the final state beside the model, where every task can read it.

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

    def read_digest(self) -> str:
        """Return the digest that the leader wrote; empty if there is none."""
        path = None if self.folder is None else self.folder / "model" / DIGEST
        return path.read_text().strip() if path is not None and path.is_file() else ""

    def close(self) -> None:
        """Finish the checkpoints that are being written and end the threads."""
        for writer in self._writers():
            writer.close()

    def report_file(self, what: Any, path: Path, at: CommittedStep, num_bytes: int, seconds: float) -> None:
        """Report a file in the result folder."""
        assert self.folder is not None
        self.send(
            Saved(
                what=what,
                step=at.step,
                epoch=at.epoch,
                path=str(path.relative_to(self.folder)),
                num_bytes=num_bytes,
                seconds=seconds,
            )
        )

    def _save_due(self, at: CommittedStep) -> None:
        if self._interrupted:
            self._interrupted = False
            self.checkpoint_now(step=at.step, epoch=at.epoch)
            raise KeyboardInterrupt
        self._prepare(at)
        capture = self._capture(at.step, at.epoch)
        for writer in self._writers():
            writer.take_if_due(capture, at)
        soon = self.clock() + _RETRY_S
        self._due_at = min((max(soon, writer.due_at) for writer in self._writers()), default=float("inf"))

    def _prepare(self, at: CommittedStep) -> None:
        """Let the writers' threads allocate their buffers, now that the size of the state is known."""
        new = [writer for writer in self._writers() if not writer.is_prepared]
        if new:
            _, tensors = flatten(self._capture(at.step, at.epoch)())
            pinned = any(tensor.is_cuda for tensor in tensors)
            for writer in new:
                writer.prepare(specs_of(tensors), pinned=pinned)

    def _capture(self, step: int, epoch: int) -> Callable[[], dict[str, Any]]:
        return lambda: self.state.capture(step=step, epoch=epoch)

    def _writers(self) -> list[CheckpointWriter]:
        return [writer for writer in (self._memory, self._disk) if writer is not None]

    def _note(self, message: str) -> None:
        self.send(Note(message=message))


@dataclass(frozen=True, slots=True)
class _ServerListener:
    """Reports checkpoints to the server, and every new reason why there is none."""

    results: Results
    reports_files: bool
    """False for shared memory: nobody wants to read of a checkpoint every few seconds."""

    def on_saved(self, path: Path, at: CommittedStep, *, num_bytes: int, seconds: float) -> None:
        if self.reports_files:
            self.results.report_file("checkpoint", path, at, num_bytes, seconds)

    def on_failed(self, at: CommittedStep, error: str) -> None:
        self.results.send(SaveFailed(step=at.step, error=error))

    def on_no_room(self, reason: str) -> None:
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
