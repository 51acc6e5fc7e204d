"""What travels behind the gradients in the last bucket, so that a step needs no collective of its own for it.

control elements    pledges, loss and metrics: of every virtual worker, summed
flags               one per parameter: how many virtual workers had a gradient of it (it may be unused in some)
running buffers     those of virtual worker 0; zeros from the others, so that the sum is a copy
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from pliant.train.sum.readout import Element, Weighed


@dataclass(frozen=True, slots=True, kw_only=True)
class TailLayout:
    """The sections of a tail, in float32 elements."""

    num_control: int
    num_flags: int
    num_running: int

    @property
    def num_elements(self) -> int:
        return self.num_control + self.num_flags + self.num_running

    def control(self, tail: torch.Tensor) -> torch.Tensor:
        return tail[: self.num_control]

    def flags(self, tail: torch.Tensor) -> torch.Tensor:
        return tail[self.num_control : self.num_control + self.num_flags]

    def running(self, tail: torch.Tensor) -> torch.Tensor:
        return tail[self.num_control + self.num_flags :]

    def make(self, control: Sequence[Element], device: torch.device) -> torch.Tensor:
        """Return a tail with these control elements and zeros, without waiting for a device."""
        tail = torch.zeros(self.num_elements, device=device)
        if tail.is_cpu and not any(isinstance(value, torch.Tensor | Weighed) for value in control):
            tail[: self.num_control] = torch.tensor(control)
            return tail
        for place, value in enumerate(control):
            if isinstance(value, Weighed):
                tail[place].copy_(value.product())
            elif isinstance(value, torch.Tensor):
                tail[place].copy_(value)
            elif value:
                tail[place].fill_(value)  # no copy of a number in the host's memory, which the host would wait for
        return tail
