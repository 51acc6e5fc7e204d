"""A copy of the whole state, in one piece of memory that is kept and used again.

The first copy into fresh memory costs several times as much as later ones, because the kernel has to provide every
page. So the writer's thread allocates and touches the memory, and the training thread only copies. Knows no files.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import torch

from pliant.train.state.pytree import flatten

ALIGNMENT: Final = 64
"""Every tensor begins at a multiple of this many bytes."""
_MANY: Final = 1 << 15
"""From this many elements on, torch copies with several threads."""

Spec = tuple[torch.dtype, tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSnapshot:
    """A state at one step: a JSON skeleton and the bytes of its tensors, in the skeleton's order."""

    skeleton: str
    data: memoryview
    """uint8; a part of the buffer's memory, which is not overwritten before this is written to its file."""
    copied: tuple[torch.cuda.Event, ...] = ()

    def wait(self) -> None:
        """Wait until copies from other devices have arrived."""
        for event in self.copied:
            event.synchronize()


def offsets(specs: Sequence[Spec]) -> tuple[list[int], int]:
    """Return where every tensor begins, and how many bytes all take together."""
    starts: list[int] = []
    end = 0
    for dtype, shape in specs:
        start = -(-end // ALIGNMENT) * ALIGNMENT
        starts.append(start)
        end = start + dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    return starts, end


def views(memory: torch.Tensor, specs: Sequence[Spec]) -> list[torch.Tensor]:
    """Return the tensors that lie in a piece of memory (uint8), as views of it."""
    starts, _ = offsets(specs)
    return [
        memory[start : start + dtype.itemsize * int(np.prod(shape, dtype=np.int64))].view(dtype).reshape(shape)
        for start, (dtype, shape) in zip(starts, specs, strict=True)
    ]


def specs_of(tensors: Sequence[torch.Tensor]) -> list[Spec]:
    """Return dtype and shape of every tensor."""
    return [(tensor.dtype, tuple(tensor.shape)) for tensor in tensors]


@dataclass(slots=True)
class SnapshotBuffer:
    """Memory for one snapshot at a time."""

    _memory: torch.Tensor | None = None
    _specs: list[Spec] = field(default_factory=list)
    _views: list[torch.Tensor] = field(default_factory=list)

    @property
    def num_bytes(self) -> int:
        """How many bytes of tensors it was prepared for."""
        return offsets(self._specs)[1]

    def prepare(self, specs: list[Spec], *, pinned: bool) -> None:
        """Allocate what a state like this needs, and touch every page; slow, so it belongs into a thread of its own.

        Raises:
            MemoryError: there is not enough.
        """
        _, num_bytes = offsets(specs)
        if self._memory is None or len(self._memory) < num_bytes:
            self._memory, self._views = None, []
            self._memory = _allocate(num_bytes, pinned=pinned)
        self._specs, self._views = specs, views(self._memory, specs)

    def take(self, tree: Any) -> StateSnapshot:
        """Copy a state; the snapshot before this one is overwritten.

        Copies from a GPU are only begun. They run on its stream before later work that could change what they read.

        Raises:
            TrainingError: the tree holds something that cannot be saved.
            MemoryError: the memory for it was not prepared and cannot be had.
        """
        skeleton, tensors = flatten(tree)
        specs = specs_of(tensors)
        if self._memory is None or specs != self._specs:
            self.prepare(specs, pinned=any(tensor.is_cuda for tensor in tensors))
        assert self._memory is not None
        for view, tensor in zip(self._views, tensors, strict=True):
            _copy(tensor, view)
        _, num_bytes = offsets(specs)
        data = self._memory.numpy().data[:num_bytes]
        return StateSnapshot(skeleton=skeleton, data=data, copied=_record_events(tensors))


def _copy(tensor: torch.Tensor, view: torch.Tensor) -> None:
    """Copy in this thread alone: where all cores are in use, torch's threads would wait for one another."""
    if tensor.device.type == "cpu" and tensor.numel() >= _MANY and tensor.is_contiguous():
        np.copyto(_bytes_of(view), _bytes_of(tensor))
    else:
        view.copy_(tensor, non_blocking=tensor.is_cuda)


def _bytes_of(tensor: torch.Tensor) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    return tensor.reshape(-1).view(torch.uint8).numpy()


def _allocate(num_bytes: int, *, pinned: bool) -> torch.Tensor:
    if pinned:
        try:
            return torch.empty(num_bytes, dtype=torch.uint8, pin_memory=True)
        except RuntimeError as error:
            raise MemoryError(f"{num_bytes / 1e6:.0f} MB of pinned memory for a copy of the state: {error}") from error
    memory = np.empty(num_bytes, dtype=np.uint8)
    memory.fill(0)  # by numpy, because torch would start a pool of threads for this thread
    return torch.from_numpy(memory)


def _record_events(tensors: Sequence[torch.Tensor]) -> tuple[torch.cuda.Event, ...]:
    events: list[torch.cuda.Event] = []
    for device in {tensor.device for tensor in tensors if tensor.is_cuda}:
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(device))
        events.append(event)
    return tuple(events)
