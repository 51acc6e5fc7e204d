"""Where every gradient lies: a fixed layout of flat buffers, and the memory for it.

The layout depends on the parameters and on nothing else, so that it is the same in every task and at every step.
Buckets are filled from the last parameter to the first, about the order in which a backward pass finishes them, so that
one can be on its way while the others are computed. A tail of float32 elements travels at the end of the last bucket.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch

BUCKET_BYTES: Final = 25 << 20
"""Enough for a link's full speed, little enough to overlap (the default of torch's DistributedDataParallel)."""
EARLY_BYTES: Final = 1 << 20
"""Enough for the first one, or all gradients of a small model would wait for the end of the backward pass."""


@dataclass(frozen=True, slots=True)
class GradientBucket:
    """Gradients of one dtype on one device. Complex numbers travel as pairs of real ones."""

    places: tuple[int, ...]
    """Which parameters, in the order of their gradients in the buffer."""
    num_elements: int
    """With the tail, where this bucket has it."""
    dtype: torch.dtype
    device: torch.device


@dataclass(frozen=True, slots=True)
class BufferSet:
    """Memory for one whole set of gradients and their tail."""

    buffers: tuple[torch.Tensor, ...]
    """Flat, one for each bucket."""
    views: tuple[torch.Tensor, ...]
    """The place of every parameter's gradient in them, in its shape."""
    tail: torch.Tensor


class BucketLayout:
    """Cuts the gradients of `parameters` (no doubles) into buckets; the last one ends with `num_tail` float32s."""

    def __init__(self, parameters: Sequence[torch.nn.Parameter], *, num_tail: int, bytes_at_most: int) -> None:
        self._parameters = parameters
        self.num_tail = num_tail
        self.home = parameters[0].device if parameters else torch.device("cpu")
        self.buckets = _buckets(parameters, self.home, num_tail, bytes_at_most)
        self.bucket_of = {place: number for number, bucket in enumerate(self.buckets) for place in bucket.places}

    def allocate(self) -> BufferSet:
        """Return buffers of undefined contents."""
        return self.divide([torch.empty(b.num_elements, dtype=b.dtype, device=b.device) for b in self.buckets])

    def divide(self, buffers: Sequence[torch.Tensor]) -> BufferSet:
        """Return these flat buffers, one for each bucket, with the places in them."""
        views: dict[int, torch.Tensor] = {}
        for bucket, buffer in zip(self.buckets, buffers, strict=True):
            offset = 0
            for place in bucket.places:
                parameter = self._parameters[place]
                length = _length(parameter)
                views[place] = _view(buffer[offset : offset + length], parameter)
                offset += length
        tail = buffers[-1][buffers[-1].numel() - self.num_tail :]
        return BufferSet(tuple(buffers), tuple(views[place] for place in range(len(self._parameters))), tail)


def _buckets(
    parameters: Sequence[torch.nn.Parameter], home: torch.device, num_tail: int, bytes_at_most: int
) -> tuple[GradientBucket, ...]:
    done: list[GradientBucket] = []
    filling: dict[tuple[torch.dtype, torch.device], list[int]] = {}

    def close(key: tuple[torch.dtype, torch.device], extra: int = 0) -> None:
        places = filling.pop(key, [])
        dtype, device = key
        length = sum(_length(parameters[p]) for p in places) + extra
        done.append(GradientBucket(tuple(places), length, dtype.to_real(), device))

    for place in reversed(range(len(parameters))):
        parameter = parameters[place]
        key = (parameter.dtype, parameter.device)
        held = sum(parameters[p].nbytes for p in filling.get(key, ()))
        is_early = not done and held >= EARLY_BYTES
        if is_early or (held and held + parameter.nbytes > bytes_at_most):
            close(key)
        filling.setdefault(key, []).append(place)
    tail_key = (torch.float32, home)
    for key in [key for key in filling if key != tail_key]:
        close(key)
    close(tail_key, num_tail)
    return tuple(done)


def _length(parameter: torch.nn.Parameter) -> int:
    return parameter.numel() * (2 if parameter.is_complex() else 1)


def _view(flat: torch.Tensor, parameter: torch.nn.Parameter) -> torch.Tensor:
    """Return a piece of a buffer in the parameter's shape, and in its layout if that is dense: autograd asks for it."""
    if parameter.is_complex():
        flat = torch.view_as_complex(flat.view(-1, 2))
    if any(
        parameter.dim() == num_dims and parameter.is_contiguous(memory_format=layout)
        for num_dims, layout in ((4, torch.channels_last), (5, torch.channels_last_3d))
    ):
        return flat.as_strided(parameter.size(), parameter.stride(), flat.storage_offset())
    return flat.view_as(parameter)
