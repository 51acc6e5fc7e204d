"""Whether the parameters stay as they are while gradients are computed, as they do in nearly every script.

Then a task may send them meanwhile, and a newcomer that computes nothing of a step has all that it needs to go on from
the sum of the gradients. A forward pass that changes them (rows that an embedding renorms, weights that are clamped or
normalized in place) is seen in the first steps that this task computes. Elements of every parameter are compared, not
version counters, since those do not know of `weight.data.clamp_()`.

Knows nothing of other tasks.
"""

from collections.abc import Sequence
from typing import Final

import torch

_NUM_STEPS: Final = 2
_NUM_ELEMENTS: Final = 256
"""So many of a parameter are compared, spread over all of it."""


class SteadyParameters:
    """Watches the trained parameters of a model in the first steps."""

    def __init__(self, parameters: Sequence[torch.nn.Parameter]) -> None:
        self._parameters = parameters
        self._before: list[torch.Tensor] = []
        self.num_watched = 0
        """Steps that were watched."""
        self.have_changed = False
        """One of these changed a parameter before the optimizer did."""

    def begin(self, *, computes: bool) -> None:
        """A step begins, of which this task computes something or not."""
        watches = computes and self.num_watched < _NUM_STEPS
        self._before = [_elements(one).clone() for one in self._parameters] if watches else []

    def end(self) -> None:
        """The gradients of the step are computed."""
        if self._before:
            pairs = zip(self._before, self._parameters, strict=True)
            self.have_changed = self.have_changed or any(not torch.equal(was, _elements(now)) for was, now in pairs)
            self._before = []
            self.num_watched += 1


def _elements(parameter: torch.Tensor) -> torch.Tensor:
    flat = parameter.detach().reshape(-1)
    return flat[:: max(1, len(flat) // _NUM_ELEMENTS)]
