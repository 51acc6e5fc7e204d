"""What a training leaves on disk: checkpoints by epochs, the model at the end. Only the leader writes.

Checkpoints are written by a thread of their own from a copy of the state, one at a time. A checkpoint that cannot be
written is reported and training goes on; the model at the end must be written.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from pliant.core.link import FromTask, Saved, SaveFailed
from pliant.train import checkpoint
from pliant.train.engine import Shared
from pliant.train.errors import TrainingError


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
    """Epochs between checkpoints; 0: only before everybody leaves."""
    save: Callable[[Saving], None] | None
    _writer: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "pliant-save"))
    _pending: "Future[bool] | None" = None

    @property
    def checkpoints(self) -> Path | None:
        return self.folder / "checkpoint" if self.folder else None

    def epoch_ended(self, *, step: int, epoch: int) -> None:
        """Save if it is time to; `epoch` is the index of the one that ended."""
        if self.folder is None or self.freq == 0 or (epoch + 1) % self.freq != 0:
            return
        self._start(step=step, epoch=epoch)
        if self.save is not None:
            try:
                self.save(Saving(epoch=epoch + 1, step=step, final=False, folder=self.folder / "model"))
            except OSError as error:
                self.send(SaveFailed(step=step, error=str(error)))

    def checkpoint_now(self, *, step: int, epoch: int) -> bool:
        """Save and wait until it is on disk; tell whether it is."""
        if self.folder is None:
            return False
        self._start(step=step, epoch=epoch)
        return self._wait()

    def finish(self, *, step: int, epoch: int) -> None:
        """Save the trained model.

        Raises:
            TrainingError: it could not be written.
        """
        self._wait()
        if self.folder is None:
            return
        path, began_at = self.folder / "model" / "model.pt", self.clock()
        try:
            checkpoint.write(path, _copied(self.shared.model.state_dict()))
        except OSError as error:
            raise TrainingError(
                f"the trained model could not be written to {path}: {error}; the newest checkpoint is untouched, "
                f"make room and submit the job again"
            ) from error
        self._tell("model", path, step=step, epoch=epoch, began_at=began_at)
        if self.save is not None:
            self.save(Saving(epoch=epoch, step=step, final=True, folder=self.folder / "model"))

    def close(self) -> None:
        """Finish the checkpoint that is being written and end the thread."""
        self._writer.shutdown(wait=True)

    def _start(self, *, step: int, epoch: int) -> None:
        self._wait()
        state = _copied(self.shared.capture(step=step, epoch=epoch))
        self._pending = self._writer.submit(self._write, state, step, epoch)

    def _write(self, state: dict[str, Any], step: int, epoch: int) -> bool:
        assert self.checkpoints is not None
        began_at = self.clock()
        try:
            path = checkpoint.save(self.checkpoints, state, step=step)
        except OSError as error:
            self.send(SaveFailed(step=step, error=str(error)))
            return False
        self._tell("checkpoint", path, step=step, epoch=epoch, began_at=began_at)
        return True

    def _wait(self) -> bool:
        pending, self._pending = self._pending, None
        return pending.result() if pending is not None else True

    def _tell(self, what: Any, path: Path, *, step: int, epoch: int, began_at: float) -> None:
        assert self.folder is not None
        self.send(
            Saved(
                what=what,
                step=step,
                epoch=epoch,
                path=str(path.relative_to(self.folder)),
                num_bytes=path.stat().st_size,
                seconds=self.clock() - began_at,
            )
        )


def _copied(tree: Any) -> Any:
    match tree:
        case torch.Tensor():
            return tree.detach().to("cpu", copy=True)
        case Mapping():
            return {key: _copied(value) for key, value in tree.items()}
        case list() | tuple():
            return type(tree)(_copied(value) for value in tree)
        case _:
            return tree
